#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "strata/base/ids.h"
#include "strata/base/thread_pool.h"
#include "strata/gguf/writer.h"
#include "strata/io/output.h"

namespace strata::cli {

// A qwen4exp model with random weights. The defaults are the geometry of the real ones, with fewer
// layers, experts and n-grams.
struct SynthShape {
  int layers = 12;  // of the trunk
  bool draft = false;
  int width = 2560, streams = 4, low_rank = 320;
  int vocab = 32768;
  int experts = 64, top_k = 10, ff = 640;
  int heads = 24, kv_heads = 2, head_dim = 256, rope_dims = 64;
  int index_heads = 4, index_dim = 128, index_top_k = 2048, index_block = 4;
  int gdn_key_heads = 16, gdn_value_heads = 48, gdn_dim = 128;
  int ple_heads = 8;          // of each of two orders of n-grams
  int64_t ple_base = 20'000;  // rows of each head: the primes from here on
  quant::Type gate = quant::Type::kQ4_K, down = quant::Type::kQ5_0, dense = quant::Type::kQ6_K,
              hyper = quant::Type::kQ8_0, ple = quant::Type::kIQ4_NL,
              embedding = quant::Type::kQ6_K;
  uint64_t seed = 3;
  bool header_only = false;  // neither tensors nor vocabulary

  // The least vocabulary: bytes, pairs of letters, special tokens.
  static constexpr int kMinVocab = 256 + 26 * 26 + 14;
};

// The tensors and keys of such a file, and its bytes: a function of the shape alone.
class SynthModel {
 public:
  // Errors: kInvalidArgument naming the tensor if a row is no whole number of blocks of its type.
  explicit SynthModel(const SynthShape& shape);

  size_t n_tensors() const { return tensors_.size(); }
  Bytes tensor_bytes() const;  // of all tensors
  Bytes expert_bytes() const;  // of the routed experts among them
  // progress(done, total) in bytes, after each piece. May be called once.
  void write(io::Output& out, ThreadPool& pool, const std::function<void(Bytes, Bytes)>& progress);

 private:
  enum class Content : uint8_t { kRandom, kOnes, kTaps, kDecay };
  struct Tensor {
    std::string name;
    quant::Type type;
    std::vector<int64_t> shape;
    Content content;
    Bytes bytes;
  };
  void declare(const std::string& name, quant::Type type, std::vector<int64_t> shape,
               Content content = Content::kRandom);
  void ones(const std::string& name, int64_t n);
  void site(const std::string& prefix, bool inject);
  void experts(const std::string& block);
  void delta_net(const std::string& block);
  void attention(const std::string& block);
  void ngram(const std::string& block);
  void draft(const std::string& block);
  void keys();
  void vocabulary();
  void write_tensor(const Tensor& tensor, uint64_t key, ThreadPool& pool,
                    std::vector<std::byte>& piece, const std::function<void(Bytes)>& written);

  int n_blocks() const { return s_.layers + (s_.draft ? 1 : 0); }
  bool attends(int block) const { return block % 4 == 3 || block >= s_.layers; }
  int ngram_layer() const { return s_.layers > 1 ? 1 : 0; }

  SynthShape s_;
  std::vector<uint64_t> primes_;
  std::vector<Tensor> tensors_;
  gguf::Writer writer_;
};

}  // namespace strata::cli
