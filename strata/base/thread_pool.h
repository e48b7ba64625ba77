#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

#include "strata/base/function_ref.h"

namespace strata {

struct ThreadPoolOptions {
  int n_threads = 1;  // the caller's thread is one of them
  // How long a worker without work, or the caller waiting for the last chunk, looks around before
  // it sleeps: about what waking costs (20 to 25 us measured in a virtual machine of two cores), so
  // never more than twice the time of the better choice is spent.
  std::chrono::nanoseconds spin = std::chrono::microseconds(30);
  // A loop whose estimated time is below this runs on the caller alone. Handing one out costs 2 us
  // and more, what the helpers wrote has to come from their caches, and estimates are for work from
  // memory: what lies in a cache takes half of them.
  std::chrono::nanoseconds inline_below = std::chrono::microseconds(30);
  // Below this sleepers are left asleep: those awake share the loop. Waking costs the caller some
  // microseconds and the sleeper 20 to 25.
  std::chrono::nanoseconds wake_above = std::chrono::microseconds(100);
  // What is claimed at once takes at least about this long, if the loop's time is known: a claim
  // moves a cache line between cores.
  std::chrono::nanoseconds least_chunk = std::chrono::microseconds(1);
  // The CPUs that thread i stays on, the caller being thread 0; empty: anywhere. For machines of
  // several memory nodes, os::thread_cpus.
  std::vector<std::vector<int>> cpus{};
};

// How one loop is cut.
struct Loop {
  enum class Share : uint8_t {
    kDynamic,   // one queue of chunks: uneven work
    kOwnFirst,  // each thread starts with its own stretch, the same one in every loop of this
                // length (its cache is warm), then helps the others
  };
  int64_t n_items = 0;
  int64_t grain = 1;       // borders of ranges are multiples of this, the end apart
  double ns_per_item = 0;  // about; 0: unknown, taken as worth sharing
  Share share = Share::kDynamic;
};

// Threads for computing. Chunks are claimed, never handed out, so a worker that sleeps or lost its
// core delays the chunk it holds and nothing else; the caller alone finishes a loop whose workers
// do not come. Claims are long at first and fall towards the end: few of them, neighbouring items
// in one call, and yet all threads end together. No heap use per loop.
//
// One loop at a time: one thread (any, not always the same) calls parallel_for. A call from inside
// a loop of the same pool runs on the calling thread.
class ThreadPool {
 public:
  // Starts n_threads - 1 workers. If the system refuses one, goes on with fewer and warns.
  explicit ThreadPool(const ThreadPoolOptions& options);
  explicit ThreadPool(int n_threads) : ThreadPool(ThreadPoolOptions{.n_threads = n_threads}) {}
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int n_threads() const { return n_threads_; }

  // How loops over what lies in memory are to be shared: on several memory nodes by place, so that
  // who has first touched a stretch, and with it chosen its node, is who reads it later.
  Loop::Share by_place() const {
    return options_.cpus.empty() ? Loop::Share::kDynamic : Loop::Share::kOwnFirst;
  }

  // Calls fn(begin, end) or fn(begin, end, thread) until [0, n_items) is covered exactly once, and
  // returns when all calls are done. thread is in [0, n_threads) and is held by one call at a time:
  // an index of per-thread scratch. A range may span several grains, so a result must not depend on
  // where ranges end.
  // If a call throws, what is not begun yet is dropped and one of the exceptions is rethrown here.
  template <class Fn>
  void parallel_for(const Loop& loop, Fn&& fn) {
    auto body = [&fn](int64_t begin, int64_t end, int thread) {
      if constexpr (std::is_invocable_v<Fn&, int64_t, int64_t, int>) {
        fn(begin, end, thread);
      } else {
        static_cast<void>(thread);
        fn(begin, end);
      }
    };
    if (n_threads_ == 1) {
      if (loop.n_items > 0) body(0, loop.n_items, 0);
      return;
    }
    run(loop, body);
  }
  template <class Fn>
  void parallel_for(int64_t n_items, int64_t grain, Fn&& fn) {
    parallel_for(Loop{.n_items = n_items, .grain = grain}, fn);
  }

 private:
  using Body = FunctionRef<void(int64_t, int64_t, int)>;

  // The loop being run. A worker that comes late may read it while the caller writes the next one,
  // hence atomics; what it read counts only if it then claims a chunk (see work()).
  struct Job {
    std::atomic<void*> context{nullptr};
    std::atomic<Body::Call> call{nullptr};
    std::atomic<int64_t> n_items{0}, grain{1};
    std::atomic<uint32_t> n_chunks{0}, n_ranges{1};
  };
  // Epoch in the upper half, next chunk in the lower: a claim for an old loop cannot succeed.
  struct alignas(64) Cursor {
    std::atomic<uint64_t> value{0};
  };

  void run(const Loop& loop, Body body);
  void settle(int thread) const;
  void publish(const Loop& loop, Body body, uint32_t n_chunks, int64_t grain);
  uint32_t work(uint32_t epoch, int thread);
  void worker(int thread);
  bool spin_until_changed(const std::atomic<uint32_t>& word, uint32_t from) const;

  ThreadPoolOptions options_;
  int n_threads_ = 1;
  Job job_;
  std::unique_ptr<Cursor[]> cursors_;
  alignas(64) std::atomic<uint32_t> epoch_{0};      // one more a loop; workers sleep on it
  alignas(64) std::atomic<uint32_t> n_asleep_{0};   // workers that need waking
  alignas(64) std::atomic<uint32_t> n_pending_{0};  // chunks not done; the caller sleeps on it
  std::atomic<uint32_t> caller_asleep_{0};
  std::atomic<bool> stop_{false}, busy_{false}, failed_{false};
  std::exception_ptr failure_;  // written by whoever set failed_, read when n_pending_ is 0
  std::vector<std::thread> workers_;
};

}  // namespace strata
