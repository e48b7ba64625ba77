// The ops beside the matrix products, at the sizes of a real model: time and bytes a second. Each
// case is computed with the plain backend first and must have its bits.
//   ops_bench [--threads=N] --benchmark_filter=qsa
#include <benchmark/benchmark.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "strata/base/cpu_features.h"
#include "strata/base/thread_pool.h"
#include "strata/device/device.h"
#include "strata/device/registry.h"
#include "strata/kernels/op_table.h"

namespace strata::kernels {
namespace {

constexpr int kWidth = 2560, kStreams = 4;
constexpr int kKeyHeads = 16, kValueHeads = 48, kDelta = 128;
constexpr int kHeads = 24, kKvHeads = 2, kHeadDim = 256, kIndexHeads = 4, kIndexDim = 128;
constexpr int kBudget = 512, kRatio = 4, kPageTokens = 64;
constexpr int kExperts = 512, kTopK = 10;

std::vector<float> normal(int64_t n, float scale = 1) {
  // Long arrays repeat a short one: their values do not matter, making them takes time.
  static std::mt19937 rng(1);
  std::normal_distribution<float> draw(0, scale);
  std::vector<float> values(static_cast<size_t>(n));
  constexpr size_t kFresh = 1 << 16;
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = i < kFresh ? draw(rng) : values[i - kFresh];
  return values;
}

// One backend with its stream and scratch.
class Side {
 public:
  Side(device::Backend backend, int threads)
      : pool_(threads),
        devices_(device::make_devices("host", {.pool = &pool_, .backend = backend})),
        stream_(devices_.back()->make_stream("bench")) {}
  const OpTable& ops() const { return ops_for(*stream_); }
  template <class Args>
  void run(const Op<Args>& op, Args args) {
    if constexpr (requires { args.scratch; }) {
      const Bytes bytes = op.scratch_bytes(*stream_, args);
      if (scratch_.size() < bytes + 256) scratch_.resize(static_cast<size_t>(bytes) + 256);
      const auto address = reinterpret_cast<uintptr_t>(scratch_.data());
      args.scratch = View<std::byte>(scratch_.data() + (256 - address % 256) % 256,
                                     {static_cast<int64_t>(bytes)});
    }
    kernels::run(*stream_, op, args);
  }

 private:
  ThreadPool pool_;
  std::vector<std::unique_ptr<device::Device>> devices_;
  std::unique_ptr<device::Stream> stream_;
  std::vector<std::byte> scratch_;
};

// n rows of one session behind `cached` tokens.
struct OneSequence {
  OneSequence(int n, int64_t cached)
      : n_rows(n),
        slot(static_cast<size_t>(n), 0),
        index(static_cast<size_t>(n)),
        pages(static_cast<size_t>((cached + n) / kPageTokens + 1)),
        rope(normal(int64_t{n} * 64)) {
    std::iota(index.begin(), index.end(), static_cast<int32_t>(cached));
    std::iota(pages.begin(), pages.end(), 0);
    // Pages of a pool that has been used for a while.
    std::shuffle(pages.begin(), pages.end(), std::mt19937(3));
  }
  Rows rows() const {
    return {.n_rows = &n_rows,
            .n_seqs = &one,
            .slot = slot.data(),
            .index = index.data(),
            .seq_slot = &null,
            .seq_first = &null,
            .seq_rows = &n_rows,
            .side = &null,
            .pages = pages.data(),
            .rope = rope.data(),
            .rope_block = rope.data(),
            .pages_per_slot = static_cast<int32_t>(pages.size()),
            .max_rows = n_rows,
            .max_seqs = 1};
  }
  int32_t n_rows, one = 1, null = 0;
  std::vector<int32_t> slot, index, pages;
  std::vector<float> rope;
};

// A case: runs on a side, and what it writes.
struct Case {
  std::function<void(Side&)> run;
  std::vector<std::vector<float>*> outputs;
  int64_t bytes = 0;  // that must move
};

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void measure(benchmark::State& state, const Case& c, int threads) {
  std::vector<std::vector<float>> before, truth;
  for (const auto* out : c.outputs) before.push_back(*out);
  Side ref(device::Backend::kRef, 1), cpu(device::Backend::kCpu, threads);
  c.run(ref);
  for (auto* out : c.outputs) truth.push_back(*out);
  for (size_t i = 0; i < c.outputs.size(); ++i) *c.outputs[i] = before[i];
  c.run(cpu);
  for (size_t i = 0; i < c.outputs.size(); ++i) {
    if (!same(*c.outputs[i], truth[i])) {
      state.SkipWithError("differs from the plain backend");
      return;
    }
  }
  for (auto _ : state) c.run(cpu);
  state.SetBytesProcessed(state.iterations() * c.bytes);
}

void bench_gdn(benchmark::State& state, int n, int threads) {
  // As many layers as overflow the caches, one after the other.
  constexpr int kLayers = 12;
  constexpr int kChannels = 2 * kKeyHeads * kDelta + kValueHeads * kDelta;
  constexpr int64_t kState = int64_t{kValueHeads} * kDelta * kDelta;
  const OneSequence seq(n, 0);
  std::vector<std::vector<float>> s;
  for (int l = 0; l < kLayers; ++l) {
    s.push_back(normal(2 * kState + 16, 0.1f));
  }
  const std::vector<float> qkv = normal(int64_t{n} * kChannels), gate = normal(n * kValueHeads);
  const std::vector<float> a(kValueHeads, -0.5f), dt = normal(kValueHeads);
  std::vector<float> o(static_cast<size_t>(n) * kValueHeads * kDelta);
  Case c{.run =
             [&](Side& side) {
               for (auto& layer : s) {
                 const auto address = reinterpret_cast<uintptr_t>(layer.data());
                 float* at = layer.data() + (64 - address % 64) % 64 / 4;
                 side.run(side.ops().gdn,
                          Gdn{.rows = seq.rows(),
                              .qkv = View<const float>(qkv.data(), {n, kChannels}),
                              .beta = View<const float>(gate.data(), {n, kValueHeads}),
                              .alpha = View<const float>(gate.data(), {n, kValueHeads}),
                              .a = a.data(),
                              .dt = dt.data(),
                              .key_heads = kKeyHeads,
                              .value_heads = kValueHeads,
                              .dk = kDelta,
                              .dv = kDelta,
                              .eps = 1e-6f,
                              .state = {.s = View<float>(at, {1, 2, kValueHeads * kDelta, kDelta})},
                              .o = View<float>(o.data(), {n, kValueHeads * kDelta})});
               }
             },
         .outputs = {&o, &s[0], &s[kLayers - 1]},
         .bytes = kLayers * 2 * kState * 4};
  measure(state, c, threads);
}

void bench_conv(benchmark::State& state, int n, int threads) {
  constexpr int kChannels = 2 * kKeyHeads * kDelta + kValueHeads * kDelta, kTaps = 4;
  const OneSequence seq(n, 0);
  const std::vector<float> x = normal(int64_t{n} * kChannels), w = normal(kChannels * kTaps);
  std::vector<float> tail = normal(2 * 3 * kChannels), out(x.size());
  Case c{.run =
             [&](Side& side) {
               side.run(side.ops().conv,
                        Conv{.rows = seq.rows(),
                             .x = View<const float>(x.data(), {n, kChannels}),
                             .w = w.data(),
                             .taps = kTaps,
                             .tail = {.state = View<float>(tail.data(), {1, 2, 3, kChannels})},
                             .out = View<float>(out.data(), {n, kChannels})});
             },
         .outputs = {&out, &tail},
         .bytes = static_cast<int64_t>(4 * (x.size() + w.size() + out.size() + tail.size()))};
  measure(state, c, threads);
}

void bench_hc_write(benchmark::State& state, int n, int threads) {
  const std::vector<float> inj = normal(n * kStreams, 1e-3f), y = normal(int64_t{n} * kWidth);
  std::vector<float> residual = normal(int64_t{n} * kStreams * kWidth);
  const int32_t rows = n;
  Case c{.run =
             [&](Side& side) {
               side.run(side.ops().hc_write,
                        HcWrite{.n_rows = &rows,
                                .inj = View<const float>(inj.data(), {n, kStreams}),
                                .y = View<const float>(y.data(), {n, kWidth}),
                                .residual = View<float>(residual.data(), {n, kStreams, kWidth})});
             },
         .outputs = {&residual},
         .bytes = static_cast<int64_t>(4 * (2 * residual.size() + y.size()))};
  measure(state, c, threads);
}

void bench_hc_read(benchmark::State& state, int n, int threads) {
  constexpr int kRank = 256, kWide = kStreams * kWidth;
  const quant::Type type = quant::Type::kQ8_0;
  std::vector<std::byte> matrix(static_cast<size_t>(kRank) * quant::row_bytes(type, kWide));
  std::mt19937 rng(2);
  // Halves around 2^-9 as scales, small codes.
  for (size_t i = 0; i < matrix.size(); ++i) {
    matrix[i] = i % 34 == 1 ? std::byte{0x18} : std::byte(rng() % 256);
  }
  const std::vector<float> norm = normal(kWide), inject = normal(kStreams * kWide, 0.01f);
  const std::vector<float> residual = normal(int64_t{n} * kWide);
  std::vector<float> u(static_cast<size_t>(n) * kWidth), inj(static_cast<size_t>(n) * kStreams);
  const int32_t rows = n;
  const auto bytes_of_floats = [](const std::vector<float>& v) {
    return reinterpret_cast<const std::byte*>(v.data());
  };
  Case c{
      .run =
          [&](Side& side) {
            side.run(
                side.ops().hc_read,
                HcRead{.n_rows = &rows,
                       .residual = View<const float>(residual.data(), {n, kStreams, kWidth}),
                       .norm = norm.data(),
                       .down = {.data = matrix.data(), .rows = kRank, .cols = kWide, .type = type},
                       .up = {.data = matrix.data(), .rows = kWide, .cols = kRank, .type = type},
                       .inject = {.data = bytes_of_floats(inject), .rows = kStreams, .cols = kWide},
                       .eps = 1e-6f,
                       .u = View<float>(u.data(), {n, kWidth}),
                       .inj = View<float>(inj.data(), {n, kStreams})});
          },
      .outputs = {&u, &inj},
      .bytes = static_cast<int64_t>(2 * matrix.size() + 4 * (residual.size() + inject.size()))};
  measure(state, c, threads);
}

void bench_router(benchmark::State& state, int n, int threads) {
  const std::vector<float> fresh = normal(int64_t{n} * kExperts);
  std::vector<float> logits = fresh, weight(static_cast<size_t>(n) * kTopK);
  std::vector<int32_t> id(weight.size());
  const int32_t rows = n;
  Case c{.run =
             [&](Side& side) {
               logits = fresh;
               side.run(side.ops().router_topk,
                        RouterTopk{.n_rows = &rows,
                                   .logits = View<float>(logits.data(), {n, kExperts}),
                                   .top_k = kTopK,
                                   .id = View<int32_t>(id.data(), {n, kTopK}),
                                   .weight = View<float>(weight.data(), {n, kTopK})});
             },
         .outputs = {&weight},
         .bytes = static_cast<int64_t>(4 * logits.size())};
  measure(state, c, threads);
}

// One row at the end of `context` tokens, or a prompt's rows there.
void bench_qsa(benchmark::State& state, int n, int64_t context, bool attend, int threads) {
  const OneSequence seq(n, context - n);
  const int64_t pages = static_cast<int64_t>(seq.pages.size());
  const auto halves = [](int64_t count) {
    const std::vector<float> values = normal(std::min<int64_t>(count, 1 << 16));
    std::vector<uint16_t> out(static_cast<size_t>(count));
    for (size_t i = 0; i < out.size(); ++i) {
      // The upper bits of a float around 1 as a half of the same exponent.
      const auto bits = std::bit_cast<uint32_t>(values[i % values.size()]);
      const int e = std::clamp(static_cast<int>(bits >> 23 & 255) - 112, 1, 30);
      out[i] = static_cast<uint16_t>((bits >> 31) << 15 | static_cast<uint32_t>(e) << 10 |
                                     (bits >> 13 & 1023));
    }
    return out;
  };
  std::vector<uint16_t> k = halves(pages * kPageTokens * kKvHeads * kHeadDim), v = k;
  std::vector<uint16_t> pooled = halves(pages * (kPageTokens / kRatio) * kIndexDim);
  const KvPool pool{.k = reinterpret_cast<std::byte*>(k.data()),
                    .v = reinterpret_cast<std::byte*>(v.data()),
                    .pooled = reinterpret_cast<std::byte*>(pooled.data()),
                    .page_tokens = kPageTokens,
                    .kv_heads = kKvHeads,
                    .dk = kHeadDim,
                    .dv = kHeadDim,
                    .index_dim = kIndexDim,
                    .ratio = kRatio};
  const std::vector<float> iq = normal(int64_t{n} * kIndexHeads * kIndexDim);
  const std::vector<float> q = normal(int64_t{n} * kHeads * kHeadDim);
  const std::vector<float> gate = normal(int64_t{n} * kHeads * 2 * kHeadDim);
  std::vector<int32_t> blocks(static_cast<size_t>(n) * kBudget), n_blocks(static_cast<size_t>(n));
  std::vector<float> out(q.size()), chosen(blocks.size());
  const auto select = [&](Side& side) {
    side.run(side.ops().qsa_select,
             QsaSelect{.rows = seq.rows(),
                       .q = View<const float>(iq.data(), {n, kIndexHeads, kIndexDim}),
                       .heads = kIndexHeads,
                       .budget = kBudget,
                       .max_context = context,
                       .pool = pool,
                       .blocks = View<int32_t>(blocks.data(), {n, kBudget}),
                       .n_blocks = View<int32_t>(n_blocks.data(), {n})});
  };
  {
    Side cpu(device::Backend::kCpu, 1);
    select(cpu);
  }
  const auto run = [&](Side& side) {
    if (!attend) {
      select(side);
      for (size_t i = 0; i < blocks.size(); ++i) chosen[i] = static_cast<float>(blocks[i]);
      return;
    }
    side.run(side.ops().qsa_attend,
             QsaAttend{.rows = seq.rows(),
                       .q = View<const float>(q.data(), {n, kHeads, kHeadDim}),
                       .gate = View<const float>(gate.data(), {n, kHeads * 2 * kHeadDim}),
                       .heads = kHeads,
                       .gate_stride = 2 * kHeadDim,
                       .gate_offset = kHeadDim,
                       .budget = kBudget,
                       .max_context = context,
                       .pool = pool,
                       .blocks = View<const int32_t>(blocks.data(), {n, kBudget}),
                       .n_blocks = View<const int32_t>(n_blocks.data(), {n}),
                       .out = View<float>(out.data(), {n, kHeads * kHeadDim})});
  };
  const int64_t cells = std::min<int64_t>(context, (kBudget + 1) * kRatio);
  measure(
      state,
      {.run = run,
       .outputs = {attend ? &out : &chosen},
       .bytes = n * (attend ? cells * kKvHeads * kHeadDim * 2 * 2
                            : (context > kBudget * kRatio ? context / kRatio * kIndexDim * 2 : 0))},
      threads);
}

void add_all(int threads) {
  using Bench = std::function<void(benchmark::State&)>;
  const auto add = [](const std::string& name, const Bench& bench) {
    benchmark::RegisterBenchmark(name.c_str(), bench)->Unit(benchmark::kMicrosecond)->UseRealTime();
  };
  using Plain = void (*)(benchmark::State&, int, int);
  const std::pair<const char*, Plain> plain[] = {{"gdn_12_layers", bench_gdn},
                                                 {"conv", bench_conv},
                                                 {"hc_read", bench_hc_read},
                                                 {"hc_write", bench_hc_write},
                                                 {"router", bench_router}};
  for (const auto& [name, bench] : plain) {
    for (int n : {1, 4, 64}) {
      add(std::string(name) + "/" + std::to_string(n),
          [bench = bench, n, threads](benchmark::State& state) { bench(state, n, threads); });
    }
  }
  for (const bool attend : {false, true}) {
    for (const int64_t context : {1 << 10, 1 << 15, 1 << 17}) {
      for (const int n : {1, 16}) {
        add(std::string(attend ? "qsa_attend/" : "qsa_select/") + std::to_string(context) + "/" +
                std::to_string(n),
            [=](benchmark::State& state) { bench_qsa(state, n, context, attend, threads); });
      }
    }
  }
}

}  // namespace
}  // namespace strata::kernels

int main(int argc, char** argv) {
  int threads = 1;
  for (int i = 1; i < argc; ++i) {
    constexpr std::string_view kOption = "--threads=";
    if (std::string_view(argv[i]).substr(0, kOption.size()) != kOption) continue;
    threads = std::max(1, std::atoi(argv[i] + kOption.size()));
    std::rotate(argv + i, argv + i + 1, argv + argc);
    --argc;
    break;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 64;
  strata::kernels::add_all(threads);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
