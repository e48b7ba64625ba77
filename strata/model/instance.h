#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "strata/base/os/memory.h"
#include "strata/base/thread_pool.h"
#include "strata/device/device.h"
#include "strata/gguf/model.h"
#include "strata/memory/ledger.h"
#include "strata/model/model.h"

namespace strata::model {

// What a person asks for; 0 or empty is "auto".
struct InstanceOptions {
  std::string path;
  // "", "auto"; "mapped": in place in the file; "tiles": matrices re-laid in memory of ours, what
  // is looked up by row in the mapped file; "copied": the same with nothing mapped
  std::string weights;
  std::string device = "host";  // as device::make_devices takes it
  device::Backend backend = device::Backend::kCpu;
  int threads = 0;
  uint64_t seed = 1;  // of the sim devices' order of work

  int64_t max_context = 0;
  int slots = 1;
  int chunk = 0;
  int max_out = 0;  // 0: one a slot
  std::string kv;   // "", "auto", "f16", "f32"
  bool draft = false;
  std::optional<bool> draft_norm_per_stream;
  std::string rope_scaling;  // "", "none", "yarn"
  double rope_scale = 0;
  int64_t yarn_context = 0;
  std::optional<os::MemoryBudget> memory;  // instead of what the system says, for tests
};

// What an option came to be, and why.
struct Decision {
  std::string name, value, why;
};

// A model file, opened on its device: what `run`, `bench`, `eval` and the engine process share.
// Opening resolves the options and makes the plan; load reads the weights.
class Instance {
 public:
  // Errors: those of gguf::Model::open and open_model; kInvalidArgument for options that are
  // nonsense; kUnsupported for more than one device beside the host; kResourceExhausted with the
  // table if copies of the weights that were asked for do not
  // fit into this machine.
  explicit Instance(const InstanceOptions& options);
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  void load(const std::function<void(Bytes, Bytes)>& progress);
  // Calls what allocates; a kResourceExhausted then says what was planned and what was refused.
  void with_ledger(const std::function<void()>& allocate) const;
  // After load and whatever the caller adds to the plan: nothing is allocated from here on.
  void seal() { ledger_->seal(); }

  const gguf::Model& file() const { return file_; }
  Model& model() { return *model_; }
  const Model& model() const { return *model_; }
  device::Device& device() { return *devices_.back(); }
  device::Stream& stream() { return *stream_; }
  memory::Plan& plan() { return plan_; }
  const memory::Plan& plan() const { return plan_; }
  memory::Ledger& ledger() { return *ledger_; }
  ThreadPool& pool() { return *pool_; }
  const ModelOptions& options() const { return resolved_; }
  const std::vector<Decision>& decisions() const { return decisions_; }
  const std::vector<std::string>& warnings() const { return warnings_; }

  // Waits for the stream. Errors: kDevice if it takes longer than `limit`.
  void wait(const char* what, std::chrono::milliseconds limit = std::chrono::minutes(10));

  // The engine adds lines of its own (sampler tables) before load.
  void check_plan() const;

 private:
  void resolve(const InstanceOptions& options);
  void open_weights(const InstanceOptions& options);
  os::MemoryBudget memory() const;
  void resolve_context(const InstanceOptions& options, const ModelFacts& facts);
  void decide(std::string name, std::string value, std::string why);

  gguf::Model file_;
  std::optional<os::MemoryBudget> memory_;
  memory::Plan plan_;
  std::unique_ptr<memory::Ledger> ledger_;
  std::unique_ptr<ThreadPool> pool_;
  std::vector<std::unique_ptr<device::Device>> devices_;
  std::unique_ptr<device::Stream> stream_;
  ModelOptions resolved_;
  std::vector<Decision> decisions_;
  std::vector<std::string> warnings_;
  std::unique_ptr<Model> model_;
};

}  // namespace strata::model
