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
// tokenizing. Small jobs come first, and large ones never have all threads (unless there is but
// one): some large texts must not keep everyone else waiting. Any thread may call run().
class Workers {
 public:
  enum class Size { kSmall, kLarge };

  Workers(int n_threads, size_t max_waiting);
  // As close(); ends when what runs has ended.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // False: too much is waiting already. `job` must not throw.
  bool run(std::function<void()> job, Size size = Size::kSmall);
  // Drops what waits and takes no more.
  void close();
  // Nothing runs or waits.
  bool idle() const;

 private:
  using Jobs = std::deque<std::function<void()>>;

  void work();
  bool has_job_locked() const;

  const size_t max_waiting_;
  const int max_large_;  // at the same time
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_:
  Jobs small_, large_;
  int n_running_ = 0;
  int n_large_ = 0;  // of these
  bool ending_ = false;

  std::vector<std::thread> threads_;
};

}  // namespace strata::server
