#include "strata/engine/prefix_cache.h"

#include <algorithm>
#include <utility>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/base/log.h"
#include "strata/base/random_bits.h"

namespace strata::engine {
namespace {

size_t common_prefix(std::span<const int32_t> a, std::span<const int32_t> b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

PrefixCache::PrefixCache(model::Instance& instance, const CacheOptions& options)
    : instance_(instance) {
  model::Model& model = instance.model();
  trunk_bytes_ = model.states().recurrent_bytes();
  if (model.draft_states() != nullptr) draft_bytes_ = model.draft_states()->recurrent_bytes();
  const Bytes each = std::max<Bytes>(trunk_bytes_ + draft_bytes_, 1);
  n_states_ = static_cast<int>(std::min<Bytes>(options.bytes / each, kMaxStates));
  if (!on()) return;
  line_ = instance.plan().add({.owner = "engine",
                               .name = "prompt cache",
                               .formula = format("{} states of {} B", n_states_, each),
                               .where = device::kHostId,
                               .bytes = static_cast<Bytes>(n_states_) * each});
  if (options.folder.empty()) return;
  // Beside the model, results depend on the type of the cells, the scaling of positions, and on who
  // computes the dense layers.
  const model::ModelOptions& o = instance.options();
  uint64_t fingerprint = options.fingerprint;
  for (const uint64_t part :
       {static_cast<uint64_t>(o.cache), static_cast<uint64_t>(o.yarn_factor * 4096),
        static_cast<uint64_t>(o.yarn_context), static_cast<uint64_t>(instance.device().backend()),
        trunk_bytes_, draft_bytes_, model::page_bytes(model.states())}) {
    fingerprint = random_bits(fingerprint, part);
  }
  files_.emplace(options.folder, fingerprint);
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
  fetch(ids);
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
  // Out of the list meanwhile: where pages are short, entries of it go.
  Entry entry = std::move(*best);
  entries_.erase(entries_.begin() + (best - entries_.data()));
  const auto go_on = [&] {
    session.resume(entry.trunk, recurrent(entry.place, false));
    if (cells != nullptr && entry.draft) cells->resume(*entry.draft, recurrent(entry.place, true));
  };
  try {
    go_on();
  } catch (...) {
    entries_.push_back(std::move(entry));
    throw;
  }
  entries_.push_back(std::move(entry));
  return entries_.back().trunk.ids.size();
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
  Entry entry;
  entry.place = take_place();
  entry.used = now_;
  entry.trunk = session.keep(recurrent(entry.place, false));
  if (cells != nullptr && cells->n_committed() > 0 && cells->n_pending() == 0) {
    entry.draft = cells->keep(recurrent(entry.place, true));
  }
  std::erase(free_places_, entry.place);
  entries_.push_back(std::move(entry));
}

// The last of the free ones, which stays free until an entry has it.
int PrefixCache::take_place() {
  if (free_places_.empty()) drop_one();
  return free_places_.back();
}

model::StatePools& PrefixCache::pools(bool draft) const {
  return draft ? *instance_.model().draft_states() : instance_.model().states();
}

void PrefixCache::want_file(std::span<const int32_t> ids) {
  if (!files_ || files_->has(ids)) return;
  for (Entry& entry : entries_) {
    if (std::ranges::equal(entry.trunk.ids, ids)) entry.wants_file = true;
  }
}

StateFiles::Part PrefixCache::part_of(const model::KeptCells& kept, int place, bool draft) const {
  const std::span<const std::byte> state = recurrent(place, draft);
  StateFiles::Part part{.ids = kept.ids, .recurrent = {state.begin(), state.end()}};
  const Bytes each = model::page_bytes(pools(draft));
  part.cells.resize(kept.pages.pages().size() * each);
  for (size_t i = 0; i < kept.pages.pages().size(); ++i) {
    model::read_page(pools(draft), kept.pages.pages()[i],
                     std::span(part.cells).subspan(i * each, each));
  }
  return part;
}

bool PrefixCache::write_one() {
  const auto entry = std::ranges::find_if(entries_, &Entry::wants_file);
  if (entry == entries_.end()) return false;
  entry->wants_file = false;
  StateFiles::State state{.trunk = part_of(entry->trunk, entry->place, false)};
  if (entry->draft) state.draft = part_of(*entry->draft, entry->place, true);
  files_->write(state);
  return true;
}

// Whether the sizes are those of this model; the hash has vouched for the bytes.
bool PrefixCache::fits(const StateFiles::Part& part, bool draft) const {
  const auto page = static_cast<size_t>(pools(draft).spec().page_tokens);
  const size_t n_pages = (part.ids.size() + page - 1) / page;
  return part.recurrent.size() == recurrent(0, draft).size() &&
         part.cells.size() == n_pages * model::page_bytes(pools(draft)) &&
         n_pages <= static_cast<size_t>(pools(draft).spec().pages_per_slot());
}

model::KeptCells PrefixCache::place_part(StateFiles::Part&& part, int place, bool draft) {
  model::KeptCells kept{.ids = std::move(part.ids), .pages = model::PageLease(pools(draft))};
  const Bytes each = model::page_bytes(pools(draft));
  kept.pages.grow(static_cast<int>(part.cells.size() / each));
  for (size_t i = 0; i < kept.pages.pages().size(); ++i) {
    model::write_page(pools(draft), kept.pages.pages()[i],
                      std::span(part.cells).subspan(i * each, each));
  }
  std::ranges::copy(part.recurrent, recurrent(place, draft).begin());
  return kept;
}

// Brings a state from a file, if it begins these ids with more tokens than those in memory.
void PrefixCache::fetch(std::span<const int32_t> ids) {
  if (!files_) return;
  size_t most = kLeastTokens - 1;
  for (const Entry& entry : entries_) {
    const std::vector<int32_t>& own = entry.trunk.ids;
    if (own.size() < ids.size() && common_prefix(ids, own) == own.size()) {
      most = std::max(most, own.size());
    }
  }
  const std::optional<size_t> found = files_->find(ids, most);
  if (!found) return;
  std::optional<StateFiles::State> state = files_->read(*found);
  if (!state || !fits(state->trunk, false)) return;
  try {
    Entry entry;
    entry.place = take_place();
    entry.used = ++now_;
    entry.trunk = place_part(std::move(state->trunk), entry.place, false);
    if (instance_.model().draft_states() != nullptr && !state->draft.ids.empty() &&
        fits(state->draft, true)) {
      entry.draft = place_part(std::move(state->draft), entry.place, true);
    }
    // Pages may have been short, and places have come back.
    std::erase(free_places_, entry.place);
    entries_.push_back(std::move(entry));
  } catch (const Error& e) {
    if (e.code() == ErrorCode::kDeviceLost) throw;
    log_warning(format("a kept state could not be read back: {}", e.what()));
  }
}

}  // namespace strata::engine
