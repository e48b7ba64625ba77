#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "strata/base/os/guarded_pages.h"
#include "strata/device/event.h"
#include "strata/device/memory.h"

namespace strata::device {

class SimStream;
class SimOrder;
struct SimCard;

// Of the device of a stream or an event of this folder.
const SimCard& card_of(const Device& sim);
bool hangs_take_time(const Device& sim);
void spend_until(Device& sim, std::chrono::nanoseconds time);

// Counts how often it was recorded and how many of those records were reached.
class SimEvent final : public Event {
 public:
  SimEvent(Device& device, SimOrder& order) : Event(device), order_(order) {}
  ~SimEvent() override;
  bool done() const override { return reached_ == recorded_; }

 private:
  friend class SimOrder;
  friend class SimStream;
  bool wait_until(Clock::TimePoint until, const Clock& clock) const override;

  SimOrder& order_;
  uint64_t recorded_ = 0, reached_ = 0;
  std::chrono::nanoseconds time_{0};   // of the record that was reached last
  const SimStream* stream_ = nullptr;  // of the last record
  int n_queued_ = 0;                   // entries of queues that name this event
};

// Runs the queued work of the sims of one machine, one entry at a time, in some order that streams
// and events allow; the seed picks which. An order is legal, so whatever it breaks was broken.
class SimOrder {
 public:
  explicit SimOrder(uint64_t seed) : random_(seed) {}
  SimOrder(const SimOrder&) = delete;
  SimOrder& operator=(const SimOrder&) = delete;

  void add(SimStream& stream) { streams_.push_back(&stream); }
  void add(const Device& sim) { sims_.push_back(&sim); }
  void remove(const Device& sim) { std::erase(sims_, &sim); }
  // Whether the one copies from and to the memory of the other.
  bool linked(DeviceId a, DeviceId b) const;
  void remove(SimStream& stream);

  // Draws new preferences among the streams: each wait of the host meets a different world.
  void shuffle();
  // Runs one entry. False if there is none. Throws what the entry throws; it then counts as run,
  // and the launches and copies behind it on its stream are skipped.
  bool run_one();
  // The same, but time passes while a card stands still. False: nothing is going to run before
  // `until`.
  bool run_one_or_stand(Clock::TimePoint until, const Clock& clock);
  void freeze(std::chrono::nanoseconds time);

  // The card is lost: what its streams have queued is never done.
  void skip_work_of(const Device& device);

  // Memory of a card, full of poison and closed to the host but while queued work runs. Null: there
  // is not that much.
  std::byte* take_pages(Bytes bytes, int poison);
  void give_pages(const std::byte* data) { pages_.erase(data); }
  // Queued work runs while one of these lives.
  class Running {
   public:
    explicit Running(SimOrder& order) : order_(order) {
      if (order_.n_running_++ == 0) order_.set_open(true);
    }
    ~Running() {
      if (--order_.n_running_ == 0) order_.set_open(false);
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

   private:
    SimOrder& order_;
  };

  // Live allocations of all sims.
  void add_memory(const MemView& view) { live_[view.data] = view.bytes; }
  void remove_memory(const MemView& view) { live_.erase(view.data); }
  bool is_live(const MemView& view) const;
  // Aborts, naming the launch or copy, if queued work still names the memory: directly in a body or
  // a copy. What a body reaches through tables in memory is not seen here, only gone.
  void check_unused(const MemView& view) const;

 private:
  void set_open(bool open);

  std::mt19937_64 random_;
  std::vector<SimStream*> streams_;
  std::vector<const Device*> sims_;
  std::map<const std::byte*, Bytes> live_;
  std::map<const std::byte*, os::GuardedPages> pages_;
  int n_running_ = 0;
  bool held_up_ = false;  // by a freeze that somebody was told of
  std::chrono::steady_clock::time_point frozen_until_;
};

}  // namespace strata::device
