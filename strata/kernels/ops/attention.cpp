#include "strata/kernels/ops/attention.h"

#include "strata/kernels/ops/contract.h"

namespace strata::kernels {
namespace {

void check_cells(const Contract& c, const KvPool& pool) {
  c.that(pool.page_tokens > 0 && pool.kv_heads > 0 && pool.dk > 0 && pool.dv > 0,
         "pages, heads and their sizes above 0");
  c.that(pool.type != CacheType::kI8 || pool.cells_per_page() % 4 == 0,
         "pages of 4, 8.. cells, for their scales");
}
void check_blocks(const Contract& c, const KvPool& pool) {
  c.that(pool.ratio > 0 && pool.page_tokens > 0 && pool.page_tokens % pool.ratio == 0,
         "pages of whole index blocks");
  c.that(pool.index_dim > 0, "index_dim above 0");
}

}  // namespace

void check(const QkNormRope& args) {
  const Contract c(QkNormRope::kName);
  const int64_t n = args.x.extent(0), stride = row_size(args.x);
  c.that(args.heads > 0 && args.dim > 0 && args.pairs >= 0 && 2 * args.pairs <= args.dim,
         "heads of at least 2 * pairs elements");
  c.rows(args.x, n, stride, "x [rows, row_stride]");
  c.that((int64_t{args.heads} - 1) * args.head_stride + args.dim <= stride, "every head within x");
  c.rows(args.out, n, int64_t{args.heads} * args.dim, "out [rows, heads, dim]");
  c.apart(args.x, args.out, "x and out do not overlap");
}

void check(const KvAppend& args) {
  const Contract c(KvAppend::kName);
  const KvPool& pool = args.pool;
  const int64_t n = args.k.extent(0);
  check_cells(c, pool);
  c.rows(args.k, n, int64_t{pool.kv_heads} * pool.dk, "k [rows, kv_heads, dk]");
  c.rows(args.v, n, int64_t{pool.kv_heads} * pool.dv, "v [rows, kv_heads, dv]");
}

void check(const PoolKeys& args) {
  const Contract c(PoolKeys::kName);
  const KvPool& pool = args.pool;
  const View<float>& state = args.tail.state;
  check_blocks(c, pool);
  c.that(args.pairs >= 0 && 2 * args.pairs <= pool.index_dim, "2 * pairs <= index_dim");
  c.rows(args.raw, args.raw.extent(0), pool.index_dim, "raw [rows, index_dim]");
  c.that(args.tail.depth() == pool.ratio - 1, "a tail of ratio - 1 rows");
  if (pool.ratio == 1) return;
  c.shape(state, {state.extent(0), 2, int64_t{pool.ratio} - 1, pool.index_dim},
          "state [slots, 2, ratio - 1, index_dim]");
}

void check(const QsaSelect& args) {
  const Contract c(QsaSelect::kName);
  const int64_t n = args.q.extent(0);
  check_blocks(c, args.pool);
  c.that(args.heads > 0 && args.budget > 0 && args.max_context > 0,
         "heads, budget and max_context above 0");
  c.rows(args.q, n, int64_t{args.heads} * args.pool.index_dim, "q [rows, heads, index_dim]");
  c.rows(args.blocks, n, args.budget, "blocks [rows, budget]");
  c.rows(args.n_blocks, n, 1, "n_blocks [rows]");
}

void check(const QsaAttend& args) {
  const Contract c(QsaAttend::kName);
  const KvPool& pool = args.pool;
  const int64_t n = args.q.extent(0);
  check_cells(c, pool);
  c.that(args.heads > 0 && args.heads % pool.kv_heads == 0, "heads a multiple of kv_heads");
  c.that(args.gate_offset >= 0 && args.gate_offset + pool.dv <= args.gate_stride,
         "each gate within its stride");
  c.that(args.max_context > 0 && args.budget >= 0, "max_context above 0, budget not below");
  c.rows(args.q, n, int64_t{args.heads} * pool.dk, "q [rows, heads, dk]");
  c.rows(args.gate, n, int64_t{args.heads} * args.gate_stride, "gate [rows, heads * gate_stride]");
  c.rows(args.out, n, int64_t{args.heads} * pool.dv, "out [rows, heads * dv]");
  if (args.budget == 0) return;
  check_blocks(c, pool);
  c.rows(args.blocks, n, args.budget, "blocks [rows, budget]");
  c.rows(args.n_blocks, n, 1, "n_blocks [rows]");
}

}  // namespace strata::kernels
