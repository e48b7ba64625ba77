#include "strata/text/pretokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <new>
#include <string>
#include <utility>

#include "strata/base/check.h"
#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/gguf/escape.h"
#include "strata/text/utf8.h"

namespace strata::text {
namespace {

// White space as Unicode defines it. PCRE2's own \s also takes U+180E, which left the class in
// Unicode 6.3 and which the training tokenizer does not take.
#define WS R"(\t-\r\x{85}\p{Z})"

// Qwen2: contractions | letters with one leading non-letter | a digit | punctuation with its line
// ends | line ends | white space before the last one of a run | white space.
// Each character matches one of them. No alternative makes the matcher try a run of n characters
// more than a few times over, so a text takes linear time.
constexpr const char* kQwen2 = R"((?i:'s|'t|'re|'ve|'m|'ll|'d))"
                               R"(|[^\r\n\p{L}\p{N}]?\p{L}+)"
                               R"(|\p{N})"
                               R"(| ?[^)" WS R"(\p{L}\p{N}]+[\r\n]*)"
                               R"(|[)" WS R"(]*[\r\n]+)"
                               R"(|[)" WS R"(]+(?![^)" WS R"(]))"
                               R"(|[)" WS R"(]+)";

// Qwen3.5: the same, with combining marks counted as letters.
constexpr const char* kQwen35 = R"((?i:'s|'t|'re|'ve|'m|'ll|'d))"
                                R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+)"
                                R"(|\p{N})"
                                R"(| ?[^)" WS R"(\p{L}\p{M}\p{N}]+[\r\n]*)"
                                R"(|[)" WS R"(]*[\r\n]+)"
                                R"(|[)" WS R"(]+(?![^)" WS R"(]))"
                                R"(|[)" WS R"(]+)";

#undef WS

struct Pattern {
  std::string_view name;
  const char* regex;
};
constexpr Pattern kPatterns[] = {
    {"qwen2", kQwen2},
    {"qwen35", kQwen35},
};

template <auto* kFree>
struct Deleter {
  template <class T>
  void operator()(T* pointer) const {
    kFree(pointer);
  }
};
using MatchData = std::unique_ptr<pcre2_match_data, Deleter<&pcre2_match_data_free>>;

}  // namespace

struct Pretokenizer::Code {
  std::unique_ptr<pcre2_code, Deleter<&pcre2_code_free>> regex;
  std::unique_ptr<pcre2_match_context, Deleter<&pcre2_match_context_free>> context;

  // The length of the piece at `begin`.
  size_t match(std::string_view text, size_t begin, pcre2_match_data* data) const;
};

Pretokenizer::Pretokenizer(std::string_view name) : code_(std::make_unique<Code>()) {
  const char* regex = nullptr;
  for (const Pattern& pattern : kPatterns) {
    if (pattern.name == name) regex = pattern.regex;
  }
  if (regex == nullptr) {
    throw Error(ErrorCode::kUnsupported,
                format("unknown pre-tokenizer \"{}\"", gguf::escaped(name)));
  }
  int code = 0;
  size_t offset = 0;
  code_->regex.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(regex), PCRE2_ZERO_TERMINATED,
                                   PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED, &code, &offset,
                                   nullptr));
  if (code_->regex == nullptr) {
    throw Error(ErrorCode::kInternal,
                format("pre-tokenizer {}: PCRE2 error {} at {}", name, code, offset));
  }
  code_->context.reset(pcre2_match_context_create(nullptr));
  if (code_->context == nullptr) throw std::bad_alloc();
  // The limit guards against patterns that explode; ours take one step a character, and the
  // default would refuse a long run of spaces.
  pcre2_set_match_limit(code_->context.get(), UINT32_MAX);
}

Pretokenizer::~Pretokenizer() = default;
Pretokenizer::Pretokenizer(Pretokenizer&&) noexcept = default;
Pretokenizer& Pretokenizer::operator=(Pretokenizer&&) noexcept = default;

size_t Pretokenizer::Code::match(std::string_view text, size_t begin,
                                 pcre2_match_data* data) const {
  // The caller has checked the text once; PCRE2 would check all of the rest for each piece.
  const int result = pcre2_match(regex.get(), reinterpret_cast<PCRE2_SPTR>(text.data()),
                                 text.size(), begin, PCRE2_NO_UTF_CHECK, data, context.get());
  if (result == PCRE2_ERROR_NOMEMORY) throw std::bad_alloc();
  if (result < 0) {
    throw Error(ErrorCode::kInternal, format("PCRE2 error {} at byte {}", result, begin));
  }
  const size_t end = pcre2_get_ovector_pointer(data)[1];
  STRATA_CHECK(end > begin && end <= text.size());
  return end - begin;
}

void Pretokenizer::split(std::string_view text, std::vector<std::string_view>& pieces) const {
  if (text.empty()) return;
  const MatchData data(pcre2_match_data_create(1, nullptr));
  if (data == nullptr) throw std::bad_alloc();
  while (!text.empty()) {
    const std::string_view valid = text.substr(0, valid_utf8_prefix(text));
    for (size_t pos = 0; pos < valid.size();) {
      const size_t length = code_->match(valid, pos, data.get());
      pieces.push_back(valid.substr(pos, length));
      pos += length;
    }
    text.remove_prefix(valid.size());
    size_t invalid = 0;
    while (invalid < text.size()) {
      const Utf8Step step = utf8_step(text.substr(invalid));
      if (step.status == Utf8Status::kValid) break;
      invalid += step.length;
    }
    if (invalid > 0) pieces.push_back(text.substr(0, invalid));
    text.remove_prefix(invalid);
  }
}

}  // namespace strata::text
