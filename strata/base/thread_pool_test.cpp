#include "strata/base/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <numeric>
#include <random>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace strata {
namespace {

using std::chrono::microseconds;

class Pools : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, Pools, testing::Values(1, 2, 3, 8));

TEST_P(Pools, CoverEachItemOnceOnGrainBorders) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.n_threads(), GetParam());
  for (const auto share : {Loop::Share::kDynamic, Loop::Share::kOwnFirst}) {
    for (const int64_t n : {0, 1, 2, 7, 64, 65, 1000}) {
      for (const int64_t grain : {1, 3, 64, 5000}) {
        std::vector<std::atomic<int>> seen(static_cast<size_t>(n));
        pool.parallel_for(Loop{.n_items = n, .grain = grain, .share = share},
                          [&](int64_t begin, int64_t end, int thread) {
                            EXPECT_EQ(begin % grain, 0);
                            EXPECT_TRUE(end % grain == 0 || end == n);
                            EXPECT_TRUE(thread >= 0 && thread < GetParam());
                            for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
                          });
        for (const auto& count : seen) EXPECT_EQ(count.load(), 1);
      }
    }
  }
}

TEST_P(Pools, HandAnExceptionToTheCallerAndGoOn) {
  ThreadPool pool(GetParam());
  for (int round = 0; round < 50; ++round) {
    EXPECT_THROW(pool.parallel_for(100, 1,
                                   [&](int64_t begin, int64_t end) {
                                     if (begin <= 37 && 37 < end) throw std::runtime_error("37");
                                   }),
                 std::runtime_error);
    std::atomic<int64_t> sum{0};
    pool.parallel_for(100, 7, [&](int64_t begin, int64_t end) { sum += end - begin; });
    EXPECT_EQ(sum.load(), 100);
  }
}

TEST_P(Pools, RunALoopInsideALoopOnTheSameThread) {
  ThreadPool pool(GetParam());
  std::atomic<int64_t> n{0};
  pool.parallel_for(8, 1, [&](int64_t begin, int64_t end, int thread) {
    const std::thread::id outer = std::this_thread::get_id();
    for (int64_t i = begin; i < end; ++i) {
      pool.parallel_for(10, 1, [&](int64_t inner_begin, int64_t inner_end, int inner_thread) {
        EXPECT_EQ(std::this_thread::get_id(), outer);
        EXPECT_EQ(inner_thread, thread);
        n += inner_end - inner_begin;
      });
    }
  });
  EXPECT_EQ(n.load(), 80);
}

TEST(ThreadPool, CheapLoopsStayOnTheCaller) {
  ThreadPool pool({.n_threads = 4, .inline_below = microseconds(10)});
  const std::thread::id self = std::this_thread::get_id();
  int n_calls = 0;
  pool.parallel_for(Loop{.n_items = 99, .grain = 1, .ns_per_item = 100},
                    [&](int64_t begin, int64_t end) {
                      EXPECT_EQ(std::this_thread::get_id(), self);
                      EXPECT_EQ(end - begin, 99);
                      ++n_calls;
                    });
  EXPECT_EQ(n_calls, 1);
}

// With one thread that claims, the calls show the claims.
TEST(ThreadPool, ClaimsFallAndAreNotTooShort) {
  ThreadPool pool({.n_threads = 2,
                   .spin = microseconds(0),
                   .inline_below = microseconds(0),
                   .wake_above = std::chrono::hours(1),
                   .least_chunk = microseconds(1)});
  std::atomic<int> n_begun{0};
  pool.parallel_for(2, 1, [&](int64_t, int64_t) {
    ++n_begun;
    while (n_begun.load() < 2) std::this_thread::yield();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the worker sleeps, and stays so
  const auto claims = [&](const Loop& loop) {
    std::vector<int64_t> sizes;
    pool.parallel_for(loop, [&](int64_t begin, int64_t end) { sizes.push_back(end - begin); });
    return sizes;
  };
  const std::vector<int64_t> long_items = claims({.n_items = 64, .ns_per_item = 2000});
  EXPECT_EQ(long_items.front(), 16);
  EXPECT_EQ(long_items.back(), 1);
  EXPECT_TRUE(std::is_sorted(long_items.rbegin(), long_items.rend()));
  for (int64_t n : claims({.n_items = 1000, .grain = 2, .ns_per_item = 10})) EXPECT_GE(n, 100);
  EXPECT_EQ(claims({.n_items = 1000, .ns_per_item = 1e-300}), std::vector<int64_t>{1000});
}

// Every worker but the caller sits in its first chunk until all other chunks are done.
TEST(ThreadPool, AWorkerThatDoesNotMoveDelaysOnlyItsOwnChunk) {
  ThreadPool pool(4);
  std::atomic<int64_t> n_done{0}, n_held{0};
  const std::thread::id self = std::this_thread::get_id();
  for (const auto share : {Loop::Share::kDynamic, Loop::Share::kOwnFirst}) {
    n_done = 0, n_held = 0;
    pool.parallel_for(Loop{.n_items = 40, .share = share}, [&](int64_t begin, int64_t end) {
      if (std::this_thread::get_id() != self) {
        n_held += end - begin;
        while (n_done.load() + n_held.load() < 40) std::this_thread::yield();
      }
      n_done += end - begin;
    });
    EXPECT_EQ(n_done.load(), 40);
  }
}

// More workers than CPUs, some of which give their core away in the middle of a chunk.
TEST(ThreadPool, NoWakeUpIsLostAmongManyWorkers) {
  for (const int n_threads : {2, 9, 32}) {
    ThreadPool pool({.n_threads = n_threads, .spin = microseconds(1)});
    std::mt19937 random(11);
    for (int round = 0; round < 1000; ++round) {
      const auto n = static_cast<int64_t>(random() % 100);
      const bool yields = random() % 4 == 0;
      std::atomic<int64_t> n_done{0};
      pool.parallel_for(n, 1, [&](int64_t begin, int64_t end) {
        if (yields && begin % 3 == 0) std::this_thread::yield();
        n_done += end - begin;
      });
      ASSERT_EQ(n_done.load(), n);
    }
  }
}

// A worker that is late to a short loop meets the longer one that follows.
TEST(ThreadPool, AShortLoopThenALongOneOverAndOver) {
  for (const int n_threads : {2, 8}) {
    ThreadPool pool({.n_threads = n_threads, .spin = microseconds(100)});
    for (const auto share : {Loop::Share::kDynamic, Loop::Share::kOwnFirst}) {
      std::vector<std::atomic<int>> seen(300);
      for (int round = 0; round < 10000; ++round) {
        const int64_t n = round % 2 == 0 ? 1 + n_threads : 1 + n_threads * 20 + round % 97;
        for (int64_t i = 0; i < n; ++i) seen[static_cast<size_t>(i)] = 0;
        pool.parallel_for(Loop{.n_items = n, .share = share}, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
        });
        for (int64_t i = 0; i < n; ++i) ASSERT_EQ(seen[static_cast<size_t>(i)].load(), 1) << round;
      }
    }
  }
}

// The caller waits inside its first chunk until somebody else has done one: sleepers are woken.
TEST(ThreadPool, SleepersAreWoken) {
  ThreadPool pool({.n_threads = 2, .spin = microseconds(0)});
  for (int round = 0; round < 200; ++round) {
    if (round % 50 == 0) std::this_thread::sleep_for(microseconds(200));
    std::atomic<int> n_begun{0};
    pool.parallel_for(2, 1, [&](int64_t, int64_t) {
      ++n_begun;
      while (n_begun.load() < 2) std::this_thread::yield();
    });
  }
}

// A thread index is held by one call at a time, so plain memory can hang on it; what a loop wrote
// is seen by the next loop, whoever runs it. Under the thread sanitizer both are proved.
TEST(ThreadPool, ManyLoopsOfAllKinds) {
  for (const auto spin : {microseconds(0), microseconds(5), microseconds(50)}) {
    ThreadPool pool({.n_threads = 5, .spin = spin, .inline_below = microseconds(1)});
    std::mt19937 random(7);
    std::vector<int64_t> values(500), scratch(5);
    std::vector<int64_t> want(500);
    for (int round = 0; round < 3000; ++round) {
      const auto n = static_cast<int64_t>(random() % 500 + 1);
      const Loop loop{.n_items = n,
                      .grain = static_cast<int64_t>(random() % 16 + 1),
                      .ns_per_item = static_cast<double>(random() % 8),
                      .share = random() % 2 == 0 ? Loop::Share::kDynamic : Loop::Share::kOwnFirst};
      const bool fails = random() % 64 == 0;
      const auto body = [&](int64_t begin, int64_t end, int thread) {
        scratch[static_cast<size_t>(thread)] += end - begin;
        if (fails) throw round;
        for (int64_t i = begin; i < end; ++i) values[static_cast<size_t>(i)] += round;
      };
      if (fails) {
        EXPECT_THROW(pool.parallel_for(loop, body), int);
        continue;
      }
      pool.parallel_for(loop, body);
      for (int64_t i = 0; i < n; ++i) want[static_cast<size_t>(i)] += round;
    }
    EXPECT_EQ(values, want);
  }
}

int cpus_of_this_thread(cpu_set_t& set) {
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 0;
}

// In a thread of its own, whose mask is lost with it.
TEST(ThreadPool, ThreadsStayOnTheirCpus) {
  cpu_set_t ours;
  ASSERT_GE(cpus_of_this_thread(ours), 1);
  int first = 0;
  while (!CPU_ISSET(first, &ours)) ++first;
  std::thread caller([&] {
    ThreadPool pool({.n_threads = 3, .cpus = {{first}, {first}}});
    std::atomic<int> n_begun{0};
    std::atomic<int> n_bound{0}, n_free{0};
    pool.parallel_for(3, 1, [&](int64_t, int64_t, int thread) {
      ++n_begun;
      while (n_begun.load() < 3) std::this_thread::yield();
      cpu_set_t mine;
      const int n = cpus_of_this_thread(mine);
      if (thread < 2) {
        n_bound += n == 1 && CPU_ISSET(first, &mine) ? 1 : 0;
      } else {
        n_free += CPU_EQUAL(&mine, &ours) ? 1 : 0;
      }
    });
    EXPECT_EQ(n_bound.load(), 2);
    EXPECT_EQ(n_free.load(), 1);
  });
  caller.join();
}

TEST(ThreadPool, CountsOfItemsBeyond32Bits) {
  ThreadPool pool(2);
  std::atomic<int64_t> sum{0};
  const int64_t n = (int64_t{1} << 40) + 5;
  pool.parallel_for(n, int64_t{1} << 30, [&](int64_t begin, int64_t end) { sum += end - begin; });
  EXPECT_EQ(sum.load(), n);
}

}  // namespace
}  // namespace strata
