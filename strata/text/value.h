#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "strata/text/marked_text.h"

namespace strata::text {

class List;
class Map;
class TemplateObject;

// What a chat template computes with, and the form in which a request reaches it. Immutable and
// cheap to copy; a copy shares its parts. Never cyclic: objects (namespaces, macros, functions)
// belong to the rendering that made them and are only pointed to.
// Threads: any number may read one value.
class Value {
 public:
  enum class Kind : uint8_t {
    kUndefined,
    kNull,
    kBool,
    kInteger,
    kNumber,  // double
    kString,
    kList,  // list, tuple, and what ranges, dict views and lazy filters give
    kMap,
    kObject,  // callable, namespace or loop; made by templates only
  };

  // Lists and maps inside each other: deeper ones are refused, so that walking, printing and
  // destroying a value need a bounded stack (F-135).
  static constexpr int kMaxDepth = 128;

  using Items = std::vector<Value>;
  using Members = std::vector<std::pair<std::string, Value>>;
  using Entries = std::vector<std::pair<Value, Value>>;

  Value() = default;  // null
  static Value undefined(std::string reason);
  static Value boolean(bool value);
  static Value integer(int64_t value);
  static Value number(double value);
  // Text from outside. Special tokens in it stay plain text.
  static Value content(std::string text);
  // Text that may hold special tokens: written by us or checked against a fixed list, such as the
  // role names and the model's own bos_token.
  static Value scaffold(std::string text);
  static Value string(MarkedText text);
  // Errors: kInvalidArgument if nested deeper than kMaxDepth.
  static Value list(Items items);
  // Keys are content. A key given twice keeps its first place and its last value.
  // Errors: as list().
  static Value map(Members members);
  // Keys are undefined-free scalars (null, bool, integer, number, string); 1, 1.0 and true are one
  // key. Errors: kInvalidArgument for other keys, and as list().
  static Value map(Entries entries);
  static Value of(std::shared_ptr<const List> list);
  static Value of(std::shared_ptr<const Map> map);
  static Value object(TemplateObject* object);

  Kind kind() const { return static_cast<Kind>(data_.index()); }
  bool is(Kind kind) const { return this->kind() == kind; }
  bool is_undefined() const { return is(Kind::kUndefined); }
  bool is_null() const { return is(Kind::kNull); }
  bool is_string() const { return is(Kind::kString); }
  bool is_list() const { return is(Kind::kList); }
  bool is_map() const { return is(Kind::kMap); }

  // The kind must be right; else it is our mistake and the process stops.
  bool as_bool() const;
  int64_t as_integer() const;
  double as_number() const;
  const MarkedText& as_text() const;
  std::string_view as_string() const { return as_text().bytes(); }
  const List& as_list() const;
  const Map& as_map() const;
  TemplateObject* as_object() const;
  // Why it is undefined: "'x' is undefined".
  const std::string& reason() const;

  // 0 for scalars, 1 for a list of scalars.
  int depth() const;

 private:
  struct Undefined {
    std::shared_ptr<const std::string> reason;  // shared by the copies of one value
  };
  // The shared pointers here are owned by all copies of a value; what they point to never changes.
  using Data = std::variant<Undefined, std::nullptr_t, bool, int64_t, double,
                            std::shared_ptr<const MarkedText>, std::shared_ptr<const List>,
                            std::shared_ptr<const Map>, TemplateObject*>;
  Data data_ = nullptr;
};

// What Python type a list stands for: it decides how it prints, compares and counts as true.
enum class ListKind : uint8_t { kList, kTuple, kGenerator, kRange, kKeys, kValues, kItems };

class List {
 public:
  // Errors: kInvalidArgument if nested deeper than Value::kMaxDepth.
  List(Value::Items items, ListKind kind, Charge charge = {});
  const Value::Items& items() const { return items_; }
  ListKind kind() const { return kind_; }
  int depth() const { return depth_; }

 private:
  Value::Items items_;
  ListKind kind_;
  int depth_;
  Charge charge_;
};

// Keeps the order of insertion. Lookup is by binary search, so that chosen keys cannot make it
// slow.
class Map {
 public:
  // Errors: as Value::map(Entries).
  explicit Map(Value::Entries entries, Charge charge = {});
  const Value::Entries& entries() const { return entries_; }
  size_t size() const { return entries_.size(); }
  int depth() const { return depth_; }
  // Null if absent or if no key can be like this one.
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;

 private:
  Value::Entries entries_;
  std::vector<uint32_t> by_key_;  // indices of entries_, sorted by key
  int depth_ = 1;
  Charge charge_;
};

}  // namespace strata::text
