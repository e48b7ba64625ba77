#include "strata/memory/budget.h"

#include <algorithm>

#include "strata/base/format.h"
#include "strata/memory/plan.h"

namespace strata::memory {
namespace {

constexpr Bytes kMiB = Bytes{1} << 20;

Bytes less(Bytes a, Bytes b) { return a - std::min(a, b); }

// A share of small cards, so that they are of use at all.
Bytes usual_reserve(const Card& card) {
  return card.display ? std::min(1024 * kMiB, card.total / 8)
                      : std::min(384 * kMiB, card.total / 16);
}

}  // namespace

Budget card_budget(const Card& card, bool first, const CardWishes& wishes) {
  Bytes bytes = card.total;
  std::string why = bytes_text(card.total);
  if (wishes.limit && *wishes.limit < bytes) {
    bytes = *wishes.limit;
    why = format("limited to {}", bytes_text(bytes));
  }
  if (card.used_by_others > 0) {
    bytes = less(bytes, card.used_by_others);
    why += format(" less {} of others", bytes_text(card.used_by_others));
  }
  if (card.os_budget > 0 && card.os_budget < bytes) {
    bytes = card.os_budget;
    why = format("{} that the system allows", bytes_text(bytes));
  }
  const std::optional<Bytes>& wish = first ? wishes.reserve_first : wishes.reserve_later;
  const Bytes reserve = wish ? *wish : usual_reserve(card);
  why += format(" less {} kept free{}", bytes_text(reserve),
                wish           ? " as told"
                : card.display ? " beside a display"
                               : "");
  return {.bytes = less(bytes, reserve), .reserve = reserve, .why = why};
}

Bytes host_reserve(Bytes total) { return std::clamp(total / 16, 256 * kMiB, 2048 * kMiB); }

Budget host_budget(const Machine& machine, std::optional<Bytes> reserve) {
  const Bytes kept = reserve ? *reserve : host_reserve(machine.ram);
  std::string why = bytes_text(machine.ram);
  if (machine.ram_used_by_others > 0) {
    why += format(" less {} of others", bytes_text(machine.ram_used_by_others));
  }
  why += format(" less {} kept free", bytes_text(kept));
  return {.bytes = less(less(machine.ram, machine.ram_used_by_others), kept),
          .reserve = kept,
          .why = why};
}

}  // namespace strata::memory
