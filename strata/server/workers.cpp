#include "strata/server/workers.h"

#include <algorithm>
#include <utility>

namespace strata::server {

Workers::Workers(int n_threads, size_t max_waiting)
    : max_waiting_(max_waiting), max_large_(std::max(n_threads - 1, 1)) {
  for (int i = 0; i < std::max(n_threads, 1); ++i) threads_.emplace_back([this] { work(); });
}

Workers::~Workers() {
  close();
  for (std::thread& thread : threads_) thread.join();
}

void Workers::close() {
  Jobs dropped_small, dropped_large;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    dropped_small.swap(small_);
    dropped_large.swap(large_);
  }
  changed_.notify_all();
}

bool Workers::idle() const {
  const std::lock_guard lock(mutex_);
  return small_.empty() && large_.empty() && n_running_ == 0;
}

bool Workers::run(std::function<void()> job, Size size) {
  {
    const std::lock_guard lock(mutex_);
    if (ending_ || small_.size() + large_.size() >= max_waiting_) return false;
    (size == Size::kLarge ? large_ : small_).push_back(std::move(job));
  }
  changed_.notify_one();
  return true;
}

bool Workers::has_job_locked() const {
  return !small_.empty() || (!large_.empty() && n_large_ < max_large_);
}

void Workers::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ending_ || has_job_locked(); });
    if (ending_) return;
    const bool is_large = small_.empty();
    Jobs& jobs = is_large ? large_ : small_;
    std::function<void()> job = std::move(jobs.front());
    jobs.pop_front();
    n_large_ += is_large ? 1 : 0;
    ++n_running_;
    lock.unlock();
    job();
    job = nullptr;  // what it holds goes without the lock
    lock.lock();
    --n_running_;
    n_large_ -= is_large ? 1 : 0;
    // This thread may take a small one, while another could take a large one now.
    if (is_large) changed_.notify_one();
  }
}

}  // namespace strata::server
