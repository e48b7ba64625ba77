#pragma once

#include <algorithm>

#include "strata/base/view.h"
#include "strata/device/stream.h"
#include "strata/kernels/op_table.h"

namespace strata::model {

// One pass over the ops of a model. Run: queues them, each with the same scratch, as one is done
// before the next begins. Measured, while memory is laid out: only asks whether the device has them
// at these shapes, and how much scratch the largest wants; pointers may be null then.
// Errors of both: kUnsupported, kInternal as kernels::run; of a run those of Stream::run, too.
class OpPass {
 public:
  enum class Mode : uint8_t { kRun, kMeasure };

  OpPass(device::Stream& stream, Mode mode, View<std::byte> scratch = {})
      : ops(kernels::ops_for(stream)), stream_(stream), scratch_(scratch), mode_(mode) {}

  const kernels::OpTable& ops;

  template <class Args>
  void run(const kernels::Op<Args>& op, Args args) {
    if (measuring()) {
      ++n_ops_;
      peak_ = std::max(peak_, kernels::scratch_bytes(stream_, op, args));
      return;
    }
    if constexpr (requires { args.scratch; }) args.scratch = scratch_;
    kernels::run(stream_, op, args);
  }

  Mode mode() const { return mode_; }
  bool measuring() const { return mode_ == Mode::kMeasure; }
  device::Stream& stream() const { return stream_; }
  Bytes peak() const { return peak_; }     // of the scratch asked for
  size_t n_ops() const { return n_ops_; }  // that were measured

 private:
  device::Stream& stream_;
  View<std::byte> scratch_;
  Mode mode_;
  Bytes peak_ = 0;
  size_t n_ops_ = 0;
};

}  // namespace strata::model
