#include "strata/kernels/ops/ple.h"

#include "strata/kernels/ops/contract.h"

namespace strata::kernels {
namespace {

void check_log(const Contract& c, const Tail& tail) {
  if (tail.log.rank() == 0) return;  // nothing is ever kept in part
  c.shape(tail.log, {tail.state.extent(0), tail.log.extent(1), tail.width()},
          "log [slots, window, width]");
}

}  // namespace

void check(const PleMix& args) {
  const Contract c(PleMix::kName);
  const View<const float>& r = args.residual;
  const int64_t n = r.extent(0), streams = r.extent(1), width = r.extent(2);
  const int64_t wide = streams * width;
  c.shape(r, {n, streams, width}, "residual [rows, streams, width]");
  c.rows(args.key, n, wide, "key [rows, streams * width]");
  c.rows(args.value, n, width, "value [rows, width]");
  c.rows(args.z, n, wide, "z [rows, streams * width]");
  c.rows(args.normed, n, wide, "normed [rows, streams * width]");
  c.apart(args.z, args.normed, "z and normed do not overlap");
}

void check(const Conv& args) {
  const Contract c(Conv::kName);
  const int64_t n = args.x.extent(0), channels = args.x.extent(1);
  const int64_t depth = int64_t{args.dilation} * (args.taps - 1);
  c.that(args.taps >= 1 && args.dilation >= 1, "taps and dilation above 0");
  c.shape(args.x, {n, channels}, "x [rows, channels]");
  c.rows(args.out, n, channels, "out [rows, channels]");
  c.apart(args.x, args.out, "x and out do not overlap");
  if (args.z.rank() > 0) c.rows(args.z, n, channels, "z [rows, channels]");
  c.that(args.tail.depth() == depth, "a tail of dilation * (taps - 1) rows");
  if (depth == 0) return;
  c.shape(args.tail.state, {args.tail.state.extent(0), 2, depth, channels},
          "state [slots, 2, depth, channels]");
  check_log(c, args.tail);
}

void check(const TailCommit& args) {
  const Contract c(TailCommit::kName);
  const Tail& tail = args.tail;
  c.shape(tail.state, {tail.state.extent(0), 2, tail.depth(), tail.width()},
          "state [slots, 2, depth, width]");
  c.that(tail.log.rank() > 0, "a log");
  check_log(c, tail);
}

}  // namespace strata::kernels
