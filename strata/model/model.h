#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "strata/device/device.h"
#include "strata/device/stream.h"
#include "strata/gguf/model.h"
#include "strata/memory/card_slots.h"
#include "strata/memory/ledger.h"
#include "strata/memory/plan.h"
#include "strata/memory/ram_pool.h"
#include "strata/model/host_copy.h"
#include "strata/model/options.h"
#include "strata/model/stage.h"
#include "strata/model/state.h"
#include "strata/model/step_inputs.h"
#include "strata/model/weights.h"

namespace strata::model {

struct ModelInfo {
  std::string architecture, name;
  int n_layers = 0;  // of the trunk
  int n_vocab = 0;
  int width = 0, streams = 0;
  int64_t trained_context = 0;
  double yarn_factor = 1;
  int64_t yarn_context = 0;
  int n_experts = 0, top_k = 0;
  bool has_draft = false;
  WeightBytes weights;
  Bytes bytes_per_token = 0;  // of weights that a token reads, without embedding rows and state
};

// What a forward computes on the way, for tests and `eval`. Each call waits for the stream; views
// are of host memory and live until the call returns.
class LayerObserver {
 public:
  virtual ~LayerObserver() = default;
  virtual void residual(int layer, View<const float> rows) = 0;  // [rows, streams, width]
  virtual void experts(int layer, View<const int32_t> id, View<const float> weight) = 0;
  // blocks [rows, budget], n_blocks [rows] as kernels::QsaSelect leaves them; ratio 0: dense, and
  // all n_blocks are -1.
  virtual void selection(int layer, int ratio, View<const int32_t> blocks,
                         View<const int32_t> n_blocks) = 0;
};

// A loaded model on its stages: the trunk, its head and, if asked for, its draft layer. Steps are
// laid out in inputs(), uploaded, and computed by forward and head; nothing here decides what to
// compute. One engine thread.
//
// Life: open (shapes and plan lines), then the caller checks the plan, then load.
class Model {
 public:
  virtual ~Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  virtual const ModelInfo& info() const = 0;
  // Allocates every line and reads the weights. Errors: kResourceExhausted, kIo, kCorruptFile.
  virtual void load(const std::function<void(Bytes, Bytes)>& progress) = 0;

  StatePools& states() { return *states_; }
  StatePools* draft_states() { return draft_states_.get(); }
  StepInputs& inputs() { return *inputs_; }
  // The way to read residual() and logits(), with the last stage's stream.
  virtual HostCopy& copies() = 0;

  // Adds the session's next tokens to the step that is being laid out, as pending.
  void add(SessionState& session, std::span<const int32_t> ids);
  // The same behind what is pending already, of which the cells have been computed: a chain of
  // drafts, one step each. For sessions of draft_states(); they take back all of it (commit(0)).
  void add_behind(SessionState& session, std::span<const int32_t> ids);
  // Clears the step, then brings pages and sides of these sessions up to date.
  void begin_step();

  // These queue work on the streams of the stages; who has waited for the last stage's has waited
  // for all of it.
  // Computes the trunk for all rows of the step; residual() then holds the rows.
  virtual void forward() = 0;
  // Logits of the step's outputs, from residual(). logits() [max_out, vocab].
  virtual void head() = 0;
  // The draft layer on the step's ids (each row's next token) and the rows of residual() that
  // StepInputs::set_sources names, which its own replace; then draft_head gives the logits of the
  // outputs. Sessions are of draft_states().
  virtual void draft() = 0;
  virtual void draft_head() = 0;
  // Makes the sessions' recurrent state that of the rows kept (StepInputs::set_kept), for
  // sequences where that is neither none nor all. Before SessionState::commit.
  virtual void commit() = 0;

  // What cards had of the experts that their rows read; zeros if they have all.
  virtual memory::SlotCounters slot_counters() const { return {}; }
  // What was read from storage; zeros if all experts have their places.
  virtual memory::PoolCounters pool_counters() const { return {}; }
  // Which experts were used most, for the next start; nothing if nobody looked.
  virtual std::optional<memory::ExpertProfile> learned() const { return std::nullopt; }

  // In the memory of the last stage's device.
  virtual View<float> residual() = 0;  // [max_rows, streams, width]
  virtual View<float> logits() = 0;

  // Whether the next steps go without graphs and copies between cards: for a step that is run
  // again.
  virtual void set_cautious(bool) {}

  void set_observer(LayerObserver* observer) { observer_ = observer; }

 protected:
  Model() = default;
  // Rows of the n-gram table that the tokens ids[first..] read, [tokens, StepShape::ple_rows].
  virtual void ngram_rows(std::span<const int32_t> ids, size_t first,
                          std::vector<int64_t>& out) const = 0;
  virtual const Rope& rope() const = 0;
  virtual int index_ratio() const = 0;

  std::unique_ptr<StatePools> states_, draft_states_;
  std::unique_ptr<StepInputs> inputs_;
  LayerObserver* observer_ = nullptr;

 private:
  void lay_out(SessionState& session, size_t first);

  std::vector<Rope::Position> positions_, block_positions_;
  std::vector<int64_t> ple_rows_;
};

// What the options come to for a file, so that callers can choose defaults before opening: trained
// context with scaling, and whether its attention weights are f32.
struct ModelFacts {
  // What a layer has in the file: everything but its routed experts, and one of those.
  struct Layer {
    Bytes dense_bytes = 0, expert_bytes = 0;
    Bytes blob_bytes = 0;  // of an expert in memory: with the gaps of alignment
  };
  std::string architecture, name;
  int n_layers = 0;  // of the trunk
  int n_experts = 0, top_k = 0;
  std::vector<Layer> layers;  // of the trunk, then of the draft
  Bytes head_bytes = 0;       // final norm and output
  int64_t trained_context = 0;
  int64_t scaled_context = 0;  // trained_context times the file's own scaling
  bool f32_attention = false;
  bool has_draft = false;
  bool draft_norm_per_stream = false;
};

// The configuration of a file's model, read and checked once.
class Blueprint {
 public:
  virtual ~Blueprint() = default;
  Blueprint(const Blueprint&) = delete;
  Blueprint& operator=(const Blueprint&) = delete;

  virtual const ModelFacts& facts() const = 0;
  // Lays out everything; adds its lines to the plan. The model does not need the blueprint any
  // more; file, plan and what the stages name outlive it. Errors: kCorruptFile (tensors that do not
  // fit), kInvalidArgument (options: context above what the model can, nonsense scaling),
  // kUnsupported (the device lacks an op).
  virtual std::unique_ptr<Model> open(const ModelOptions& options, const Stages& stages,
                                      memory::Plan& plan) const = 0;

 protected:
  Blueprint() = default;
};

// The file outlives the blueprint. Errors: kUnsupported (architecture, keys), kCorruptFile (keys
// that do not fit each other).
std::unique_ptr<Blueprint> read_blueprint(const gguf::Model& file);

ModelFacts read_facts(const gguf::Model& file);
// Both in one, for one model of a file.
std::unique_ptr<Model> open_model(const gguf::Model& file, const ModelOptions& options,
                                  const Stages& stages, memory::Plan& plan);

}  // namespace strata::model
