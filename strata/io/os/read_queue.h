#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "strata/base/os/descriptor.h"

namespace strata::io::os {

// Reads that the system works on at the same time. One thread.
class ReadQueue {
 public:
  virtual ~ReadQueue() = default;  // waits for all that were submitted
  ReadQueue(const ReadQueue&) = delete;
  ReadQueue& operator=(const ReadQueue&) = delete;

  // file and out live until the result is there. Errors: kIo if the system takes none.
  virtual void submit(const strata::os::Descriptor& file, uint64_t offset, std::span<std::byte> out,
                      uint64_t tag) = 0;
  struct Result {
    uint64_t tag = 0;
    int64_t bytes = 0;  // read; 0: the end of the file; below: an errno
  };
  // False: none came within the limit.
  virtual bool next(Result& result, std::chrono::milliseconds limit) = 0;

 protected:
  ReadQueue() = default;
};

// Null if the system refuses, and why.
std::unique_ptr<ReadQueue> make_uring_queue(int depth, std::string& why);
// Errors: kResourceExhausted without a thread.
std::unique_ptr<ReadQueue> make_thread_queue(int depth);

}  // namespace strata::io::os
