#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace strata::server {

// Follows one JSON value byte by byte: whether each may stand where it stands, and what is missing
// to make the text so far a whole value.
class JsonScanner {
 public:
  // False: the byte cannot follow; nothing changes. White space behind the value is not taken.
  bool feed(char c);
  bool done() const { return state_ == State::kDone; }
  bool started() const { return state_ != State::kValue || !open_.empty(); }
  // The shortest end, up to the values that are not there yet: null.
  std::string completion() const;

 private:
  enum class State {
    kValue,       // a value must come
    kFirstValue,  // or the end of the list
    kFirstKey,    // a key or the end of the object
    kKey,
    kColon,
    kNext,  // a comma or an end
    kString,
    kEscape,
    kUnicode,
    kNumberStart,  // behind a minus
    kZero,
    kInteger,
    kPoint,
    kFraction,
    kExponent,
    kExponentSign,
    kExponentDigits,
    kWord,
    kDone,
  };
  bool begin_value(char c);
  bool string_byte(char c);
  bool number_byte(char c);
  bool ends_number() const;
  bool next_byte(char c);
  void close();

  static constexpr size_t kMaxDepth = 64;
  State state_ = State::kValue;
  std::vector<char> open_;  // '{' and '['
  bool in_key_ = false;
  int n_digits_ = 0;       // of \uXXXX
  const char* word_ = "";  // what is left of true, false, null
};

}  // namespace strata::server
