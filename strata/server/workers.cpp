#include "strata/server/workers.h"

#include <algorithm>
#include <utility>

namespace strata::server {

Workers::Workers(int n_threads, size_t max_waiting) : max_waiting_(max_waiting) {
  for (int i = 0; i < std::max(n_threads, 1); ++i) threads_.emplace_back([this] { work(); });
}

Workers::~Workers() {
  std::deque<std::function<void()>> dropped;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    dropped.swap(jobs_);
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool Workers::run(std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    if (ending_ || jobs_.size() >= max_waiting_) return false;
    jobs_.push_back(std::move(job));
  }
  changed_.notify_one();
  return true;
}

void Workers::work() {
  while (true) {
    std::function<void()> job;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return ending_ || !jobs_.empty(); });
      if (ending_) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    job();
  }
}

}  // namespace strata::server
