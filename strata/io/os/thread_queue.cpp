#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/io/os/read_queue.h"

namespace strata::io::os {
namespace {

// They wait for the disk nearly all the time.
constexpr int kMaxThreads = 16;

class ThreadQueue final : public ReadQueue {
 public:
  explicit ThreadQueue(int depth) {
    try {
      for (int i = 0; i < std::min(depth, kMaxThreads); ++i) {
        threads_.emplace_back([this] { work(); });
      }
    } catch (const std::system_error& e) {
      if (!threads_.empty()) return;  // fewer do as well
      throw Error(ErrorCode::kResourceExhausted, format("no thread to read with: {}", e.what()));
    }
  }
  ~ThreadQueue() override {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    wanted_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void submit(const strata::os::Descriptor& file, uint64_t offset, std::span<std::byte> out,
              uint64_t tag) override {
    {
      const std::lock_guard lock(mutex_);
      jobs_.push_back({file.get(), offset, out, tag});
    }
    wanted_.notify_one();
  }

  bool next(Result& result, std::chrono::milliseconds limit) override {
    std::unique_lock lock(mutex_);
    if (!done_.wait_for(lock, limit, [this] { return !results_.empty(); })) return false;
    result = results_.front();
    results_.pop_front();
    return true;
  }

 private:
  struct Job {
    int file;
    uint64_t offset;
    std::span<std::byte> out;
    uint64_t tag;
  };

  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      wanted_.wait(lock, [this] { return ending_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      const Job job = jobs_.front();
      jobs_.pop_front();
      lock.unlock();
      ssize_t got = 0;
      do {
        got = ::pread(job.file, job.out.data(), job.out.size(), static_cast<off_t>(job.offset));
      } while (got < 0 && errno == EINTR);
      const int64_t bytes = got < 0 ? -int64_t{errno} : int64_t{got};
      lock.lock();
      results_.push_back({.tag = job.tag, .bytes = bytes});
      done_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable wanted_, done_;
  std::deque<Job> jobs_;
  std::deque<Result> results_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<ReadQueue> make_thread_queue(int depth) {
  return std::make_unique<ThreadQueue>(depth);
}

}  // namespace strata::io::os
