#include "strata/base/thread_pool.h"

#include <algorithm>
#include <limits>
#include <system_error>

#include "strata/base/check.h"
#include "strata/base/format.h"
#include "strata/base/log.h"
#include "strata/base/os/futex.h"
#include "strata/base/os/thread.h"

namespace strata {
namespace {

// Which pool's loop this thread is inside of, and as which of its threads.
struct Inside {
  const void* pool = nullptr;
  int thread = 0;
};
thread_local Inside inside;
thread_local const void* settled_in = nullptr;  // the pool that placed this thread last

// The next chunk of a cursor that has none: above every chunk's number.
constexpr uint64_t kClosed = 0xffffffff;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

uint32_t chunk_begin(uint32_t n_chunks, uint32_t range, uint32_t n_ranges) {
  return static_cast<uint32_t>(uint64_t{n_chunks} * range / n_ranges);
}

}  // namespace

ThreadPool::ThreadPool(const ThreadPoolOptions& options) : options_(options) {
  STRATA_CHECK(options.n_threads >= 1);
  const int n_wanted = options.n_threads;
  cursors_ = std::make_unique<Cursor[]>(static_cast<size_t>(n_wanted));
  workers_.reserve(static_cast<size_t>(n_wanted - 1));
  try {
    for (int i = 1; i < n_wanted; ++i) workers_.emplace_back([this, i] { worker(i); });
  } catch (const std::system_error& e) {
    log_warning(format("only {} of {} threads could be started: {}", workers_.size() + 1, n_wanted,
                       e.what()));
  }
  n_threads_ = static_cast<int>(workers_.size()) + 1;
}

ThreadPool::~ThreadPool() {
  stop_.store(true, std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_seq_cst);
  os::futex_wake(epoch_, std::numeric_limits<int>::max());
  for (std::thread& thread : workers_) thread.join();
}

void ThreadPool::run(const Loop& loop, Body body) {
  if (loop.n_items <= 0) return;
  STRATA_CHECK(loop.grain > 0);
  if (settled_in != this) settle(inside.pool == this ? inside.thread : 0);
  if (inside.pool == this) return body(0, loop.n_items, inside.thread);
  int64_t grain = loop.grain;
  if (loop.ns_per_item > 0) {
    const double n = static_cast<double>(options_.least_chunk.count()) /
                     (loop.ns_per_item * static_cast<double>(grain));
    // Comparing first: a tiny estimate makes n larger than an integer.
    if (n > 1) grain *= static_cast<int64_t>(std::min(n, static_cast<double>(loop.n_items)));
  }
  int64_t n_chunks = (loop.n_items - 1) / grain + 1;
  constexpr int64_t kMaxChunks = int64_t{1} << 30;  // a cursor counts them in 32 bits
  if (n_chunks > kMaxChunks) {
    grain *= (n_chunks - 1) / kMaxChunks + 1;
    n_chunks = (loop.n_items - 1) / grain + 1;
  }
  STRATA_CHECK(!busy_.exchange(true, std::memory_order_acquire));
  struct Leave {
    std::atomic<bool>& busy;
    ~Leave() {
      inside = {};
      busy.store(false, std::memory_order_release);
    }
  } leave{busy_};
  inside = {this, 0};

  const double total_ns = loop.ns_per_item * static_cast<double>(loop.n_items);
  const auto least_ns = static_cast<double>(options_.inline_below.count());
  if (n_chunks == 1 || (loop.ns_per_item > 0 && total_ns < least_ns)) {
    return body(0, loop.n_items, 0);
  }
  publish(loop, body, static_cast<uint32_t>(n_chunks), grain);
  const uint32_t epoch = epoch_.load(std::memory_order_relaxed) + 1;
  // seq_cst against the worker's "count me asleep, then look at the epoch": one of the two sees
  // the other.
  epoch_.store(epoch, std::memory_order_seq_cst);
  const auto wake_ns = static_cast<double>(options_.wake_above.count());
  const bool worth_waking = loop.ns_per_item <= 0 || total_ns >= wake_ns;
  if (n_asleep_.load(std::memory_order_seq_cst) > 0 && worth_waking) {
    int64_t n_helpers = std::min<int64_t>(n_threads_, n_chunks) - 1;
    // Each has to find at least as much work as its waking takes.
    constexpr double kWakingNs = 20'000;
    if (loop.ns_per_item > 0 && wake_ns > 0) {
      n_helpers = std::min(n_helpers, static_cast<int64_t>(total_ns / kWakingNs));
    }
    os::futex_wake(epoch_, static_cast<int>(n_helpers));
  }
  const uint32_t n_done = work(epoch, 0);
  uint32_t n_left = n_pending_.fetch_sub(n_done, std::memory_order_acq_rel) - n_done;
  while (n_left > 0) {
    if (!spin_until_changed(n_pending_, n_left)) {
      caller_asleep_.store(1, std::memory_order_seq_cst);
      if (n_pending_.load(std::memory_order_seq_cst) == n_left) {
        os::futex_wait(n_pending_, n_left);
      }
      caller_asleep_.store(0, std::memory_order_relaxed);
    }
    n_left = n_pending_.load(std::memory_order_acquire);
  }
  if (failed_.load(std::memory_order_relaxed)) {
    std::rethrow_exception(std::exchange(failure_, nullptr));
  }
}

// Once for each thread: workers at their start, a caller at its first loop.
void ThreadPool::settle(int thread) const {
  settled_in = this;
  const auto at = static_cast<size_t>(thread);
  if (at < options_.cpus.size()) os::run_on(options_.cpus[at]);
}

void ThreadPool::publish(const Loop& loop, Body body, uint32_t n_chunks, int64_t grain) {
  const bool own_first = loop.share == Loop::Share::kOwnFirst;
  const uint32_t n_ranges = own_first ? std::min(static_cast<uint32_t>(n_threads_), n_chunks) : 1;
  constexpr auto kRelaxed = std::memory_order_relaxed;
  constexpr auto kRelease = std::memory_order_release;
  const uint64_t epoch_bits = uint64_t{epoch_.load(kRelaxed) + 1} << 32;
  // First the cursors leave the old loop, then the job changes: a worker that comes late to the old
  // loop and already reads the new, longer job would otherwise claim chunks behind the old end.
  for (int i = 0; i < n_threads_; ++i) cursors_[i].value.store(epoch_bits | kClosed, kRelaxed);
  job_.context.store(body.context(), kRelease);
  job_.call.store(body.call(), kRelease);
  job_.n_items.store(loop.n_items, kRelease);
  job_.grain.store(grain, kRelease);
  job_.n_chunks.store(n_chunks, kRelease);
  job_.n_ranges.store(n_ranges, kRelease);
  // The store of epoch_ releases what follows.
  failed_.store(false, kRelaxed);
  n_pending_.store(n_chunks, kRelaxed);
  for (uint32_t r = 0; r < n_ranges; ++r) {
    cursors_[r].value.store(epoch_bits | chunk_begin(n_chunks, r, n_ranges), kRelaxed);
  }
}

// Claims and runs chunks of the loop `epoch` until none is left; returns how many it ran.
//
// What is read from job_ may already belong to a later loop. But publish() takes the cursors from
// this loop before it writes the job, and whoever reads the new job (acquire) then reads the new
// cursors: so if the compare-exchange on a cursor of this loop succeeds, what was read before it
// belongs to this loop.
uint32_t ThreadPool::work(uint32_t epoch, int thread) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  constexpr auto kAcquire = std::memory_order_acquire;
  const Body body(job_.context.load(kAcquire), job_.call.load(kAcquire));
  const int64_t n_items = job_.n_items.load(kAcquire);
  const int64_t grain = job_.grain.load(kAcquire);
  const uint32_t n_chunks = job_.n_chunks.load(kAcquire);
  const uint32_t n_ranges = job_.n_ranges.load(kAcquire);
  uint32_t n_done = 0;
  for (uint32_t k = 0; k < n_ranges; ++k) {
    const uint32_t range = (static_cast<uint32_t>(thread) + k) % n_ranges;
    const uint32_t end = chunk_begin(n_chunks, range + 1, n_ranges);
    std::atomic<uint64_t>& cursor = cursors_[range].value;
    uint64_t at = cursor.load(kRelaxed);
    for (;;) {
      if (static_cast<uint32_t>(at >> 32) != epoch) return n_done;
      const auto chunk = static_cast<uint32_t>(at);
      if (chunk >= end) break;
      const uint32_t n = std::max((end - chunk) / (2 * static_cast<uint32_t>(n_threads_)), 1U);
      if (!cursor.compare_exchange_weak(at, at + n, std::memory_order_acq_rel, kRelaxed)) continue;
      n_done += n;
      if (!failed_.load(kRelaxed)) {
        try {
          const int64_t begin = chunk * grain;
          body(begin, std::min(begin + n * grain, n_items), thread);
        } catch (...) {
          if (!failed_.exchange(true, kRelaxed)) failure_ = std::current_exception();
        }
      }
      at = cursor.load(kRelaxed);
    }
  }
  return n_done;
}

void ThreadPool::worker(int thread) {
  os::set_thread_name(format("strata-cpu{}", thread).c_str());
  inside = {this, thread};
  settle(thread);
  uint32_t seen = 0;
  for (;;) {
    uint32_t epoch = epoch_.load(std::memory_order_acquire);
    if (epoch == seen) {
      if (!spin_until_changed(epoch_, seen)) {
        n_asleep_.fetch_add(1, std::memory_order_seq_cst);
        if (epoch_.load(std::memory_order_seq_cst) == seen) os::futex_wait(epoch_, seen);
        n_asleep_.fetch_sub(1, std::memory_order_relaxed);
      }
      continue;
    }
    if (stop_.load(std::memory_order_relaxed)) return;
    seen = epoch;
    const uint32_t n_done = work(epoch, thread);
    // seq_cst against the caller's "I sleep, then look at n_pending_".
    if (n_done > 0 && n_pending_.fetch_sub(n_done, std::memory_order_seq_cst) == n_done &&
        caller_asleep_.load(std::memory_order_seq_cst) != 0) {
      os::futex_wake(n_pending_, 1);
    }
  }
}

// False if the word did not change within the spin time.
bool ThreadPool::spin_until_changed(const std::atomic<uint32_t>& word, uint32_t from) const {
  if (options_.spin.count() <= 0) return word.load(std::memory_order_relaxed) != from;
  const auto until = std::chrono::steady_clock::now() + options_.spin;
  do {
    for (int i = 0; i < 16; ++i) {
      if (word.load(std::memory_order_relaxed) != from) return true;
      relax();
    }
  } while (std::chrono::steady_clock::now() < until);
  return false;
}

}  // namespace strata
