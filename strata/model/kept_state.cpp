#include <algorithm>
#include <utility>

#include "strata/base/check.h"
#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/model/state.h"

// What of a session is kept when it goes on or ends, and how another one starts from there.
namespace strata::model {
namespace {

// Calls visit(part, address, bytes) for each array of a page.
template <class Visit>
void for_each_array(const StatePools& pools, int32_t page, const Visit& visit) {
  for (int l = 0; l < pools.n_layers(); ++l) {
    const kernels::KvPool& kv = pools.layer(l).kv;
    if (kv.kv_heads == 0) continue;
    const auto array = [&](std::byte* pool, int64_t bytes) {
      visit(pools.part_of(l), pool + page * bytes, static_cast<size_t>(bytes));
    };
    array(kv.k, kv.page_bytes(kv.dk));
    array(kv.v, kv.page_bytes(kv.dv));
    if (kv.ratio > 0) array(kv.pooled, kv.pooled_page_bytes());
  }
}

std::span<std::byte> bytes_of(const StatePools::RecurrentArray& array) {
  return std::as_writable_bytes(
      std::span(array.values.data(), static_cast<size_t>(array.values.size())));
}

}  // namespace

Bytes page_bytes(const StatePools& pools) {
  Bytes bytes = 0;
  for_each_array(pools, 0, [&](const StatePart&, std::byte*, size_t n) { bytes += n; });
  return bytes;
}

void read_page(const StatePools& pools, int32_t page, std::span<std::byte> to) {
  for_each_array(pools, page, [&](const StatePart& part, std::byte* at, size_t n) {
    part.copies->read(*part.stream, at, to.first(n));
    to = to.subspan(n);
  });
}

void write_page(const StatePools& pools, int32_t page, std::span<const std::byte> from) {
  for_each_array(pools, page, [&](const StatePart& part, std::byte* at, size_t n) {
    part.copies->write(*part.stream, at, from.first(n));
    from = from.subspan(n);
  });
}

KeptCells SessionState::keep(std::span<std::byte> recurrent) const {
  STRATA_CHECK(n_pending() == 0 && n_committed_ > 0);
  STRATA_CHECK(recurrent.size() == pools_.recurrent_bytes());
  size_t at = 0;
  for (const StatePools::RecurrentArray& array : pools_.recurrent(slot(), side_)) {
    const size_t n = bytes_of(array).size();
    array.part->copies->read(*array.part->stream, array.values.data(), recurrent.subspan(at, n));
    at += n;
  }
  const int64_t page = pools_.spec().page_tokens;
  return {.ids = ids_, .pages = pages_.share(static_cast<int>((n_committed() + page - 1) / page))};
}

void SessionState::resume(const KeptCells& kept, std::span<const std::byte> recurrent) {
  STRATA_CHECK(ids_.empty() && pages_.size() == 0);
  STRATA_CHECK(recurrent.size() == pools_.recurrent_bytes());
  const auto n = static_cast<int64_t>(kept.ids.size());
  if (n > max_tokens_) {
    throw Error(ErrorCode::kInvalidArgument,
                format("{} tokens do not fit into a session of {}", n, max_tokens_));
  }
  const int64_t page = pools_.spec().page_tokens;
  const int n_full = static_cast<int>(n / page);
  pages_ = kept.pages.share(n_full);
  if (n % page != 0) {
    pages_.grow(n_full + 1);
    std::vector<std::byte> bytes(page_bytes(pools_));
    read_page(pools_, kept.pages.pages()[static_cast<size_t>(n_full)], bytes);
    write_page(pools_, pages_.pages().back(), bytes);
  }
  size_t at = 0;
  for (const StatePools::RecurrentArray& array : pools_.recurrent(slot(), side_)) {
    const size_t size = bytes_of(array).size();
    array.part->copies->write(*array.part->stream, array.values.data(),
                              recurrent.subspan(at, size));
    at += size;
  }
  ids_ = kept.ids;
  n_committed_ = ids_.size();
}

}  // namespace strata::model
