#include "strata/kernels/test_machines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>

#include "strata/base/format.h"
#include "strata/device/registry.h"
#include "strata/kernels/cpu/matmul.h"
#include "strata/quant/encode.h"
#include "strata/quant/half.h"

namespace strata::kernels::testing {
namespace {

constexpr Bytes kGuardBytes = 256;
constexpr std::byte kPoison{0xff};
constexpr std::byte kGuard{0x5a};

const cpu::DotTable* table_for(CpuLevel level) {
  const std::string_view wanted = name(level);
  for (const cpu::DotTable* table : cpu::dot_tables()) {
    if (table->name == wanted) return table;
  }
  // AVX-512 without VNNI multiplies with AVX2.
  return cpu::dot_tables().empty() ? nullptr : cpu::dot_tables().back();
}

ThreadPoolOptions sharing(int threads) {
  using std::chrono::nanoseconds;
  // Every loop is cut and handed out, however short.
  return {.n_threads = threads,
          .spin = nanoseconds(0),
          .inline_below = nanoseconds(0),
          .wake_above = nanoseconds(0),
          .least_chunk = nanoseconds(0)};
}

std::string& card_to_test() {
  static std::string card;
  return card;
}

bool is_nan_half(uint32_t bits) { return (bits & 0x7fffU) > 0x7c00U; }

}  // namespace

AtLevel::AtLevel(CpuLevel level) : features_(cpu_features()), table_(cpu::dot_table()) {
  cpu::use_dot_table(table_for(level));
  set_cpu_features(limited(detect_cpu_features(), level));
}
AtLevel::~AtLevel() {
  set_cpu_features(features_);
  cpu::use_dot_table(static_cast<const cpu::DotTable*>(table_));
}

std::vector<CpuLevel> levels_here() {
  std::vector<CpuLevel> levels;
  for (CpuLevel level : {CpuLevel::kAvx2, CpuLevel::kAvx512}) {
    if (level <= detect_cpu_features().level()) levels.push_back(level);
  }
  return levels;
}

Machine::Machine(device::Backend backend, CpuLevel level, int threads)
    : name_(backend == device::Backend::kRef ? "ref"
                                             : format("{} x {}", strata::name(level), threads)),
      level_(level),
      pool_(sharing(threads)),
      devices_(device::make_devices("host", {.pool = &pool_, .backend = backend})),
      stream_(devices_.back()->make_stream("test")) {}

Machine::Machine(const std::string& card)
    : name_(card),
      level_(CpuLevel::kBaseline),
      pool_(sharing(1)),
      devices_(device::make_devices(card, {.pool = &pool_})),
      stream_(devices_.back()->make_stream("test")) {}

void Machine::finish() {
  EXPECT_TRUE(stream_->drain({"test", name_.c_str()}, std::chrono::minutes(1)));
}

View<std::byte> Machine::poison(Bytes bytes) {
  const Bytes room = bytes + 2 * kGuardBytes;
  scratch_.assign(static_cast<size_t>(room), kPoison);
  const auto address = reinterpret_cast<uintptr_t>(scratch_.data());
  std::byte* at = scratch_.data() + (256 - address % 256) % 256;
  std::fill_n(at + bytes, scratch_.data() + room - (at + bytes), kGuard);
  return View<std::byte>(at, {static_cast<int64_t>(bytes)});
}

void Machine::expect_guard(View<std::byte> scratch) const {
  const std::byte* at = scratch.data() + scratch.size();
  const std::byte* end = scratch_.data() + scratch_.size();
  EXPECT_EQ(std::count(at, end, kGuard), end - at) << name_ << " wrote behind its scratch";
}

void test_card(const std::string& device) { card_to_test() = device; }

std::span<const std::unique_ptr<Machine>> machines() {
  static const std::vector<std::unique_ptr<Machine>> all = [] {
    std::vector<std::unique_ptr<Machine>> made;
    made.push_back(std::make_unique<Machine>(device::Backend::kRef, CpuLevel::kBaseline, 1));
    if (!card_to_test().empty()) {
      made.push_back(std::make_unique<Machine>(card_to_test()));
      return made;
    }
    for (CpuLevel level : levels_here()) {
      for (int threads : {1, 2, 3, 5}) {
        made.push_back(std::make_unique<Machine>(device::Backend::kCpu, level, threads));
      }
    }
    return made;
  }();
  return all;
}

void Outputs::add(std::string name, std::span<const float> values) {
  Array array{std::move(name), Kind::kFloat, {}};
  for (float v : values) array.bits.push_back(std::bit_cast<uint32_t>(v));
  arrays_.push_back(std::move(array));
}
void Outputs::add(std::string name, std::span<const int32_t> values) {
  Array array{std::move(name), Kind::kInt, {}};
  for (int32_t v : values) array.bits.push_back(std::bit_cast<uint32_t>(v));
  arrays_.push_back(std::move(array));
}
void Outputs::add_halves(std::string name, std::span<const uint16_t> values) {
  arrays_.push_back({std::move(name), Kind::kHalf, {values.begin(), values.end()}});
}

std::string Outputs::difference(const Outputs& other) const {
  if (arrays_.size() != other.arrays_.size()) return "not the same arrays";
  for (size_t a = 0; a < arrays_.size(); ++a) {
    const Array &x = arrays_[a], &y = other.arrays_[a];
    if (x.name != y.name || x.bits.size() != y.bits.size()) return "not the same arrays";
    for (size_t i = 0; i < x.bits.size(); ++i) {
      if (x.bits[i] == y.bits[i]) continue;
      switch (x.kind) {
        case Kind::kFloat: {
          const float f = std::bit_cast<float>(x.bits[i]), g = std::bit_cast<float>(y.bits[i]);
          if (std::isnan(f) && std::isnan(g)) continue;
          return format("{}[{}]: {} ({:#x}) and {} ({:#x})", x.name, i, f, x.bits[i], g, y.bits[i]);
        }
        case Kind::kHalf:
          if (is_nan_half(x.bits[i]) && is_nan_half(y.bits[i])) continue;
          [[fallthrough]];
        case Kind::kInt:
          return format("{}[{}]: {} and {}", x.name, i, static_cast<int32_t>(x.bits[i]),
                        static_cast<int32_t>(y.bits[i]));
      }
    }
  }
  return "";
}

void expect_same(const std::string& what, const std::function<Outputs(Machine&)>& compute) {
  const Outputs expected = compute(*machines()[0]);
  for (const auto& machine : machines().subspan(1)) {
    EXPECT_EQ(compute(*machine).difference(expected), "") << what << " on " << machine->name();
  }
}

std::vector<float> normal(Rng& rng, int64_t n, float scale) {
  std::normal_distribution<float> distribution(0, scale);
  std::vector<float> values(static_cast<size_t>(n));
  for (float& v : values) v = distribution(rng);
  return values;
}

void salt(Rng& rng, std::vector<float>& values, int every, bool broken) {
  using Limits = std::numeric_limits<float>;
  const std::vector<float> odd = {0.0f,
                                  -0.0f,
                                  1e-40f,
                                  -1e-40f,
                                  1e4f,
                                  -1e4f,
                                  Limits::infinity(),
                                  -Limits::infinity(),
                                  Limits::quiet_NaN(),
                                  Limits::max()};
  const size_t n = broken ? odd.size() : 6;
  for (float& v : values) {
    if (rng() % static_cast<unsigned>(every) == 0) v = odd[rng() % n];
  }
}

TestWeight::TestWeight(Rng& rng, quant::Type type, int rows, int cols, float scale) {
  const auto row_bytes = static_cast<size_t>(quant::row_bytes(type, static_cast<uint64_t>(cols)));
  bytes.resize(static_cast<size_t>(rows) * row_bytes + 1);
  for (int r = 0; r < rows; ++r) {
    quant::encode(type, normal(rng, cols, scale), bytes.data() + 1 + r * row_bytes);
  }
  w = {.data = bytes.data() + 1, .rows = rows, .cols = cols, .type = type};
}

TestRows::TestRows(Rng& rng, std::vector<Seq> sequences, const RowsShape& shape) : shape_(shape) {
  if (shape_.max_rows == 0) {
    shape_.max_rows = 2;
    for (const Seq& s : sequences) shape_.max_rows += s.n;
  }
  const auto rows = static_cast<size_t>(shape_.max_rows);
  const auto slots = static_cast<size_t>(shape_.slots);
  const int pages_per_slot = (shape_.max_context + shape_.page_tokens - 1) / shape_.page_tokens;
  n_pages_ = shape_.slots * pages_per_slot;
  pages_.resize(static_cast<size_t>(n_pages_));
  std::iota(pages_.begin(), pages_.end(), 0);
  std::shuffle(pages_.begin(), pages_.end(), rng);
  side_.resize(slots);
  for (int32_t& side : side_) side = static_cast<int32_t>(rng() % 2);
  for (auto* array : {&id_, &slot_, &index_}) array->assign(rows, 0);
  for (auto* array : {&seq_slot_, &seq_first_, &seq_rows_}) array->assign(slots, 0);
  for (auto* array : {&rope_, &rope_block_}) {
    for (int r = 0; r < shape_.max_rows; ++r) {
      std::vector<float> angle = normal(rng, shape_.pairs, 3);
      for (float a : angle) array->push_back(std::cos(a));
      for (float a : angle) array->push_back(std::sin(a));
    }
  }
  rows_ = {.n_rows = &n_rows_,
           .n_seqs = &n_seqs_,
           .id = id_.data(),
           .slot = slot_.data(),
           .index = index_.data(),
           .seq_slot = seq_slot_.data(),
           .seq_first = seq_first_.data(),
           .seq_rows = seq_rows_.data(),
           .side = side_.data(),
           .pages = pages_.data(),
           .rope = rope_.data(),
           .rope_block = rope_block_.data(),
           .pages_per_slot = pages_per_slot,
           .max_rows = shape_.max_rows,
           .max_seqs = shape_.slots};
  set_sequences(std::move(sequences));
}

void TestRows::set_sequences(std::vector<Seq> sequences) {
  n_rows_ = 0;
  n_seqs_ = 0;
  for (const Seq& s : sequences) {
    const auto i = static_cast<size_t>(n_seqs_++);
    seq_slot_[i] = s.slot;
    seq_first_[i] = n_rows_;
    seq_rows_[i] = s.n;
    for (int t = 0; t < s.n; ++t) {
      const auto row = static_cast<size_t>(n_rows_++);
      slot_[row] = s.slot;
      index_[row] = s.first + t;
    }
  }
}

}  // namespace strata::kernels::testing
