#pragma once

#include <functional>
#include <vector>

#include "strata/device/memory.h"
#include "strata/model/arch/qwen4exp_config.h"
#include "strata/model/op_pass.h"
#include "strata/model/options.h"
#include "strata/model/stage.h"
#include "strata/model/step_inputs.h"
#include "strata/model/weights.h"

namespace strata::model {

// What tokens look up by row: embeddings and n-grams. The tables are large and a token reads a few
// rows of them, so they stay with the host, which hands the rows to the stages.
class Qwen4ExpTables {
 public:
  // Asks for the tensors and adds the lines. config, options and stages outlive this.
  Qwen4ExpTables(const gguf::Model& file, const Qwen4ExpConfig& config, const ModelOptions& options,
                 bool draft, const Stages& stages, memory::Plan& plan);
  const Weights& weights() const { return weights_; }
  void load(const std::function<void(Bytes, Bytes)>& progress);

  // Queue what brings the rows of the step's tokens to arrays of the stage; in a pass that
  // measures, only asks for the ops. Errors: those of OpPass and Stream::copy.
  // residual [max_rows, streams, width]: the embedding of each row in every stream.
  void embed(OpPass::Mode mode, const StepInputs& inputs, View<float> residual);
  // emb [max_rows, width]: the n-gram rows side by side, for the stage with this layer.
  void gather(OpPass::Mode mode, const StepInputs& inputs, int layer, View<float> emb);
  // The two halves of gather for a stage on a card: the host looks up; then every row of emb is
  // brought, however many are new, so that a graph may hold it.
  void look_up(const StepInputs& inputs, int layer);
  void bring_looked_up(int layer, View<float> emb);
  // e [max_rows, 1, width], for the draft layer.
  void embed_draft(OpPass::Mode mode, const StepInputs& inputs, View<float> e);

 private:
  // Rows on their way to a card.
  struct Staging {
    PlanLineId line;
    Bytes bytes = 0;
    device::Allocation memory;
  };
  void declare(const Stage& to, Staging& staging, const char* name, int64_t floats_a_row,
               memory::Plan& plan);
  void allocate(const Stage& to, Staging& staging);
  const Stage& stage_of(int layer) const;
  kernels::Gather gather_args(const StepInputs& inputs, View<float> emb) const;
  template <class Args>
  void bring(OpPass::Mode mode, const kernels::Op<Args>& op, Args args, const Stage& to,
             const Staging& staging, int n_rows);

  const Qwen4ExpConfig& c_;
  const ModelOptions& options_;
  const Stages& stages_;
  Weights weights_;
  kernels::Weight embedding_, draft_embedding_, ngrams_;
  Staging residual_, emb_, draft_;
};

}  // namespace strata::model
