#include "strata/kernels/ops/gdn.h"

#include "strata/kernels/ops/contract.h"

namespace strata::kernels {
namespace {

void check_state(const Contract& c, const DeltaState& state, int64_t key_width, int64_t value_heads,
                 int64_t dk, int64_t dv) {
  const int64_t slots = state.s.extent(0), window = state.log_g.extent(1);
  c.shape(state.s, {slots, 2, value_heads * dk, dv}, "s [slots, 2, value_heads * dk, dv]");
  if (state.log_g.rank() == 0) return;  // nothing is ever kept in part
  c.shape(state.log_g, {slots, window, value_heads}, "log_g [slots, window, value_heads]");
  c.shape(state.log_k, {slots, window, key_width}, "log_k [slots, window, key_heads * dk]");
  c.shape(state.log_d, {slots, window, value_heads * dv},
          "log_d [slots, window, value_heads * dv]");
}

}  // namespace

void check(const Gdn& args) {
  const Contract c(Gdn::kName);
  const int64_t n = args.qkv.extent(0), key_width = int64_t{args.key_heads} * args.dk,
                value_width = int64_t{args.value_heads} * args.dv;
  c.that(args.key_heads > 0 && args.value_heads > 0 && args.dk > 0 && args.dv > 0,
         "heads and their sizes above 0");
  c.rows(args.qkv, n, 2 * key_width + value_width, "qkv [rows, 2 key_heads dk + value_heads dv]");
  c.rows(args.beta, n, args.value_heads, "beta [rows, value_heads]");
  c.rows(args.alpha, n, args.value_heads, "alpha [rows, value_heads]");
  c.rows(args.o, n, value_width, "o [rows, value_heads * dv]");
  c.apart(args.qkv, args.o, "qkv and o do not overlap");
  check_state(c, args.state, key_width, args.value_heads, args.dk, args.dv);
}

void check(const GdnCommit& args) {
  const Contract c(GdnCommit::kName);
  c.that(args.key_heads > 0 && args.value_heads > 0 && args.state.log_g.rank() > 0,
         "heads, and a log");
  check_state(c, args.state, int64_t{args.key_heads} * args.dk, args.value_heads, args.dk, args.dv);
}

void check(const GatedNorm& args) {
  const Contract c(GatedNorm::kName);
  const int64_t n = args.o.extent(0), width = args.o.extent(1);
  c.that(args.dv > 0 && width % args.dv == 0, "o in whole heads");
  c.shape(args.o, {n, width}, "o [rows, heads * dv]");
  c.rows(args.z, n, width, "z [rows, heads * dv]");
  c.rows(args.out, n, width, "out [rows, heads * dv]");
}

}  // namespace strata::kernels
