#include "strata/server/answer/json_scanner.h"

namespace strata::server {
namespace {

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

}  // namespace

void JsonScanner::close() { state_ = open_.empty() ? State::kDone : State::kNext; }

bool JsonScanner::begin_value(char c) {
  switch (c) {
    case '{':
    case '[':
      if (open_.size() >= kMaxDepth) return false;
      open_.push_back(c);
      state_ = c == '{' ? State::kFirstKey : State::kFirstValue;
      return true;
    case '"':
      in_key_ = false;
      state_ = State::kString;
      return true;
    case '-':
      state_ = State::kNumberStart;
      return true;
    case 't':
    case 'f':
    case 'n':
      word_ = c == 't' ? "rue" : c == 'f' ? "alse" : "ull";
      state_ = State::kWord;
      return true;
    default:
      if (!is_digit(c)) return false;
      state_ = c == '0' ? State::kZero : State::kInteger;
      return true;
  }
}

bool JsonScanner::string_byte(char c) {
  if (state_ == State::kEscape) {
    if (c == 'u') {
      state_ = State::kUnicode;
      n_digits_ = 0;
      return true;
    }
    if (std::string("\"\\/bfnrt").find(c) == std::string::npos) return false;
    state_ = State::kString;
    return true;
  }
  if (state_ == State::kUnicode) {
    if (!is_hex(c)) return false;
    if (++n_digits_ == 4) state_ = State::kString;
    return true;
  }
  if (c == '\\') {
    state_ = State::kEscape;
  } else if (c == '"') {
    if (in_key_)
      state_ = State::kColon;
    else
      close();
  } else if (static_cast<unsigned char>(c) < 0x20) {
    return false;
  }
  return true;
}

bool JsonScanner::ends_number() const {
  return state_ == State::kZero || state_ == State::kInteger || state_ == State::kFraction ||
         state_ == State::kExponentDigits;
}

bool JsonScanner::number_byte(char c) {
  const State before = state_;
  const bool integer = before == State::kZero || before == State::kInteger;
  if (is_digit(c)) {
    if (before == State::kZero) return false;
    if (before == State::kNumberStart) state_ = c == '0' ? State::kZero : State::kInteger;
    if (before == State::kPoint) state_ = State::kFraction;
    if (before == State::kExponent || before == State::kExponentSign)
      state_ = State::kExponentDigits;
    return true;
  }
  if (c == '.' && integer) {
    state_ = State::kPoint;
    return true;
  }
  if ((c == 'e' || c == 'E') && (integer || before == State::kFraction)) {
    state_ = State::kExponent;
    return true;
  }
  if ((c == '+' || c == '-') && before == State::kExponent) {
    state_ = State::kExponentSign;
    return true;
  }
  if (!ends_number()) return false;
  close();
  if (state_ == State::kNext && feed(c)) return true;
  state_ = before;
  return false;
}

bool JsonScanner::next_byte(char c) {
  const bool in_object = open_.back() == '{';
  if (c == ',') {
    state_ = in_object ? State::kKey : State::kValue;
    return true;
  }
  if (c != (in_object ? '}' : ']')) return false;
  open_.pop_back();
  close();
  return true;
}

bool JsonScanner::feed(char c) {
  switch (state_) {
    case State::kString:
    case State::kEscape:
    case State::kUnicode:
      return string_byte(c);
    case State::kWord:
      if (c != *word_) return false;
      if (*++word_ == '\0') close();
      return true;
    case State::kNumberStart:
    case State::kZero:
    case State::kInteger:
    case State::kPoint:
    case State::kFraction:
    case State::kExponent:
    case State::kExponentSign:
    case State::kExponentDigits:
      return number_byte(c);
    default:
      break;
  }
  if (state_ == State::kDone) return false;
  if (is_space(c)) return true;
  switch (state_) {
    case State::kValue:
      return begin_value(c);
    case State::kFirstValue:
      return c == ']' ? next_byte(c) : begin_value(c);
    case State::kFirstKey:
      if (c == '}') return next_byte(c);
      [[fallthrough]];
    case State::kKey:
      if (c != '"') return false;
      in_key_ = true;
      state_ = State::kString;
      return true;
    case State::kColon:
      if (c != ':') return false;
      state_ = State::kValue;
      return true;
    default:
      return next_byte(c);
  }
}

std::string JsonScanner::completion() const {
  std::string text;
  const auto rest_of_string = [&] { text += in_key_ ? "\":null" : "\""; };
  switch (state_) {
    case State::kValue:
      text = "null";
      break;
    case State::kKey:
      text = "\"\":null";
      break;
    case State::kColon:
      text = ":null";
      break;
    case State::kEscape:
      text = "\\";
      rest_of_string();
      break;
    case State::kUnicode:
      text.assign(static_cast<size_t>(4 - n_digits_), '0');
      rest_of_string();
      break;
    case State::kString:
      rest_of_string();
      break;
    case State::kNumberStart:
    case State::kPoint:
    case State::kExponent:
    case State::kExponentSign:
      text = "0";
      break;
    case State::kWord:
      text = word_;
      break;
    default:
      break;
  }
  for (size_t i = open_.size(); i-- > 0;) text += open_[i] == '{' ? '}' : ']';
  return text;
}

}  // namespace strata::server
