#include "strata/server/json.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "strata/base/format.h"
#include "strata/base/text.h"
#include "strata/server/request_error.h"

namespace strata::server {
namespace {

[[noreturn]] void refuse(std::string message, std::string path = "") {
  throw RequestError(ErrorCode::kInvalidArgument, std::move(message), std::move(path),
                     "invalid_json");
}

// Builds the value as the parser reports its parts, and stops it at the first thing that a
// permissive parser would let through.
class Builder final : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(std::string_view what) : what_(what) {}

  Json take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    Level& level = levels_.back();
    if (!level.keys.insert(name).second)
      refuse(format("{}: the key is given twice", path_with(name)), path_with(name));
    level.key = std::move(name);
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& e) override {
    // The parser's own words quote the body, which may be long and private.
    if (e.id == 406)
      refuse(
          format("{} is not valid JSON: a number near byte {} is out of range", what_, position));
    refuse(format("{} is not valid JSON: byte {} is not what can stand there", what_, position));
  }

 private:
  struct Level {
    Json* value;
    std::string key;  // of an object: the member under way
    std::set<std::string>
        keys;  // of all its members: the object itself finds a name by looking at all
  };

  bool add(Json value) {
    place(std::move(value));
    return true;
  }

  Json* place(Json value) {
    if (levels_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Level& level = levels_.back();
    if (level.value->is_array()) {
      level.value->push_back(std::move(value));
      return &level.value->back();
    }
    // Not by operator[], which looks at all members.
    Json::object_t::Container& members = level.value->get_ref<Json::object_t&>();
    return &members.emplace_back(level.key, std::move(value)).second;
  }

  bool open(Json empty) {
    if (levels_.size() >= static_cast<size_t>(kMaxJsonDepth))
      refuse(format("nested too deep: more than {} levels", kMaxJsonDepth));
    // Parents do not move while a child is open, so the pointers stay good.
    Json* value = place(std::move(empty));
    levels_.push_back({value, "", {}});
    return true;
  }

  bool close() {
    levels_.pop_back();
    return true;
  }

  std::string path_with(const std::string& name) const {
    std::string path;
    for (const Level& level : levels_) {
      if (level.value->is_array())
        path += format("[{}]", level.value->size() - 1);
      else if (&level != &levels_.back())
        path += (path.empty() ? "" : ".") + level.key;
    }
    return path + (path.empty() ? "" : ".") + name;
  }

  const std::string_view what_;
  Json root_;
  std::vector<Level> levels_;
};

}  // namespace

Json parse_json(std::string_view text, std::string_view what) {
  if (trimmed(text).empty()) refuse(format("{} is empty; it must be a JSON object", what));
  if (text.starts_with("\xEF\xBB\xBF")) refuse(format("{} starts with a byte order mark", what));
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"))
    refuse(format("{} is UTF-16; JSON is UTF-8", what));
  Builder builder(what);
  if (!Json::sax_parse(text.begin(), text.end(), &builder))
    refuse(format("{} is not valid JSON", what));
  return builder.take();
}

std::string dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

text::Value to_value(const Json& value) {
  switch (value.type()) {
    case Json::value_t::boolean:
      return text::Value::boolean(value.get<bool>());
    case Json::value_t::number_integer:
      return text::Value::integer(value.get<int64_t>());
    case Json::value_t::number_unsigned: {
      const auto number = value.get<uint64_t>();
      if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
        return text::Value::number(static_cast<double>(number));
      return text::Value::integer(static_cast<int64_t>(number));
    }
    case Json::value_t::number_float:
      return text::Value::number(value.get<double>());
    case Json::value_t::string:
      return text::Value::content(value.get<std::string>());
    case Json::value_t::array: {
      text::Value::Items items;
      for (const Json& item : value) items.push_back(to_value(item));
      return text::Value::list(std::move(items));
    }
    case Json::value_t::object: {
      text::Value::Members members;
      for (const auto& [key, member] : value.items()) members.emplace_back(key, to_value(member));
      return text::Value::map(std::move(members));
    }
    case Json::value_t::null:
    case Json::value_t::binary:
    case Json::value_t::discarded:
      break;
  }
  return {};
}

}  // namespace strata::server
