#include <algorithm>
#include <cmath>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/text/code_points.h"
#include "strata/text/jinja/numbers.h"
#include "strata/text/jinja/operators.h"
#include "strata/text/jinja/value_writer.h"

namespace strata::text {
namespace {

std::string json_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  return number_text(value);
}

// The bytes of at most `most` bytes of text that do not end inside a character.
size_t whole_characters(std::string_view text, size_t most) {
  if (text.size() <= most) return text.size();
  size_t n = most;
  while (n > most - 4 && (static_cast<unsigned char>(text[n]) & 0xC0) == 0x80) --n;
  return n;
}

class JsonWriter {
 public:
  JsonWriter(const JsonStyle& style, MarkedTextBuilder& out, TemplateBudget& budget)
      : style_(style), out_(out), budget_(budget) {}

  void write(const Value& value, int level) {
    budget_.step();
    switch (value.kind()) {
      case Value::Kind::kNull:
        put("null");
        return;
      case Value::Kind::kBool:
        put(value.as_bool() ? "true" : "false");
        return;
      case Value::Kind::kInteger:
        put(std::to_string(value.as_integer()));
        return;
      case Value::Kind::kNumber:
        put(json_number(value.as_number()));
        return;
      case Value::Kind::kString:
        string(value.as_text());
        return;
      case Value::Kind::kMap:
        map(value.as_map(), level);
        return;
      case Value::Kind::kList: {
        const List& items = value.as_list();
        if (items.kind() != ListKind::kList && items.kind() != ListKind::kTuple) break;
        list(items, level);
        return;
      }
      default:
        break;
    }
    throw Error(ErrorCode::kInvalidArgument,
                format("tojson: a value of type {} has no JSON form", type_name(value)));
  }

 private:
  void put(std::string_view bytes) { out_.add(bytes, origin_); }

  void new_line(int level) {
    if (!style_.indent) return;
    put("\n");
    for (int i = 0; i < level; ++i) put(*style_.indent);
  }

  void string(const MarkedText& text) {
    if (!text.empty()) origin_ = text.content().empty() ? Origin::kScaffold : Origin::kContent;
    put("\"");
    budget_.scan(4 * text.size());
    std::string escaped;
    text.each_piece([&](std::string_view piece, Origin origin) {
      while (!piece.empty()) {
        // In parts, as what is escaped is longer and not paid for yet.
        const size_t n = whole_characters(piece, 4096);
        escaped.clear();
        escape(piece.substr(0, n), escaped);
        out_.add(escaped, origin);
        piece.remove_prefix(n);
      }
    });
    put("\"");
  }

  void escape(std::string_view piece, std::string& out) const {
    for (size_t at = 0; at < piece.size();) {
      const auto byte = static_cast<unsigned char>(piece[at]);
      if (byte >= 0x80 && style_.ensure_ascii) {
        const CodePoint c = code_point_at(piece, at);
        escape_code_point(c.value, out);
        at += c.length;
        continue;
      }
      ++at;
      switch (byte) {
        case '"':
          out += "\\\"";
          break;
        case '\\':
          out += "\\\\";
          break;
        case '\n':
          out += "\\n";
          break;
        case '\r':
          out += "\\r";
          break;
        case '\t':
          out += "\\t";
          break;
        case '\f':
          out += "\\f";
          break;
        case '\b':
          out += "\\b";
          break;
        default:
          if (byte < 0x20) {
            out += format("\\u{:04x}", byte);
          } else {
            out.push_back(static_cast<char>(byte));
          }
      }
    }
  }

  static void escape_code_point(char32_t c, std::string& out) {
    auto code = static_cast<uint32_t>(c);
    if (code >= 0x10000) {
      code -= 0x10000;
      out += format("\\u{:04x}\\u{:04x}", 0xD800 | code >> 10, 0xDC00 | (code & 0x3FF));
    } else {
      out += format("\\u{:04x}", code);
    }
  }

  void list(const List& list, int level) {
    if (list.items().empty()) return put("[]");
    put("[");
    bool first = true;
    for (const Value& item : list.items()) {
      if (!first) put(style_.item_separator);
      first = false;
      new_line(level + 1);
      write(item, level + 1);
    }
    new_line(level);
    put("]");
  }

  void map(const Map& map, int level) {
    if (map.entries().empty()) return put("{}");
    put("{");
    bool first = true;
    for (const uint32_t i : order(map)) {
      const auto& [key, value] = map.entries()[i];
      if (!first) put(style_.item_separator);
      first = false;
      new_line(level + 1);
      write_key(key);
      put(style_.key_separator);
      write(value, level + 1);
    }
    new_line(level);
    put("}");
  }

  std::vector<uint32_t> order(const Map& map) {
    std::vector<uint32_t> indices(map.size());
    for (size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<uint32_t>(i);
    if (style_.sort_keys) {
      std::stable_sort(indices.begin(), indices.end(), [&](uint32_t a, uint32_t b) {
        return less(map.entries()[a].first, map.entries()[b].first, budget_);
      });
    }
    return indices;
  }

  void write_key(const Value& key) {
    if (key.is_string()) return string(key.as_text());
    put("\"");
    write(key, 0);
    put("\"");
  }

  const JsonStyle& style_;
  MarkedTextBuilder& out_;
  TemplateBudget& budget_;
  Origin origin_ = Origin::kScaffold;
};

}  // namespace

void write_json(const Value& value, const JsonStyle& style, MarkedTextBuilder& out,
                TemplateBudget& budget) {
  JsonWriter(style, out, budget).write(value, 0);
}

}  // namespace strata::text
