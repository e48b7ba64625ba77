#include "strata/server/workers.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <mutex>
#include <string>
#include <thread>

namespace strata::server {
namespace {

using Size = Workers::Size;

// Jobs that stay until they are let go, and what began in which order.
class Jobs {
 public:
  std::function<void()> waiting(std::string name) {
    return [this, name] {
      note(name);
      open_.wait();
    };
  }
  std::function<void()> quick(std::string name) {
    return [this, name] { note(name); };
  }
  void let_go() { gate_.set_value(); }
  std::string order() const {
    const std::lock_guard lock(mutex_);
    return order_;
  }
  bool begins(const std::string& order_wanted) const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (order() != order_wanted && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
    return order() == order_wanted;
  }

 private:
  void note(const std::string& name) {
    const std::lock_guard lock(mutex_);
    order_ += name;
  }
  std::promise<void> gate_;
  const std::shared_future<void> open_ = gate_.get_future().share();
  mutable std::mutex mutex_;
  std::string order_;
};

TEST(Workers, OneThreadIsKeptForSmallJobs) {
  Jobs jobs;
  Workers workers(2, 100);
  EXPECT_TRUE(workers.run(jobs.waiting("A"), Size::kLarge));
  ASSERT_TRUE(jobs.begins("A"));
  EXPECT_TRUE(workers.run(jobs.quick("B"), Size::kLarge));
  EXPECT_TRUE(workers.run(jobs.quick("c")));
  EXPECT_TRUE(workers.run(jobs.quick("d")));
  EXPECT_TRUE(jobs.begins("Acd"));
  jobs.let_go();
  EXPECT_TRUE(jobs.begins("AcdB"));
}

TEST(Workers, SmallJobsComeFirst) {
  Jobs jobs;
  Workers workers(1, 100);
  EXPECT_TRUE(workers.run(jobs.waiting("a")));
  ASSERT_TRUE(jobs.begins("a"));
  EXPECT_TRUE(workers.run(jobs.quick("B"), Size::kLarge));
  EXPECT_TRUE(workers.run(jobs.quick("c")));
  jobs.let_go();
  EXPECT_TRUE(jobs.begins("acB"));
}

TEST(Workers, MoreThanTheLimitIsRefused) {
  Jobs jobs;
  Workers workers(1, 2);
  EXPECT_TRUE(workers.run(jobs.waiting("a")));
  ASSERT_TRUE(jobs.begins("a"));
  EXPECT_TRUE(workers.run(jobs.quick("b")));
  EXPECT_TRUE(workers.run(jobs.quick("C"), Size::kLarge));
  EXPECT_FALSE(workers.run(jobs.quick("d")));
  EXPECT_FALSE(workers.run(jobs.quick("E"), Size::kLarge));
  jobs.let_go();
  EXPECT_TRUE(jobs.begins("abC"));
}

}  // namespace
}  // namespace strata::server
