#include "strata/model/arch/qwen4exp_config.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/gguf/escape.h"

namespace strata::model {
namespace {

constexpr std::string_view kPrefix = "qwen4exp.";
constexpr int64_t kMaxContext = int64_t{1} << 26;

// What the reader below uses, plus what is known to be without effect here. A key that is not
// listed might change the computation: it is refused rather than ignored.
constexpr std::array<std::string_view, 45> kKnown = {
    "attention.compress_ratios",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.indexer.head_count",
    "attention.indexer.key_length",
    "attention.indexer.top_k",
    "attention.key_length",
    "attention.layer_norm_rms_epsilon",
    "attention.recurrent_layers",
    "attention.value_length",
    "block_count",
    "context_length",
    "embedding_length",
    "embedding_length_per_layer_input",
    "expert_count",
    "expert_feed_forward_length",
    "expert_shared_feed_forward_length",
    "expert_used_count",
    "feed_forward_length",  // of dense layers, which there are none of
    "full_attention_interval",
    "hyper_connection.count",
    "hyper_connection.low_rank",
    "nextn_hnorm_per_stream",
    "nextn_predict_layers",
    "nextn_shared_target_tensors",
    "ple.conv_kernel",
    "ple.eos_token_id",
    "ple.head_offsets",
    "ple.head_vocab_sizes",
    "ple.heads_per_ngram",
    "ple.image_token_id",
    "ple.layer_multipliers",
    "ple.layers",
    "ple.ngram_size",
    "rope.dimension_count",
    "rope.dimension_sections",
    "rope.freq_base",
    "rope.scaling.factor",
    "rope.scaling.original_context_length",
    "rope.scaling.type",
    "ssm.conv_kernel",
    "ssm.group_count",
    "ssm.inner_size",
    "ssm.state_size",
    "ssm.time_step_rank",
};

class Reader {
 public:
  explicit Reader(const gguf::Metadata& metadata) : metadata_(metadata) {}

  static std::string key(std::string_view name) { return std::string(kPrefix) + std::string(name); }

  int required(std::string_view name, int64_t min, int64_t max) const {
    return checked(name, metadata_.get_i64(key(name)), min, max);
  }
  int optional(std::string_view name, int64_t fallback, int64_t min, int64_t max) const {
    return checked(name, metadata_.find_i64(key(name)).value_or(fallback), min, max);
  }
  // A scalar, or an array whose largest element counts: converters write both.
  int scalar_or_largest(std::string_view name, int64_t min, int64_t max) const {
    if (!metadata_.is_array(key(name))) return required(name, min, max);
    const std::vector<int64_t> values = metadata_.get_i64s(key(name));
    if (values.empty()) fail(name, "is empty");
    return checked(name, *std::max_element(values.begin(), values.end()), min, max);
  }
  double real(std::string_view name, double min, double max) const {
    const double value = metadata_.get_f64(key(name));
    // Written so that what is no number fails, too.
    if (!(value >= min && value <= max)) {
      fail(name, format("is {}, not between {} and {}", value, min, max));
    }
    return value;
  }
  [[noreturn]] void fail(std::string_view name, const std::string& text) const {
    throw Error(ErrorCode::kCorruptFile,
                format("{}: key {} {}", metadata_.file(), key(name), text));
  }

  const gguf::Metadata& metadata() const { return metadata_; }

 private:
  int checked(std::string_view name, int64_t value, int64_t min, int64_t max) const {
    if (value < min || value > max) {
      fail(name, format("is {}, not between {} and {}", value, min, max));
    }
    return static_cast<int>(value);
  }

  const gguf::Metadata& metadata_;
};

void refuse_unknown_keys(const gguf::Metadata& metadata) {
  for (const gguf::KeyValue& entry : metadata.entries()) {
    if (!entry.key.starts_with(kPrefix)) continue;
    const std::string_view name = entry.key.substr(kPrefix.size());
    if (!std::binary_search(kKnown.begin(), kKnown.end(), name)) {
      throw Error(ErrorCode::kUnsupported,
                  format("{}: key {} is not known to this version, and may change what the model "
                         "computes",
                         metadata.file(), gguf::escaped(entry.key)));
    }
  }
}

void read_attention(const Reader& r, Qwen4ExpConfig& c) {
  c.heads = r.scalar_or_largest("attention.head_count", 1, 4096);
  c.kv_heads = r.scalar_or_largest("attention.head_count_kv", 1, c.heads);
  if (c.heads % c.kv_heads != 0) {
    r.fail("attention.head_count_kv", format("does not divide {} heads", c.heads));
  }
  c.dk = r.required("attention.key_length", 2, 512);
  c.dv = r.required("attention.value_length", 2, 512);
  c.rope_dims = r.required("rope.dimension_count", 2, c.dk);
  if (c.rope_dims % 2 != 0) r.fail("rope.dimension_count", "is odd");
  c.rope_base = r.real("rope.freq_base", 2, 1e12);
  c.rope_sections = {c.rope_pairs(), 0, 0, 0};
  if (const auto sections = r.metadata().find_i64s(Reader::key("rope.dimension_sections"))) {
    if (sections->size() < 3 || sections->size() > 4) {
      r.fail("rope.dimension_sections", format("has {} elements, not 4", sections->size()));
    }
    for (size_t i = 0; i < sections->size(); ++i) {
      if ((*sections)[i] < 0 || (*sections)[i] > c.rope_pairs()) {
        r.fail("rope.dimension_sections", format("element {} is {}", i, (*sections)[i]));
      }
      c.rope_sections[i] = static_cast<int>((*sections)[i]);
    }
  }
  const std::string type(
      r.metadata().find_string(Reader::key("rope.scaling.type")).value_or("none"));
  if (type == "yarn") {
    c.context.yarn_factor = r.real("rope.scaling.factor", 1, 1024);
    c.context.yarn_context = r.required("rope.scaling.original_context_length", 1, kMaxContext);
  } else if (type != "none") {
    throw Error(ErrorCode::kUnsupported, format("{}: rope.scaling.type {} (only yarn is known)",
                                                r.metadata().file(), gguf::escaped(type)));
  }
}

bool has_indexer(const gguf::Model& file, int layer) {
  return file.find(format("blk.{}.indexer.k_proj.weight", layer)) != nullptr;
}

void read_indexer(const Reader& r, const gguf::Model& file, Qwen4ExpConfig& c) {
  bool indexed = false;
  for (int l = 0; l < c.n_blocks(); ++l) indexed |= has_indexer(file, l);
  c.ratio.assign(static_cast<size_t>(c.n_blocks()), 0);
  if (!indexed) return;
  c.index_heads = r.required("attention.indexer.head_count", 1, 4096);
  c.index_dim = r.required("attention.indexer.key_length", c.rope_dims, 512);
  c.index_top_k = r.required("attention.indexer.top_k", 1, 1 << 24);
  constexpr std::string_view kRatios = "attention.compress_ratios";
  std::vector<int64_t> ratios = r.metadata().get_i64s(Reader::key(kRatios));
  // The draft block may be left out: it is dense, then.
  if (ratios.size() != static_cast<size_t>(c.n_layers) &&
      ratios.size() != static_cast<size_t>(c.n_blocks())) {
    r.fail(kRatios, format("has {} elements for {} blocks", ratios.size(), c.n_blocks()));
  }
  for (size_t i = 0; i < ratios.size(); ++i) {
    if (ratios[i] < 0 || ratios[i] > 64 || (ratios[i] & (ratios[i] - 1)) != 0) {
      r.fail(kRatios, format("element {} is {}, not a power of two up to 64", i, ratios[i]));
    }
  }
  ratios.resize(static_cast<size_t>(c.n_blocks()), 0);
  // Early files hold zeros only although the indexer is there.
  const bool early = std::all_of(ratios.begin(), ratios.end(), [](int64_t x) { return x == 0; });
  for (int l = 0; l < c.n_blocks(); ++l) {
    const size_t i = static_cast<size_t>(l);
    if (c.recurrent[i] || !has_indexer(file, l)) continue;
    c.ratio[i] = static_cast<int>(early ? 4 : ratios[i]);
    if (c.ratio[i] == 0 && l < c.n_layers) {
      r.fail(kRatios, format("element {} is 0, but the layer has an indexer", l));
    }
    if (c.ratio[i] > c.index_top_k) {
      r.fail("attention.indexer.top_k", format("is below the block of {}", c.ratio[i]));
    }
  }
}

void read_delta_net(const Reader& r, Qwen4ExpConfig& c) {
  c.gdn_taps = r.required("ssm.conv_kernel", 2, 8);
  c.gdn_dk = r.required("ssm.state_size", 1, 256);
  c.gdn_key_heads = r.required("ssm.group_count", 1, 4096);
  c.gdn_value_heads = r.required("ssm.time_step_rank", 1, 4096);
  const int inner = r.required("ssm.inner_size", 1, 1 << 24);
  if (c.gdn_value_heads % c.gdn_key_heads != 0) {
    r.fail("ssm.time_step_rank", format("is no multiple of {} key heads", c.gdn_key_heads));
  }
  if (inner % c.gdn_value_heads != 0) {
    r.fail("ssm.inner_size", format("is no multiple of {} value heads", c.gdn_value_heads));
  }
  c.gdn_dv = inner / c.gdn_value_heads;
}

// The layers with an n-gram embedding must be those that have its tensors: else they would be
// computed without it.
void read_ple_layers(const Reader& r, const gguf::Model& file, Qwen4ExpConfig& c) {
  constexpr std::string_view kLayers = "ple.layers";
  const auto layers = r.metadata().find_i64s(Reader::key(kLayers)).value_or(std::vector<int64_t>{});
  for (int64_t layer : layers) {
    if (layer < 0 || layer >= c.n_layers) r.fail(kLayers, format("names layer {}", layer));
    c.ple_layers.push_back(static_cast<int>(layer));
  }
  for (int l = 0; l < c.n_layers; ++l) {
    const std::string name = format("blk.{}.ple_key.weight", l);
    if (file.find(name) && !c.is_ple_layer(l)) {
      r.fail(kLayers, format("does not name layer {}, but there is a tensor {}", l, name));
    }
  }
  if (c.ple_layers.size() > 1) {
    throw Error(ErrorCode::kUnsupported, format("{}: {} n-gram layers (one is known)",
                                                r.metadata().file(), c.ple_layers.size()));
  }
}

// Each head has its rows behind those of the head before; multipliers of 0 or of even numbers
// would lose tokens.
void check_hash(const Reader& r, const Qwen4ExpConfig& c) {
  for (uint64_t m : c.ple_multipliers) {
    if (m % 2 == 0) r.fail("ple.layer_multipliers", format("holds {}, which is even", m));
  }
  for (size_t h = 0; h < c.ple_sizes.size(); ++h) {
    if (c.ple_sizes[h] == 0 || c.ple_sizes[h] > INT32_MAX) {
      r.fail("ple.head_vocab_sizes", format("holds {} for head {}", c.ple_sizes[h], h));
    }
  }
  uint64_t rows = 0;
  for (size_t h = 0; h < c.ple_sizes.size(); ++h) {
    if (c.ple_offsets[h] != rows) {
      r.fail("ple.head_offsets",
             format("holds {} for head {}, but {} rows are before it", c.ple_offsets[h], h, rows));
    }
    rows += c.ple_sizes[h];
  }
}

void read_ple(const Reader& r, const gguf::Model& file, Qwen4ExpConfig& c) {
  read_ple_layers(r, file, c);
  if (c.ple_layers.empty()) return;
  c.ple_ngram = r.required("ple.ngram_size", 2, 8);
  c.ple_heads = r.required("ple.heads_per_ngram", 1, 256);
  c.ple_taps = r.required("ple.conv_kernel", 1, 8);
  c.ple_eos = r.required("ple.eos_token_id", 0, c.n_vocab - 1);
  c.ple_width = r.required("embedding_length_per_layer_input", 1, 1 << 20);
  if (int64_t{c.n_ple_rows()} * c.ple_width != c.width) {
    r.fail("embedding_length_per_layer_input",
           format("is {}: {} heads of it are not {}", c.ple_width, c.n_ple_rows(), c.width));
  }
  const auto table = [&](std::string_view name, int n) {
    std::vector<uint64_t> values = r.metadata().get_u64s(Reader::key(name));
    if (values.size() != static_cast<size_t>(n)) {
      r.fail(name, format("has {} elements, not {}", values.size(), n));
    }
    return values;
  };
  c.ple_multipliers = table("ple.layer_multipliers", c.ple_ngram);
  c.ple_offsets = table("ple.head_offsets", c.n_ple_rows());
  c.ple_sizes = table("ple.head_vocab_sizes", c.n_ple_rows());
  check_hash(r, c);
}

}  // namespace

bool Qwen4ExpConfig::is_ple_layer(int layer) const {
  return std::find(ple_layers.begin(), ple_layers.end(), layer) != ple_layers.end();
}

Qwen4ExpConfig read_qwen4exp_config(const gguf::Model& file) {
  const gguf::Metadata& metadata = file.metadata();
  const std::string_view architecture = metadata.get_string("general.architecture");
  if (architecture != "qwen4exp") {
    throw Error(ErrorCode::kUnsupported, format("{}: architecture {} (only qwen4exp is known)",
                                                metadata.file(), gguf::escaped(architecture)));
  }
  refuse_unknown_keys(metadata);
  const Reader r(metadata);
  Qwen4ExpConfig c;
  c.name = gguf::escaped(metadata.find_string("general.name").value_or("unnamed"));
  const int blocks = r.required("block_count", 1, 4096);
  c.n_draft_layers = r.optional("nextn_predict_layers", 0, 0, 1);
  c.n_layers = blocks - c.n_draft_layers;
  if (c.n_layers < 1) r.fail("block_count", "leaves no layer beside the draft block");
  if (!file.find("blk.0.hc_attn_norm.weight")) {
    throw Error(ErrorCode::kUnsupported,
                format("{} holds a draft (MTP) block only: give it beside the model it was made "
                       "for, not as the model",
                       metadata.file()));
  }
  c.context.trained = r.required("context_length", 1, kMaxContext);
  c.width = r.required("embedding_length", 1, 1 << 20);
  c.eps = static_cast<float>(r.real("attention.layer_norm_rms_epsilon", 1e-12, 0.1));
  c.n_vocab =
      static_cast<int>(std::min<int64_t>(file.get("token_embd.weight").n_rows(), INT32_MAX));
  c.streams = r.required("hyper_connection.count", 1, 16);
  c.low_rank = r.required("hyper_connection.low_rank", 1, 1 << 20);

  const int interval = r.optional("full_attention_interval", 4, 1, 4096);
  const auto recurrent = metadata.find_bools(Reader::key("attention.recurrent_layers"));
  if (recurrent && recurrent->size() < static_cast<size_t>(c.n_layers)) {
    r.fail("attention.recurrent_layers",
           format("has {} elements for {} layers", recurrent->size(), c.n_layers));
  }
  for (int l = 0; l < c.n_blocks(); ++l) {
    const bool by_rule = (l + 1) % interval != 0;
    c.recurrent.push_back(l < c.n_layers &&
                          (recurrent ? (*recurrent)[static_cast<size_t>(l)] : by_rule));
  }
  read_attention(r, c);
  read_indexer(r, file, c);
  read_delta_net(r, c);
  c.n_experts = r.required("expert_count", 1, 1 << 16);
  c.top_k = r.required("expert_used_count", 1, std::min(c.n_experts, 64));
  c.ff = r.scalar_or_largest("expert_feed_forward_length", 1, 1 << 20);
  c.shared_ff = r.required("expert_shared_feed_forward_length", 1, 1 << 20);
  read_ple(r, file, c);
  c.draft_norm_per_stream =
      metadata.find_bool(Reader::key("nextn_hnorm_per_stream")).value_or(false);
  return c;
}

}  // namespace strata::model
