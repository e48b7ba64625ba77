#pragma once

#include <memory>
#include <utility>

namespace strata::device {

// Work recorded by Stream::begin_capture .. end_capture. Holds memory of its plan line; replayed on
// streams of the device that made it, which it must not outlive; not destroyed while a replay is
// queued.
class Graph {
 public:
  class Work {
   public:
    virtual ~Work() = default;
  };

  Graph() = default;
  explicit Graph(std::unique_ptr<Work> work) : work_(std::move(work)) {}

  Work* work() const { return work_.get(); }
  explicit operator bool() const { return work_ != nullptr; }

 private:
  std::unique_ptr<Work> work_;
};

}  // namespace strata::device
