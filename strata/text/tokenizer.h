#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strata/text/bpe.h"
#include "strata/text/pretokenizer.h"
#include "strata/text/special_tokens.h"
#include "strata/text/vocab.h"

namespace strata::text {

enum class SpecialParsing {
  kNone,   // text that looks like a special token is ordinary text
  kAllow,  // special tokens are recognised
};

// A part of a text. Chat rendering makes scaffolding (special tokens allowed) and content from
// outside (never).
struct Segment {
  std::string_view text;
  bool allow_special = false;
};

// Text to token ids and back: byte-level BPE. Immutable; any thread.
class Tokenizer {
 public:
  // Errors: kUnsupported naming an unknown model or pre-tokenizer; kCorruptFile for lists that do
  // not fit together (see Vocab, Bpe, SpecialTokens) and for an id outside the list.
  explicit Tokenizer(const VocabData& data);
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // Ids of any bytes: decode(encode(text)) == text also where they are not UTF-8 (those bytes
  // become pieces of their own). No token is added at either end: see add_bos().
  // Errors: kInvalidArgument for 2^31 bytes or more.
  std::vector<int32_t> encode(std::string_view text, SpecialParsing special) const;

  // The same for a text given in parts. A special token is found only where all its bytes are
  // allowed; what lies between the found ones is split as one text, across segment boundaries. So
  // how a text is cut into segments of one permission does not change its ids.
  std::vector<int32_t> encode(std::span<const Segment> segments) const;

  // The bytes of ids, special tokens included. Errors: kInvalidArgument for an id outside the list.
  std::string decode(std::span<const int32_t> ids) const;
  // The bytes of one token; lives as long as the tokenizer. Errors: as decode.
  std::string_view piece(int32_t id) const;

  int32_t n_vocab() const { return vocab_.size(); }
  bool contains(int32_t id) const { return vocab_.contains(id); }
  // Steers the model and is not for display: <|im_end|>, but not <think>. False outside the list.
  bool is_control(int32_t id) const;
  // Control or user-defined. False outside the list.
  bool is_special(int32_t id) const;

  // Generation stops on each of these: eos, eot and eom of the file, and its <|endoftext|> and
  // <|im_end|>. Sorted.
  std::span<const int32_t> stop_ids() const { return stop_ids_; }

  std::optional<int32_t> eos_id() const { return eos_id_; }
  std::optional<int32_t> bos_id() const { return bos_id_; }
  std::optional<int32_t> padding_id() const { return padding_id_; }
  // The file asks for bos_id in front of a prompt.
  bool add_bos() const { return add_bos_; }

  // By the text as it stands in the file: find("<|im_end|>").
  std::optional<int32_t> find(std::string_view token) const { return vocab_.find(token); }

 private:
  // A stretch of bytes in which special tokens are looked for.
  struct Range {
    size_t begin;
    size_t end;
  };
  std::vector<int32_t> encode(std::string_view text, std::span<const Range> allowed) const;
  void read_ids(const VocabData& data);

  Vocab vocab_;
  Pretokenizer pretokenizer_;
  Bpe bpe_;
  SpecialTokens special_;
  std::vector<int32_t> stop_ids_;
  std::optional<int32_t> eos_id_;
  std::optional<int32_t> bos_id_;
  std::optional<int32_t> padding_id_;
  bool add_bos_ = false;
};

}  // namespace strata::text
