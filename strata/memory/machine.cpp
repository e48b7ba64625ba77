#include "strata/memory/machine.h"

#include <cmath>

#include "strata/base/format.h"

namespace strata::memory {
namespace {

// A link at 100 MB/s is slower than a disk, one at 1 TB/s faster than any socket; memory of cards
// reaches 8 TB/s today.
constexpr double kLeast = 1e8, kMostLink = 1e12, kMostMemory = 1e14;

void check(const std::string& what, double& rate, double most, std::vector<std::string>& told) {
  if (rate == 0) return;
  if (std::isfinite(rate) && rate >= kLeast && rate <= most) return;
  told.push_back(format("{} of {:.1f} GB/s cannot be; it counts as unknown", what, rate * 1e-9));
  rate = 0;
}

}  // namespace

std::vector<std::string> drop_absurd_rates(Machine& machine) {
  std::vector<std::string> told;
  for (Card& card : machine.cards) {
    check(format("{}: a link", card.name), card.link_rate, kMostLink, told);
    check(format("{}: memory", card.name), card.memory_rate, kMostMemory, told);
  }
  check("host memory", machine.ram_rate, kMostMemory, told);
  check("storage", machine.storage_rate, kMostLink, told);
  return told;
}

}  // namespace strata::memory
