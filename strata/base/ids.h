#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace strata {

using Bytes = uint64_t;

// An index that cannot be mixed up with another kind of index.
template <class Tag>
struct Id {
  int32_t value = -1;
  constexpr Id() = default;
  constexpr explicit Id(int32_t v) : value(v) {}
  auto operator<=>(const Id&) const = default;
};

using DeviceId = Id<struct DeviceTag>;
using ExpertId = Id<struct ExpertTag>;
using LayerId = Id<struct LayerTag>;
using PlanLineId = Id<struct PlanLineTag>;
using SlotId = Id<struct SlotTag>;

}  // namespace strata

template <class Tag>
struct std::hash<strata::Id<Tag>> {
  size_t operator()(strata::Id<Tag> id) const noexcept { return std::hash<int32_t>()(id.value); }
};
