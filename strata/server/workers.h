#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace strata::server {

// Threads for what takes longer than the transport's thread may be busy: parsing, rendering,
// tokenizing. Any thread may call run().
class Workers {
 public:
  Workers(int n_threads, size_t max_waiting);
  // Drops what waits, ends when what runs has ended.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // False: too much is waiting already. `job` must not throw.
  bool run(std::function<void()> job);

 private:
  void work();

  const size_t max_waiting_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;  // guarded by mutex_
  bool ending_ = false;                     // guarded by mutex_
  std::vector<std::thread> threads_;
};

}  // namespace strata::server
