#include "strata/text/tokenizer.h"

#include <algorithm>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/gguf/escape.h"

namespace strata::text {
namespace {

// PCRE2 and the heap of Bpe count beyond it; the limit is Bpe's index.
constexpr size_t kMaxTextBytes = (size_t{1} << 31) - 1;

const VocabData& checked_model(const VocabData& data) {
  if (data.model != "gpt2") {
    throw Error(ErrorCode::kUnsupported,
                format("tokenizer model \"{}\"; only \"gpt2\" (byte-level BPE) is known",
                       gguf::escaped(data.model)));
  }
  return data;
}

void check_size(size_t n_bytes) {
  if (n_bytes > kMaxTextBytes) {
    throw Error(ErrorCode::kInvalidArgument,
                format("text of {} bytes; {} at most", n_bytes, kMaxTextBytes));
  }
}

}  // namespace

Tokenizer::Tokenizer(const VocabData& data)
    : vocab_(checked_model(data)),
      pretokenizer_(data.pre),
      bpe_(vocab_, data.merges),
      special_(vocab_) {
  read_ids(data);
}

void Tokenizer::read_ids(const VocabData& data) {
  const auto checked = [this](std::optional<int32_t> id, std::string_view what) {
    if (id && !contains(*id)) {
      throw Error(ErrorCode::kCorruptFile,
                  format("{} token id {} of {} tokens", what, *id, n_vocab()));
    }
    return id;
  };
  eos_id_ = checked(data.eos_id, "eos");
  bos_id_ = checked(data.bos_id, "bos");
  padding_id_ = checked(data.padding_id, "padding");
  add_bos_ = data.add_bos;
  if (add_bos_ && !bos_id_) {
    throw Error(ErrorCode::kCorruptFile, "a bos token is to be added, but none is named");
  }
  for (const std::optional<int32_t> id :
       {eos_id_, checked(data.eot_id, "eot"), checked(data.eom_id, "eom")}) {
    if (id) stop_ids_.push_back(*id);
  }
  // Files name one end; a chat model may as well end on the other.
  for (const std::string_view text : {"<|endoftext|>", "<|im_end|>"}) {
    const std::optional<int32_t> id = find(text);
    if (id && is_control(*id)) stop_ids_.push_back(*id);
  }
  std::sort(stop_ids_.begin(), stop_ids_.end());
  stop_ids_.erase(std::unique(stop_ids_.begin(), stop_ids_.end()), stop_ids_.end());
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, SpecialParsing special) const {
  const Range whole{0, text.size()};
  const size_t n_ranges = special == SpecialParsing::kAllow ? 1 : 0;
  return encode(text, std::span(&whole, n_ranges));
}

std::vector<int32_t> Tokenizer::encode(std::span<const Segment> segments) const {
  std::string text;
  std::vector<Range> allowed;
  for (const Segment& segment : segments) {
    if (segment.text.empty()) continue;
    const size_t begin = text.size();
    text.append(segment.text);
    if (!segment.allow_special) continue;
    if (!allowed.empty() && allowed.back().end == begin) {
      allowed.back().end = text.size();
    } else {
      allowed.push_back({begin, text.size()});
    }
  }
  return encode(text, allowed);
}

std::vector<int32_t> Tokenizer::encode(std::string_view text,
                                       std::span<const Range> allowed) const {
  check_size(text.size());
  std::vector<int32_t> ids;
  std::vector<std::string_view> pieces;
  Bpe::Scratch scratch;
  const auto encode_plain = [&](size_t begin, size_t end) {
    pieces.clear();
    pretokenizer_.split(text.substr(begin, end - begin), pieces);
    for (const std::string_view piece : pieces) bpe_.encode(piece, scratch, ids);
  };
  size_t done = 0;
  for (const Range& range : allowed) {
    size_t from = range.begin;
    while (const auto match = special_.find(text.substr(0, range.end), from)) {
      encode_plain(done, match->begin);
      ids.push_back(match->id);
      done = from = match->end;
    }
  }
  encode_plain(done, text.size());
  return ids;
}

std::string Tokenizer::decode(std::span<const int32_t> ids) const {
  std::string bytes;
  for (const int32_t id : ids) bytes.append(piece(id));
  return bytes;
}

std::string_view Tokenizer::piece(int32_t id) const {
  if (!contains(id)) {
    throw Error(ErrorCode::kInvalidArgument, format("token id {} of {} tokens", id, n_vocab()));
  }
  return vocab_.piece(id);
}

bool Tokenizer::is_control(int32_t id) const {
  return contains(id) && vocab_.type(id) == TokenType::kControl;
}

bool Tokenizer::is_special(int32_t id) const { return contains(id) && vocab_.is_special(id); }

}  // namespace strata::text
