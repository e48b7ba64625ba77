#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "strata/device/memory.h"
#include "strata/engine/state_files.h"
#include "strata/memory/plan.h"
#include "strata/model/instance.h"
#include "strata/model/state.h"

namespace strata::engine {

struct CacheOptions {
  Bytes bytes = 0;           // of host memory; 0: nothing is kept
  std::string folder;        // empty: nothing outlives the process
  uint64_t fingerprint = 0;  // of the bytes of the model, and of what changes results
};

// Keeps states of conversations beside the sessions: at the ends of prompts and answers, where
// messages begin, every few hundred tokens of a long prompt, and where two conversations part. A
// new prompt goes on from the longest one that begins it. Cells are shared by pages and lie in the
// pools that sessions leave free; recurrent state lies in a line of host memory, of a size that
// never changes. What was not used for the longest time goes first.
class PrefixCache {
 public:
  // A state is not worth its memory, nor a step of its own, for fewer tokens than this.
  static constexpr size_t kLeastTokens = 32;
  static constexpr int kMaxStates = 64;

  // Adds a line of at most `bytes`; none, and nothing is ever kept, if no state fits into them.
  // folder: for states that outlive the process, of this fingerprint (CacheOptions); empty: none.
  // Errors: those of StateFiles.
  PrefixCache(model::Instance& instance, const CacheOptions& options);
  ~PrefixCache();
  PrefixCache(const PrefixCache&) = delete;
  PrefixCache& operator=(const PrefixCache&) = delete;
  void allocate();

  bool on() const { return n_states_ > 0; }
  int n_kept() const { return static_cast<int>(entries_.size()); }

  // The longest kept state that begins these ids and leaves at least one to compute goes into the
  // session, and its part of the draft layer into cells, if both have one. Returns its tokens; 0:
  // none. Errors: those of SessionState::resume, after which the sessions are of no use any more.
  size_t resume(std::span<const int32_t> ids, model::SessionState& session,
                model::SessionState* cells);
  // How many of these ids some kept conversation begins with.
  size_t n_common(std::span<const int32_t> ids) const;
  // Keeps what is committed, unless it is too short or kept already. cells: of the draft layer, may
  // be null. Errors: those of SessionState::keep; nothing is kept then.
  void keep(const model::SessionState& session, const model::SessionState* cells);
  // Writes a state that was kept at the end of an answer and is in no file yet; false: there is
  // none. For idle times. Errors: those of HostCopy.
  bool write_one();
  // What is kept next is worth a file.
  void want_file(std::span<const int32_t> ids);

 private:
  struct Entry {
    model::KeptCells trunk;
    std::optional<model::KeptCells> draft;
    int place = 0;      // of the recurrent state
    uint64_t used = 0;  // when, in uses of this cache
    bool wants_file = false;
  };
  StateFiles::Part part_of(const model::KeptCells& kept, int place, bool draft) const;
  void fetch(std::span<const int32_t> ids);
  model::KeptCells place_part(StateFiles::Part&& part, int place, bool draft);
  bool fits(const StateFiles::Part& part, bool draft) const;
  model::StatePools& pools(bool draft) const;
  int take_place();
  std::span<std::byte> recurrent(int place, bool draft) const;
  bool drop_one();
  void drop(size_t index);

  model::Instance& instance_;
  Bytes trunk_bytes_ = 0, draft_bytes_ = 0;  // of one state
  int n_states_ = 0;
  PlanLineId line_;
  device::Allocation memory_;
  std::vector<Entry> entries_;
  std::vector<int> free_places_;
  uint64_t now_ = 0;
  std::optional<StateFiles> files_;
};

}  // namespace strata::engine
