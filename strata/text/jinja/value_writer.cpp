#include "strata/text/jinja/value_writer.h"

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/text/code_points.h"
#include "strata/text/jinja/numbers.h"
#include "strata/text/jinja/objects.h"
#include "strata/text/unicode_tables.h"

namespace strata::text {
namespace {

// str() and repr() of one value; remembers where the last string came from.
class Writer {
 public:
  Writer(MarkedTextBuilder& out, TemplateBudget& budget) : out_(out), budget_(budget) {}

  void text(const Value& value) {
    switch (value.kind()) {
      case Value::Kind::kUndefined:
        return;
      case Value::Kind::kString:
        out_.add(value.as_text());
        return;
      default:
        repr(value);
    }
  }

  void repr(const Value& value) {
    budget_.step();
    switch (value.kind()) {
      case Value::Kind::kUndefined:
        put("Undefined");
        return;
      case Value::Kind::kNull:
        put("None");
        return;
      case Value::Kind::kBool:
        put(value.as_bool() ? "True" : "False");
        return;
      case Value::Kind::kInteger:
        put(std::to_string(value.as_integer()));
        return;
      case Value::Kind::kNumber:
        put(number_text(value.as_number()));
        return;
      case Value::Kind::kString:
        repr(value.as_text());
        return;
      case Value::Kind::kList:
        repr(value.as_list());
        return;
      case Value::Kind::kMap:
        repr(value.as_map());
        return;
      case Value::Kind::kObject:
        put(printed(*value.as_object()));
        return;
    }
  }

 private:
  void put(std::string_view bytes) { out_.add(bytes, origin_); }

  void repr(const MarkedText& text) {
    const std::string_view bytes = text.bytes();
    const bool single = bytes.find('\'') != std::string_view::npos;
    const char quote = single && bytes.find('"') == std::string_view::npos ? '"' : '\'';
    const std::string_view mark(&quote, 1);
    if (!text.empty()) origin_ = text.content().empty() ? Origin::kScaffold : Origin::kContent;
    put(mark);
    budget_.scan(4 * text.size());
    std::string escaped;
    text.each_piece([&](std::string_view piece, Origin origin) {
      escaped.clear();
      for (size_t at = 0; at < piece.size();) {
        const CodePoint c = code_point_at(piece, at);
        append_repr(escaped, piece.substr(at, c.length), c.value, quote);
        at += c.length;
        if (escaped.size() < 4096) continue;
        // It is paid for only now.
        out_.add(escaped, origin);
        escaped.clear();
      }
      out_.add(escaped, origin);
    });
    put(mark);
  }

  static void append_repr(std::string& out, std::string_view bytes, char32_t c, char quote) {
    const auto code = static_cast<uint32_t>(c);
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\\' || c == static_cast<unsigned char>(quote)) {
      out.push_back('\\');
      out += bytes;
    } else if (c >= 0x20 && c < 0x7F) {
      out += bytes;
    } else if (c >= 0x7F && (character_flags(c) & kPrintable) != 0) {
      out += bytes;
    } else if (c < 0x100) {
      out += format("\\x{:02x}", code);
    } else if (c < 0x10000) {
      out += format("\\u{:04x}", code);
    } else {
      out += format("\\U{:08x}", code);
    }
  }

  void repr(const List& list) {
    std::string_view open = "[";
    std::string_view close = "]";
    switch (list.kind()) {
      case ListKind::kList:
        break;
      case ListKind::kTuple:
        open = "(";
        close = list.items().size() == 1 ? ",)" : ")";
        break;
      case ListKind::kKeys:
        open = "dict_keys([";
        break;
      case ListKind::kValues:
        open = "dict_values([";
        break;
      case ListKind::kItems:
        open = "dict_items([";
        break;
      case ListKind::kGenerator:
      case ListKind::kRange:
        throw Error(ErrorCode::kInvalidArgument,
                    format("a {} cannot be printed; use |list",
                           list.kind() == ListKind::kRange ? "range" : "lazy filter's result"));
    }
    if (open.size() > 1) close = "])";
    put(open);
    bool first = true;
    for (const Value& item : list.items()) {
      if (!first) put(", ");
      first = false;
      repr(item);
    }
    put(close);
  }

  void repr(const Map& map) {
    put("{");
    bool first = true;
    for (const auto& [key, value] : map.entries()) {
      if (!first) put(", ");
      first = false;
      repr(key);
      put(": ");
      repr(value);
    }
    put("}");
  }

  MarkedTextBuilder& out_;
  TemplateBudget& budget_;
  Origin origin_ = Origin::kScaffold;
};

}  // namespace

void write_text(const Value& value, MarkedTextBuilder& out, TemplateBudget& budget) {
  Writer(out, budget).text(value);
}

void write_repr(const Value& value, MarkedTextBuilder& out, TemplateBudget& budget) {
  Writer(out, budget).repr(value);
}

Value to_text(const Value& value, TemplateBudget& budget) {
  if (value.is_string()) return value;
  MarkedTextBuilder out(budget);
  write_text(value, out, budget);
  return Value::string(out.take());
}

}  // namespace strata::text
