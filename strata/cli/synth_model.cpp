#include "strata/cli/synth_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/base/random_bits.h"
#include "strata/cli/synth_blocks.h"

namespace strata::cli {
namespace {

using quant::Type;

constexpr int kNgram = 3, kTaps = 4;
// Handed to the file at once: enough to share, little to hold.
constexpr Bytes kPieceBytes = 32 << 20;

std::vector<uint64_t> primes_from(uint64_t start, int n) {
  std::vector<uint64_t> primes;
  for (uint64_t x = std::max<uint64_t>(start, 2); primes.size() < static_cast<size_t>(n); ++x) {
    bool prime = true;
    for (uint64_t d = 2; d * d <= x && prime; ++d) prime = x % d != 0;
    if (prime) primes.push_back(x);
  }
  return primes;
}

// In [0, 1).
double fraction(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

}  // namespace

SynthModel::SynthModel(const SynthShape& shape)
    : s_(shape), primes_(primes_from(static_cast<uint64_t>(shape.ple_base), 2 * shape.ple_heads)) {
  const uint64_t rows = std::accumulate(primes_.begin(), primes_.end(), uint64_t{0});
  declare("token_embd.weight", s_.embedding, {s_.vocab, s_.width});
  site("output_hc_", false);
  declare("output.weight", s_.embedding, {s_.vocab, s_.width});
  declare("per_layer_token_embd.weight", s_.ple,
          {static_cast<int64_t>((rows + 127) / 128 * 128), s_.width / (2 * s_.ple_heads)});
  for (int l = 0; l < n_blocks(); ++l) {
    const std::string b = format("blk.{}.", l);
    site(b + "hc_attn_", true);
    site(b + "hc_ffn_", true);
    experts(b);
    if (attends(l)) {
      attention(b);
    } else {
      delta_net(b);
    }
    if (l == ngram_layer()) ngram(b);
    if (l == s_.layers) draft(b);
  }
  keys();
  if (!s_.header_only) vocabulary();
}

void SynthModel::declare(const std::string& name, Type type, std::vector<int64_t> shape,
                         Content content) {
  const auto row = quant::find_row_bytes(type, static_cast<uint64_t>(shape.back()));
  if (!row) {
    throw Error(ErrorCode::kInvalidArgument,
                format("{} cannot be {}: its rows of {} values are no whole blocks of {}", name,
                       quant::name(type), shape.back(), quant::traits(type).block_values));
  }
  writer_.declare(name, type, shape);
  Bytes bytes = *row;
  for (size_t i = 0; i + 1 < shape.size(); ++i) bytes *= static_cast<Bytes>(shape[i]);
  tensors_.push_back({name, type, std::move(shape), content, bytes});
}

void SynthModel::ones(const std::string& name, int64_t n) {
  declare(name, Type::kF32, {n}, Content::kOnes);
}

void SynthModel::site(const std::string& prefix, bool inject) {
  const int64_t wide = int64_t{s_.streams} * s_.width;
  // The rows of `up` are short: as in real files they are Q8_0 where the type has longer blocks.
  const bool fits = quant::find_row_bytes(s_.hyper, static_cast<uint64_t>(s_.low_rank)).has_value();
  ones(prefix + "norm.weight", wide);
  declare(prefix + "down.weight", s_.hyper, {s_.low_rank, wide});
  declare(prefix + "up.weight", fits ? s_.hyper : Type::kQ8_0, {wide, s_.low_rank});
  if (inject) declare(prefix + "inject.weight", Type::kF32, {s_.streams, wide});
}

void SynthModel::experts(const std::string& b) {
  declare(b + "ffn_gate_inp.weight", Type::kF32, {s_.experts, s_.width});
  declare(b + "ffn_gate_inp_shexp.weight", Type::kF32, {s_.width});
  declare(b + "ffn_gate_exps.weight", s_.gate, {s_.experts, s_.ff, s_.width});
  declare(b + "ffn_up_exps.weight", s_.gate, {s_.experts, s_.ff, s_.width});
  declare(b + "ffn_down_exps.weight", s_.down, {s_.experts, s_.width, s_.ff});
  declare(b + "ffn_gate_shexp.weight", s_.dense, {s_.ff, s_.width});
  declare(b + "ffn_up_shexp.weight", s_.dense, {s_.ff, s_.width});
  declare(b + "ffn_down_shexp.weight", Type::kQ8_0, {s_.width, s_.ff});
}

void SynthModel::delta_net(const std::string& b) {
  const int64_t inner = int64_t{s_.gdn_value_heads} * s_.gdn_dim;
  const int64_t channels = inner + 2 * int64_t{s_.gdn_key_heads} * s_.gdn_dim;
  declare(b + "attn_qkv.weight", s_.dense, {channels, s_.width});
  declare(b + "attn_gate.weight", s_.dense, {inner, s_.width});
  declare(b + "ssm_beta.weight", Type::kF32, {s_.gdn_value_heads, s_.width});
  declare(b + "ssm_alpha.weight", Type::kF32, {s_.gdn_value_heads, s_.width});
  declare(b + "ssm_a", Type::kF32, {s_.gdn_value_heads}, Content::kDecay);
  declare(b + "ssm_dt.bias", Type::kF32, {s_.gdn_value_heads});
  declare(b + "ssm_conv1d.weight", Type::kF32, {channels, kTaps}, Content::kTaps);
  ones(b + "ssm_norm.weight", s_.gdn_dim);
  declare(b + "ssm_out.weight", s_.dense, {s_.width, inner});
}

void SynthModel::attention(const std::string& b) {
  const int64_t kv = int64_t{s_.kv_heads} * s_.head_dim, q = int64_t{s_.heads} * s_.head_dim;
  declare(b + "attn_q.weight", s_.dense, {2 * q, s_.width});  // query and gate of each head
  declare(b + "attn_k.weight", s_.dense, {kv, s_.width});
  declare(b + "attn_v.weight", s_.dense, {kv, s_.width});
  declare(b + "attn_output.weight", s_.dense, {s_.width, q});
  ones(b + "attn_q_norm.weight", s_.head_dim);
  ones(b + "attn_k_norm.weight", s_.head_dim);
  declare(b + "indexer.q_proj.weight", s_.dense,
          {int64_t{s_.index_heads} * s_.index_dim, s_.width});
  declare(b + "indexer.k_proj.weight", s_.dense, {s_.index_dim, s_.width});
  ones(b + "indexer.q_norm.weight", s_.index_dim);
  ones(b + "indexer.k_norm.weight", s_.index_dim);
}

void SynthModel::ngram(const std::string& b) {
  const int64_t wide = int64_t{s_.streams} * s_.width;
  declare(b + "ple_key.weight", s_.dense, {wide, s_.width});
  declare(b + "ple_value.weight", s_.dense, {s_.width, s_.width});
  for (const char* what : {"key", "query", "conv"})
    ones(format("{}ple_norm_{}.weight", b, what), wide);
  declare(b + "ple_conv1d.weight", Type::kF32, {wide, kTaps}, Content::kTaps);
}

void SynthModel::draft(const std::string& b) {
  declare(b + "nextn.eh_proj.weight", s_.dense, {s_.width, 2 * int64_t{s_.width}});
  ones(b + "nextn.enorm.weight", s_.width);
  ones(b + "nextn.hnorm.weight", int64_t{s_.streams} * s_.width);
  site(b + "nextn.hc_head_", false);
}

void SynthModel::keys() {
  const std::string p = "qwen4exp.";
  const auto u32 = [&](const char* name, int64_t value) {
    writer_.add(p + name, static_cast<uint32_t>(value));
  };
  writer_.add("general.architecture", "qwen4exp");
  writer_.add("general.name", "synthetic");
  writer_.add("general.quantization_version", uint32_t{2});
  u32("block_count", n_blocks());
  u32("context_length", 262144);
  u32("embedding_length", s_.width);
  u32("hyper_connection.count", s_.streams);
  u32("hyper_connection.low_rank", s_.low_rank);
  u32("full_attention_interval", 4);
  u32("attention.head_count", s_.heads);
  u32("attention.head_count_kv", s_.kv_heads);
  u32("attention.key_length", s_.head_dim);
  u32("attention.value_length", s_.head_dim);
  u32("attention.indexer.head_count", s_.index_heads);
  u32("attention.indexer.key_length", s_.index_dim);
  u32("attention.indexer.top_k", s_.index_top_k);
  u32("rope.dimension_count", s_.rope_dims);
  u32("expert_count", s_.experts);
  u32("expert_used_count", s_.top_k);
  u32("expert_feed_forward_length", s_.ff);
  u32("expert_shared_feed_forward_length", s_.ff);
  u32("ssm.conv_kernel", kTaps);
  u32("ssm.state_size", s_.gdn_dim);
  u32("ssm.group_count", s_.gdn_key_heads);
  u32("ssm.time_step_rank", s_.gdn_value_heads);
  u32("ssm.inner_size", int64_t{s_.gdn_value_heads} * s_.gdn_dim);
  u32("ple.ngram_size", kNgram);
  u32("ple.heads_per_ngram", s_.ple_heads);
  u32("ple.conv_kernel", kTaps);
  u32("ple.eos_token_id", s_.vocab - 14);
  u32("embedding_length_per_layer_input", s_.width / (2 * s_.ple_heads));
  if (s_.draft) u32("nextn_predict_layers", 1);
  writer_.add(p + "attention.layer_norm_rms_epsilon", 1e-6F);
  writer_.add(p + "rope.freq_base", 1e7F);

  // Pairs for time, row and column, the first taking what does not divide.
  const int pairs = s_.rope_dims / 2, third = pairs / 3;
  const int left = pairs - 3 * third;
  writer_.add_array(
      p + "rope.dimension_sections",
      std::vector<int32_t>{third + (left > 0 ? 1 : 0), third + (left > 1 ? 1 : 0), third, 0});
  std::vector<uint32_t> ratios;
  for (int l = 0; l < n_blocks(); ++l) {
    ratios.push_back(attends(l) ? static_cast<uint32_t>(s_.index_block) : 0);
  }
  writer_.add_array(p + "attention.compress_ratios", ratios);

  std::vector<uint64_t> multipliers, offsets;
  for (uint64_t i = 0; i < kNgram; ++i) {
    multipliers.push_back((random_bits(s_.seed, ~i) >> 20) | 1);  // odd; times an id below 2^63
  }
  uint64_t rows = 0;
  for (const uint64_t prime : primes_) {
    offsets.push_back(rows);
    rows += prime;
  }
  writer_.add_array(p + "ple.layers", std::vector<uint32_t>{static_cast<uint32_t>(ngram_layer())});
  writer_.add_array(p + "ple.layer_multipliers", multipliers);
  writer_.add_array(p + "ple.head_offsets", offsets);
  writer_.add_array(p + "ple.head_vocab_sizes", primes_);
}

// Bytes, all pairs of small letters with a merge each, unused places, special tokens.
void SynthModel::vocabulary() {
  const auto utf8 = [](uint32_t c) {
    std::string text;
    if (c < 0x80) return std::string(1, static_cast<char>(c));
    text += static_cast<char>(0xC0 | (c >> 6));
    text += static_cast<char>(0x80 | (c & 63));
    return text;
  };
  std::vector<std::string> tokens, merges, hidden;
  std::vector<int32_t> types;
  const auto add = [&](std::string text, int32_t type) {
    tokens.push_back(std::move(text));
    types.push_back(type);
  };
  // Printable bytes stand for themselves, the others come after them as characters from 256 on.
  uint32_t next = 256;
  for (uint32_t b = 0; b < 256; ++b) {
    const bool printable = (b > 32 && b < 127) || (b > 160 && b != 173);
    if (printable) {
      add(utf8(b), 1);
    } else {
      hidden.push_back(utf8(next++));
    }
  }
  for (std::string& text : hidden) add(std::move(text), 1);
  for (char a = 'a'; a <= 'z'; ++a) {
    for (char b = 'a'; b <= 'z'; ++b) {
      add({a, b}, 1);
      merges.push_back({a, ' ', b});
    }
  }
  const size_t first_special = static_cast<size_t>(s_.vocab) - 14;
  for (int i = 0; tokens.size() < first_special; ++i) add(format("[PAD{}]", i), 5);
  for (const char* text : {"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>",
                           "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>"}) {
    add(text, 3);
  }
  for (const char* text : {"<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>",
                           "<think>", "</think>"}) {
    add(text, 4);
  }
  writer_.add("tokenizer.ggml.model", "gpt2");
  writer_.add("tokenizer.ggml.pre", "qwen35");
  writer_.add_array("tokenizer.ggml.tokens", std::span<const std::string>(tokens));
  writer_.add_array("tokenizer.ggml.token_type", types);
  writer_.add_array("tokenizer.ggml.merges", std::span<const std::string>(merges));
  writer_.add("tokenizer.ggml.bos_token_id", static_cast<uint32_t>(first_special));
  writer_.add("tokenizer.ggml.eos_token_id", static_cast<uint32_t>(first_special + 2));
  writer_.add("tokenizer.ggml.add_bos_token", false);
}

Bytes SynthModel::tensor_bytes() const {
  Bytes sum = 0;
  for (const Tensor& tensor : tensors_) sum += tensor.bytes;
  return sum;
}

Bytes SynthModel::expert_bytes() const {
  Bytes sum = 0;
  for (const Tensor& tensor : tensors_) {
    if (tensor.name.find("_exps.") != std::string::npos) sum += tensor.bytes;
  }
  return sum;
}

void SynthModel::write_tensor(const Tensor& tensor, uint64_t key, ThreadPool& pool,
                              std::vector<std::byte>& piece,
                              const std::function<void(Bytes)>& written) {
  if (tensor.content == Content::kOnes || tensor.content == Content::kDecay) {
    std::vector<float> values(tensor.bytes / sizeof(float), 1.0F);
    if (tensor.content == Content::kDecay) {
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<float>(-0.5 - 3.5 * fraction(random_bits(key, i)));
      }
    }
    writer_.append(std::as_bytes(std::span(values)));
    return written(tensor.bytes);
  }
  const double deviation = tensor.content == Content::kTaps
                               ? 0.3
                               : 1 / std::sqrt(static_cast<double>(tensor.shape.back()));
  const RandomBlocks blocks(tensor.type, deviation, key);
  const Bytes block = static_cast<Bytes>(quant::traits(tensor.type).block_bytes);
  const uint64_t n_blocks = tensor.bytes / block;
  const uint64_t step = kPieceBytes / block / RandomBlocks::kGranule * RandomBlocks::kGranule;
  for (uint64_t first = 0; first < n_blocks; first += step) {
    const uint64_t n = std::min(step, n_blocks - first);
    piece.resize(n * block);
    pool.parallel_for({.n_items = static_cast<int64_t>(n),
                       .grain = RandomBlocks::kGranule,
                       .ns_per_item = static_cast<double>(block) / 2},
                      [&](int64_t begin, int64_t end) {
                        const auto b = static_cast<uint64_t>(begin), e = static_cast<uint64_t>(end);
                        blocks.fill(first + b,
                                    std::span(piece).subspan(b * block, (e - b) * block));
                      });
    writer_.append(piece);
    written(n * block);
  }
}

void SynthModel::write(io::Output& out, ThreadPool& pool,
                       const std::function<void(Bytes, Bytes)>& progress) {
  const Bytes total = tensor_bytes();
  Bytes done = 0;
  std::vector<std::byte> piece;
  writer_.begin(out);
  if (s_.header_only) return;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    write_tensor(tensors_[i], random_bits(s_.seed, i), pool, piece, [&](Bytes n) {
      done += n;
      if (progress) progress(done, total);
    });
  }
  writer_.finish();
}

}  // namespace strata::cli
