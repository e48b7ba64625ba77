#include "strata/engine/prefix_cache.h"

#include <algorithm>
#include <utility>

#include "strata/base/format.h"

namespace strata::engine {
namespace {

size_t common_prefix(std::span<const int32_t> a, std::span<const int32_t> b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

PrefixCache::PrefixCache(model::Instance& instance, Bytes bytes) : instance_(instance) {
  model::Model& model = instance.model();
  trunk_bytes_ = model.states().recurrent_bytes();
  if (model.draft_states() != nullptr) draft_bytes_ = model.draft_states()->recurrent_bytes();
  const Bytes each = std::max<Bytes>(trunk_bytes_ + draft_bytes_, 1);
  n_states_ = static_cast<int>(std::min<Bytes>(bytes / each, kMaxStates));
  if (!on()) return;
  line_ = instance.plan().add({.owner = "engine",
                               .name = "prompt cache",
                               .formula = format("{} states of {} B", n_states_, each),
                               .where = device::kHostId,
                               .bytes = static_cast<Bytes>(n_states_) * each});
}

PrefixCache::~PrefixCache() {
  model::Model& model = instance_.model();
  model.states().set_reclaim({});
  if (model.draft_states() != nullptr) model.draft_states()->set_reclaim({});
}

void PrefixCache::allocate() {
  if (!on()) return;
  device::Device& host = *instance_.stages().host;
  memory_ = value_or_throw(host.allocate(
      line_, static_cast<Bytes>(n_states_) * (trunk_bytes_ + draft_bytes_), host.work_memory()));
  for (int place = n_states_ - 1; place >= 0; --place) free_places_.push_back(place);
  model::Model& model = instance_.model();
  model.states().set_reclaim([this] { return drop_one(); });
  if (model.draft_states() != nullptr) {
    model.draft_states()->set_reclaim([this] { return drop_one(); });
  }
}

std::span<std::byte> PrefixCache::recurrent(int place, bool draft) const {
  std::byte* const at = memory_.data() + static_cast<Bytes>(place) * (trunk_bytes_ + draft_bytes_);
  return draft ? std::span(at + trunk_bytes_, draft_bytes_) : std::span(at, trunk_bytes_);
}

void PrefixCache::drop(size_t index) {
  free_places_.push_back(entries_[index].place);
  entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(index));
}

bool PrefixCache::drop_one() {
  if (entries_.empty()) return false;
  const auto oldest = std::ranges::min_element(entries_, {}, &Entry::used);
  drop(static_cast<size_t>(oldest - entries_.begin()));
  return true;
}

size_t PrefixCache::n_common(std::span<const int32_t> ids) const {
  size_t most = 0;
  for (const Entry& entry : entries_) most = std::max(most, common_prefix(ids, entry.trunk.ids));
  return most;
}

size_t PrefixCache::resume(std::span<const int32_t> ids, model::SessionState& session,
                           model::SessionState* cells) {
  Entry* best = nullptr;
  ++now_;
  for (Entry& entry : entries_) {
    const std::vector<int32_t>& own = entry.trunk.ids;
    if (own.size() >= ids.size() || common_prefix(ids, own) < own.size()) continue;
    // Shorter ones of the same conversation are of use as well: others may part there.
    entry.used = now_;
    if (best == nullptr || own.size() > best->trunk.ids.size()) best = &entry;
  }
  if (best == nullptr) return 0;
  session.resume(best->trunk, recurrent(best->place, false));
  if (cells != nullptr && best->draft) cells->resume(*best->draft, recurrent(best->place, true));
  return best->trunk.ids.size();
}

void PrefixCache::keep(const model::SessionState& session, const model::SessionState* cells) {
  if (!on() || session.n_committed() < static_cast<int64_t>(kLeastTokens)) return;
  ++now_;
  const auto same = std::ranges::find_if(entries_, [&](const Entry& entry) {
    return std::ranges::equal(entry.trunk.ids, session.ids());
  });
  if (same != entries_.end()) {
    same->used = now_;
    return;
  }
  if (free_places_.empty()) drop_one();
  Entry entry;
  entry.place = free_places_.back();
  entry.used = now_;
  entry.trunk = session.keep(recurrent(entry.place, false));
  if (cells != nullptr && cells->n_committed() > 0 && cells->n_pending() == 0) {
    entry.draft = cells->keep(recurrent(entry.place, true));
  }
  entries_.push_back(std::move(entry));
  free_places_.pop_back();
}

}  // namespace strata::engine
