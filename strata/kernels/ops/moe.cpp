#include "strata/kernels/ops/moe.h"

#include "strata/kernels/ops/contract.h"

namespace strata::kernels {
namespace {

// gate and up [any, width], down [width, the same].
void check_ffn(const Contract& c, const Weight& gate, const Weight& up, const Weight& down,
               int64_t width) {
  c.matrix(gate, gate.rows, width, "gate [ff, width]");
  c.matrix(up, gate.rows, width, "up [ff, width]");
  c.matrix(down, width, gate.rows, "down [width, ff]");
}

}  // namespace

void check(const RouterTopk& args) {
  const Contract c(RouterTopk::kName);
  const int64_t n = args.logits.extent(0), experts = args.logits.extent(1);
  c.shape(args.logits, {n, experts}, "logits [rows, experts]");
  c.that(args.top_k >= 1 && args.top_k <= experts, "1 <= top_k <= experts");
  c.shape(args.id, {n, args.top_k}, "id [rows, top_k]");
  c.shape(args.weight, {n, args.top_k}, "weight [rows, top_k]");
}

void check(const ExpertFfn& args) {
  const Contract c(ExpertFfn::kName);
  const int64_t n = args.id.extent(0), width = args.x.extent(1), top_k = args.id.extent(1);
  const bool picked = args.x_row.rank() > 0;
  if (picked) {
    c.shape(args.x_row, {n}, "x_row [rows]");
    c.that(!args.shared.gate, "no shared expert beside x_row");
  }
  c.shape(args.x, {picked ? args.x.extent(0) : n, width}, "x [rows, width]");
  c.shape(args.id, {n, top_k}, "id [rows, top_k]");
  c.shape(args.parts, {args.parts.extent(0), 3}, "parts [experts, 3]");
  c.that(top_k <= args.parts.extent(0), "top_k <= experts");
  check_ffn(c, args.shape.gate, args.shape.up, args.shape.down, width);
  c.rows(args.out, n, top_k * width, "out [rows, top_k, width]");
  c.apart(args.x, args.out, "x and out do not overlap");
  if (!args.shared.gate) return;
  check_ffn(c, args.shared.gate, args.shared.up, args.shared.down, width);
  c.rows(args.shared.y, n, width, "shared y [rows, width]");
  c.apart(args.x, args.shared.y, "x and the shared y do not overlap");
}

void check(const ExpertCombine& args) {
  const Contract c(ExpertCombine::kName);
  const int64_t n = args.y.extent(0), width = args.y.extent(1), top_k = args.id.extent(1);
  c.shape(args.y, {n, width}, "y [rows, width]");
  c.shape(args.id, {n, top_k}, "id [rows, top_k]");
  c.shape(args.weight, {n, top_k}, "weight [rows, top_k]");
  c.rows(args.expert, n, top_k * width, "expert [rows, top_k, width]");
  c.rows(args.shared, n, width, "shared [rows, width]");
  c.rows(args.gate_logit, n, 1, "gate_logit [rows, 1]");
}

void check(const SharedFfn& args) {
  const Contract c(SharedFfn::kName);
  const int64_t n = args.x.extent(0), width = args.x.extent(1);
  c.shape(args.x, {n, width}, "x [rows, width]");
  check_ffn(c, args.gate, args.up, args.down, width);
  c.rows(args.y, n, width, "y [rows, width]");
  c.apart(args.x, args.y, "x and y do not overlap");
}

}  // namespace strata::kernels
