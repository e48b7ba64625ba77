#include "strata/model/seeded_context.h"

#include <array>
#include <cstring>

#include "strata/base/check.h"
#include "strata/base/error.h"
#include "strata/base/random_bits.h"
#include "strata/quant/half.h"

namespace strata::model {
namespace {

// Even between -1 and 1, times `size`.
class Values {
 public:
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

void fill_cells(const kernels::KvPool& kv, int32_t page, Values& values) {
  const int64_t size = kernels::bytes_of(kv.type);
  const int64_t keys = int64_t{kv.kv_heads} * kv.page_tokens * kv.dk;
  const int64_t payload = int64_t{kv.kv_heads} * kv.page_tokens * kv.dv;
  values.fill(kv.k + page * keys * size, keys, kv.type, kNormed);
  values.fill(kv.v + page * payload * size, payload, kv.type, kValue);
  if (kv.pooled == nullptr) return;
  const int64_t pooled = int64_t{kv.blocks_per_page()} * kv.index_dim;
  values.fill(kv.pooled + page * pooled * size, pooled, kv.type, kNormed);
}

}  // namespace

void seed_context(StatePools& pools, SessionState& session, device::Stream& stream,
                  std::span<const int32_t> ids, uint64_t seed) {
  STRATA_CHECK(session.n_committed() == 0 && session.n_pending() == 0);
  if (ids.empty()) return;
  session.begin(ids);
  // The state is written as the host sees it; nothing queued may come after.
  if (!stream.drain({"session", "made-up state"},
                    device::Deadline::within(std::chrono::minutes(1)))) {
    session.commit(0);
    throw Error(ErrorCode::kDevice, "the state of a session was not free within a minute");
  }
  session.commit(session.n_pending());
  const int slot = session.slot(), side = session.side();
  const int64_t page_tokens = pools.spec().page_tokens;
  const auto n_pages = static_cast<size_t>((session.n_committed() + page_tokens - 1) / page_tokens);
  Values values(seed);
  const auto fill_tail = [&](const kernels::Tail& tail) {
    if (tail.state) values.fill(tail.side(slot, side), tail.depth() * tail.width(), kNormed);
  };
  for (int l = 0; l < pools.n_layers(); ++l) {
    const LayerState& layer = pools.layer(l);
    if (layer.kv.k != nullptr) {
      for (const int32_t page : session.pages().first(n_pages)) fill_cells(layer.kv, page, values);
    }
    if (layer.delta.s) {
      values.fill(layer.delta.side(slot, side), layer.delta.s.extent(2) * layer.delta.s.extent(3),
                  kDelta);
    }
    fill_tail(layer.raw_keys);
    fill_tail(layer.conv);
    fill_tail(layer.ple);
  }
}

}  // namespace strata::model
