#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "strata/base/cpu_features.h"
#include "strata/base/thread_pool.h"
#include "strata/device/device.h"
#include "strata/kernels/op_table.h"

// Backends, instruction sets and thread counts side by side: what the parity tests of the ops run
// on, and the data they run with.
namespace strata::kernels::testing {

// Computes at one instruction set while it lives: row functions and matrix products.
class AtLevel {
 public:
  explicit AtLevel(CpuLevel level);
  ~AtLevel();
  AtLevel(const AtLevel&) = delete;
  AtLevel& operator=(const AtLevel&) = delete;

 private:
  CpuFeatures features_;
  const void* table_;
};

// kAvx2 and kAvx512 as far as this processor has them.
std::vector<CpuLevel> levels_here();

// One way to compute an op. Scratch is as large as the op asks for, holds NaN before the call, and
// what lies behind it is watched.
class Machine {
 public:
  Machine(device::Backend backend, CpuLevel level, int threads);
  explicit Machine(const std::string& card);

  const std::string& name() const { return name_; }
  const OpTable& ops() const { return ops_for(*stream_); }
  device::Stream& stream() { return *stream_; }

  template <class Args>
  void run(const Op<Args>& op, Args args) {
    if constexpr (requires { args.scratch; }) {
      args.scratch = poison(op.scratch_bytes(*stream_, args));
    }
    const AtLevel at(level_);
    kernels::run(*stream_, op, args);
    finish();
    if constexpr (requires { args.scratch; }) expect_guard(args.scratch);
  }

 private:
  View<std::byte> poison(Bytes bytes);
  void finish();
  void expect_guard(View<std::byte> scratch) const;

  std::string name_;
  CpuLevel level_;
  ThreadPool pool_;
  std::vector<std::unique_ptr<device::Device>> devices_;
  std::unique_ptr<device::Stream> stream_;
  std::vector<std::byte> scratch_;
};

// The plain backend first, then every instruction set of this processor with 1, 2, 3 and 5 threads.
// Of a binary that tests cards: the plain one and the card.
std::span<const std::unique_ptr<Machine>> machines();
// Before the first use of machines(): "cuda" or "hip". The card must be able to read whatever the
// tests hand to an op (gpu/card_test.cpp sees to that).
void test_card(const std::string& device);

// What an op left behind, as bits.
class Outputs {
 public:
  void add(std::string name, std::span<const float> values);
  void add(std::string name, std::span<const int32_t> values);
  void add_halves(std::string name, std::span<const uint16_t> values);
  // Empty if equal, else the first difference. Of NaN only that both are: the payload depends on
  // the order of operands.
  std::string difference(const Outputs& other) const;

 private:
  enum class Kind : uint8_t { kFloat, kInt, kHalf };
  struct Array {
    std::string name;
    Kind kind;
    std::vector<uint32_t> bits;
  };
  std::vector<Array> arrays_;
};

// Computes on every machine and expects the bits of the first.
void expect_same(const std::string& what, const std::function<Outputs(Machine&)>& compute);

using Rng = std::mt19937;
std::vector<float> normal(Rng& rng, int64_t n, float scale = 1);
// Replaces about one value in `every` by 0, -0, a subnormal or a large one; with broken, also by
// infinities and NaN.
void salt(Rng& rng, std::vector<float>& values, int every, bool broken);

// A matrix with its bytes, at an odd address as a file may have it.
struct TestWeight {
  TestWeight() = default;
  // Encodable types only.
  TestWeight(Rng& rng, quant::Type type, int rows, int cols, float scale = 1);
  std::vector<std::byte> bytes;
  Weight w;
};

// New tokens of one slot.
struct Seq {
  int slot, first, n;
};
struct RowsShape {
  int slots = 1;
  int page_tokens = 8, max_context = 64;
  int pairs = 1, ratio = 4;
  int max_rows = 0;  // 0: as many as the sequences have, and two more
};

// The rows of a step with everything kernels::Rows points at: pages in random order, sides drawn.
class TestRows {
 public:
  TestRows(Rng& rng, std::vector<Seq> sequences, const RowsShape& shape);
  TestRows(const TestRows&) = delete;
  TestRows& operator=(const TestRows&) = delete;
  const Rows& rows() const { return rows_; }
  int max_rows() const { return rows_.max_rows; }
  int n_rows() const { return n_rows_; }
  int n_pages() const { return n_pages_; }
  // As after SessionState::commit of kept rows: the next step of the slot.
  void flip(int slot) { side_[static_cast<size_t>(slot)] ^= 1; }
  void set_sequences(std::vector<Seq> sequences);

 private:
  RowsShape shape_;
  int n_rows_ = 0, n_seqs_ = 0, n_pages_ = 0;
  std::vector<int32_t> id_, slot_, index_, seq_slot_, seq_first_, seq_rows_, side_, pages_;
  std::vector<float> rope_, rope_block_;
  Rows rows_;
};

}  // namespace strata::kernels::testing
