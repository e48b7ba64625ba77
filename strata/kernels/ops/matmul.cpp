#include "strata/kernels/ops/matmul.h"

#include "strata/kernels/ops/contract.h"

namespace strata::kernels {

void check(const MatMul& args) {
  const Contract c(MatMul::kName);
  const int64_t n = args.x.extent(0), cols = args.x.extent(1);
  c.that(args.n_out >= 1 && args.n_out <= MatMul::kMax, "1 to kMax matrices");
  c.shape(args.x, {n, cols}, "x [rows, cols]");
  for (int i = 0; i < args.n_out; ++i) {
    const MatMul::Out& out = args.out[static_cast<size_t>(i)];
    c.matrix(out.w, out.w.rows, cols, "each W [any, cols]");
    c.rows(out.y, n, out.w.rows, "each y [rows, rows of W]");
    c.apart(args.x, out.y, "x and y do not overlap");
  }
}

void check(const Embed& args) {
  const Contract c(Embed::kName);
  const int64_t n = args.id.extent(0);
  c.that(args.copies >= 1 && args.table.packing == Packing::kGguf,
         "a table of rows, copies above 0");
  c.matrix(args.table, args.table.rows, args.table.cols, "table in whole blocks");
  c.shape(args.id, {n}, "id [rows]");
  c.rows(args.out, n, int64_t{args.copies} * args.table.cols, "out [rows, copies, cols]");
}

void check(const Gather& args) {
  const Contract c(Gather::kName);
  const int64_t n = args.index.extent(0), heads = args.index.extent(1);
  c.that(args.table.packing == Packing::kGguf, "a table of rows");
  c.matrix(args.table, args.table.rows, args.table.cols, "table in whole blocks");
  c.shape(args.index, {n, heads}, "index [rows, heads]");
  c.rows(args.out, n, heads * args.table.cols, "out [rows, heads * cols]");
}

void check(const Zero& args) {
  const Contract c(Zero::kName);
  c.rows(args.out, args.out.extent(0), row_size(args.out), "out of any shape");
}

void check(const CopyRows& args) {
  const Contract c(CopyRows::kName);
  const int64_t width = row_size(args.x), n = args.index.extent(0);
  c.shape(args.index, {n}, "index [rows of out]");
  c.rows(args.x, args.x.extent(0), width, "x [rows, width]");
  c.rows(args.out, n, width, "out [rows of out, width]");
  c.apart(args.x, args.out, "x and out do not overlap");
}

void check(const ScatterRows& args) {
  const Contract c(ScatterRows::kName);
  const int64_t width = row_size(args.out), n = args.index.extent(0);
  c.shape(args.index, {n}, "index [rows of x]");
  c.rows(args.x, n, width, "x [rows of x, width]");
  c.rows(args.out, args.out.extent(0), width, "out [rows, width]");
  c.apart(args.x, args.out, "x and out do not overlap");
}

}  // namespace strata::kernels
