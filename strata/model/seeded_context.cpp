#include "strata/model/seeded_context.h"

#include <array>
#include <cstring>
#include <vector>

#include "strata/base/check.h"
#include "strata/base/random_bits.h"
#include "strata/quant/half.h"

namespace strata::model {
namespace {

// Even between -1 and 1, times `size`.
class Values {
 public:
  static constexpr float kLargestCode = 127;

  explicit Values(uint64_t seed) : seed_(seed) {
    for (size_t i = 0; i < table_.size(); ++i) {
      table_[i] = (static_cast<float>(i) + 0.5F) / (static_cast<float>(table_.size()) / 2) - 1;
    }
  }

  void fill(float* to, int64_t n, float size) {
    for (int64_t i = 0; i < n; ++i) to[i] = table_[next()] * size;
  }
  void fill(std::byte* to, int64_t n, kernels::CacheType type, float size) {
    if (type == kernels::CacheType::kF32) return fill(reinterpret_cast<float*>(to), n, size);
    if (type == kernels::CacheType::kI8) {
      for (int64_t i = 0; i < n; ++i) {
        to[i] = static_cast<std::byte>(static_cast<int8_t>(table_[next()] * kLargestCode));
      }
      return;
    }
    for (size_t i = 0; i < table_.size(); ++i) halves_[i] = quant::f32_to_f16(table_[i] * size);
    for (int64_t i = 0; i < n; ++i) {
      std::memcpy(to + 2 * i, &halves_[next()], sizeof(uint16_t));
    }
  }

 private:
  size_t next() {
    if (left_ == 0) {
      bits_ = random_bits(seed_, counter_++);
      left_ = 8;
    }
    const size_t i = bits_ & 255;
    bits_ >>= 8;
    --left_;
    return i;
  }

  uint64_t seed_, counter_ = 0, bits_ = 0;
  int left_ = 0;
  std::array<float, 256> table_{};
  std::array<uint16_t, 256> halves_{};
};

// Of normed keys the root mean square is 1: the bound of an even distribution is sqrt(3).
constexpr float kNormed = 1.73F;
constexpr float kValue = 1;
// Keys are unit vectors, so an entry of the delta state is about a value over sqrt(dk).
constexpr float kDelta = 0.1F;

// Writes made-up state of one session through staging memory.
class Writer {
 public:
  explicit Writer(uint64_t seed) : values_(seed) {}

  // Where the next arrays lie.
  void set_part(const StatePart& part) { part_ = &part; }

  void floats(float* to, int64_t n, float size) {
    bytes_.resize(static_cast<size_t>(n) * sizeof(float));
    values_.fill(reinterpret_cast<float*>(bytes_.data()), n, size);
    write(to);
  }
  void page(const kernels::KvPool& kv, int32_t index) {
    cells(kv, kv.k, kv.dk, index, kNormed);
    cells(kv, kv.v, kv.dv, index, kValue);
    if (kv.pooled == nullptr) return;
    bytes_.resize(static_cast<size_t>(kv.pooled_page_bytes()));
    values_.fill(bytes_.data(), int64_t{kv.blocks_per_page()} * kv.index_dim, kv.pooled_type(),
                 kNormed);
    write(kv.pooled + index * kv.pooled_page_bytes());
  }

 private:
  void cells(const kernels::KvPool& kv, std::byte* pool, int dim, int32_t page, float size) {
    const int64_t n = kv.cells_per_page();
    bytes_.resize(static_cast<size_t>(kv.page_bytes(dim)));
    values_.fill(bytes_.data(), n * dim, kv.type, size);
    if (kv.type == kernels::CacheType::kI8) {
      const float scale = size / Values::kLargestCode;
      for (int64_t i = 0; i < n; ++i) {
        std::memcpy(bytes_.data() + n * dim + 4 * i, &scale, sizeof(scale));
      }
    }
    write(pool + page * kv.page_bytes(dim));
  }
  void write(void* to) { part_->copies->write(*part_->stream, to, bytes_); }

  const StatePart* part_ = nullptr;
  Values values_;
  std::vector<std::byte> bytes_;
};

void write_state(StatePools& pools, const SessionState& session, int side, size_t n_pages,
                 Writer& writer) {
  const int slot = session.slot();
  const auto write_tail = [&](const kernels::Tail& tail) {
    if (tail.state) writer.floats(tail.side(slot, side), tail.depth() * tail.width(), kNormed);
  };
  for (int l = 0; l < pools.n_layers(); ++l) {
    const LayerState& layer = pools.layer(l);
    writer.set_part(pools.part_of(l));
    if (layer.kv.k != nullptr) {
      for (const int32_t page : session.pages().first(n_pages)) writer.page(layer.kv, page);
    }
    if (layer.delta.s) {
      writer.floats(layer.delta.side(slot, side), layer.delta.s.extent(2) * layer.delta.s.extent(3),
                    kDelta);
    }
    write_tail(layer.raw_keys);
    write_tail(layer.conv);
    write_tail(layer.ple);
  }
}

}  // namespace

void seed_context(StatePools& pools, SessionState& session, std::span<const int32_t> ids,
                  uint64_t seed) {
  STRATA_CHECK(session.n_committed() == 0 && session.n_pending() == 0);
  if (ids.empty()) return;
  session.begin(ids);
  const auto page_tokens = static_cast<size_t>(pools.spec().page_tokens);
  Writer writer(seed);
  try {
    // As a forward would: behind what is committed, which is the other side.
    write_state(pools, session, 1 - session.side(), (ids.size() + page_tokens - 1) / page_tokens,
                writer);
  } catch (...) {
    session.commit(0);
    throw;
  }
  session.commit(session.n_pending());
}

}  // namespace strata::model
