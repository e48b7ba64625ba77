#include "strata/kernels/ops/hyper_connection.h"

#include "strata/kernels/ops/contract.h"

namespace strata::kernels {

void check(const HcRead& args) {
  const Contract c(HcRead::kName);
  const View<const float>& r = args.residual;
  const int64_t n = r.extent(0), streams = r.extent(1), width = r.extent(2);
  const int64_t wide = streams * width;
  c.shape(r, {n, streams, width}, "residual [rows, streams, width]");
  c.matrix(args.down, args.down.rows, wide, "down [rank, streams * width]");
  c.matrix(args.up, wide, args.down.rows, "up [streams * width, rank]");
  c.rows(args.u, n, width, "u [rows, width]");
  c.apart(r, args.u, "residual and u do not overlap");
  if (!args.inject) return;
  c.matrix(args.inject, streams, wide, "inject [streams, streams * width]");
  c.rows(args.inj, n, streams, "inj [rows, streams]");
}

void check(const HcWrite& args) {
  const Contract c(HcWrite::kName);
  const View<float>& r = args.residual;
  const int64_t n = r.extent(0), streams = r.extent(1), width = r.extent(2);
  c.shape(r, {n, streams, width}, "residual [rows, streams, width]");
  c.rows(args.inj, n, streams, "inj [rows, streams]");
  c.rows(args.y, n, width, "y [rows, width]");
  c.apart(r, args.y, "residual and y do not overlap");
}

void check(const DraftInput& args) {
  const Contract c(DraftInput::kName);
  const View<const float>& r = args.residual;
  const int64_t n = r.extent(0), streams = r.extent(1), width = r.extent(2);
  c.shape(r, {n, streams, width}, "residual [rows, streams, width]");
  c.rows(args.e, n, width, "e [rows, width]");
  c.rows(args.out, n, 2 * streams * width, "out [rows, streams, 2 * width]");
  c.apart(r, args.out, "residual and out do not overlap");
}

}  // namespace strata::kernels
