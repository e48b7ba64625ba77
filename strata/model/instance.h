#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "strata/base/os/memory.h"
#include "strata/base/thread_pool.h"
#include "strata/device/device.h"
#include "strata/gguf/model.h"
#include "strata/memory/ledger.h"
#include "strata/memory/placement.h"
#include "strata/memory/planner.h"
#include "strata/model/model.h"

namespace strata::model {

// Where the matrices of a model come to lie.
enum class WeightForm : uint8_t {
  kMapped,  // in place in the file
  kTiles,   // re-laid in memory of ours; what is looked up by row stays in the mapped file
  kCopied,  // the same with nothing mapped
};

enum class RopeScaling : uint8_t { kNone, kYarn };

// What a person asks for; of a number 0, of the others nothing leaves the choice to us.
struct InstanceOptions {
  std::string path;
  std::optional<WeightForm> weights;
  std::string device = "host";  // as device::make_devices takes it
  device::Backend backend = device::Backend::kCpu;
  int threads = 0;
  uint64_t seed = 1;             // of the sim devices' order of work
  bool hangs_take_time = false;  // see device::DeviceOptions
  std::vector<int> layer_split;  // layers of each card; empty: the planner looks
  // Of cards, slots and tiers; the rest of it is said here.
  memory::PlanWishes wishes;
  // Which experts are used most: read if it is there, written with what was learned. Empty: no
  // file.
  std::string expert_profile;

  int64_t max_context = 0;
  int slots = 1;
  int chunk = 0;
  int max_out = 0;  // 0: what answers need
  int spec = 0;     // tokens of a session that are guessed and verified at once, at most
  std::optional<kernels::CacheType> kv;
  bool draft = false;
  std::optional<bool> draft_norm_per_stream;
  std::optional<RopeScaling> rope_scaling;  // nothing: as the file says
  double rope_scale = 0;
  int64_t yarn_context = 0;
  std::optional<os::MemoryBudget> memory;  // instead of what the system says, for tests
};

// A model file, opened on its devices: what `run`, `bench`, `eval` and the engine process share.
// Opening resolves the options and makes the plan; load reads the weights.
class Instance {
 public:
  // Errors: those of gguf::Model::open, read_blueprint and Blueprint::open; kInvalidArgument for
  // options that are nonsense; kResourceExhausted with the table if weights that are to be copied
  // do not fit into this machine. Whether the whole plan fits is known once its last line is there:
  // load looks.
  explicit Instance(const InstanceOptions& options);
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  // Errors: kResourceExhausted with the plan, if it is more than device or machine have, or with
  // the ledger, if memory was refused all the same; those of Model::load.
  void load(const std::function<void(Bytes, Bytes)>& progress);
  // Calls what allocates; a kResourceExhausted then says what was planned and what was refused.
  void with_ledger(const std::function<void()>& allocate) const;
  // After load and whatever the caller adds to the plan: nothing is allocated from here on.
  void seal();

  const gguf::Model& file() const { return file_; }
  const ModelFacts& facts() const { return blueprint_->facts(); }
  Model& model() { return *model_; }
  const Model& model() const { return *model_; }
  // Of the last stage: where logits are, and whose work ends a step.
  device::Device& device() { return *stages_.last().device; }
  device::Stream& stream() { return *stages_.last().stream; }
  const Stages& stages() const { return stages_; }
  memory::Plan& plan() { return plan_; }
  const memory::Plan& plan() const { return plan_; }
  memory::Ledger& ledger() { return *ledger_; }
  ThreadPool& pool() { return *pool_; }
  // Of all devices.
  device::WaitRegistry& waits() { return waits_; }
  device::Trips& trips() { return trips_; }
  const device::Trips& trips() const { return trips_; }
  const ModelOptions& options() const { return resolved_; }
  // "host: 1.20 GiB used, 1.25 GiB planned; ..", for people.
  std::string memory_text() const;
  // Host memory first, then the cards: what may be used, as it was found at the start, and what is
  // planned by now.
  std::vector<memory::DeviceUse> memory_uses() const;
  // Experts that have no place in memory at the start.
  Bytes in_storage() const { return in_storage_; }
  // How experts were read; empty where all have their places.
  std::string experts_text() const;
  const std::vector<memory::Decision>& decisions() const { return decisions_; }
  const std::vector<std::string>& warnings() const { return warnings_; }

  // What does not end, once something has been given up for that; else empty. The engine's thread.
  void set_hang(const std::string& why) { hang_ = why; }
  const std::string& hang() const { return hang_; }

  // Waits for the streams of all stages; false if the deadline comes first. Errors: what the queued
  // work throws; some of it may then still be queued.
  bool drain(const char* what, device::Deadline deadline);
  // The same. Errors: kDevice if it takes longer than `limit`.
  void wait(const char* what, std::chrono::milliseconds limit = std::chrono::minutes(10));

 private:
  memory::Placement place(const InstanceOptions& options);
  void make_stages(const memory::Placement& placement);
  memory::Machine machine(const InstanceOptions& options);
  void keep_in_ram(Bytes bytes);
  void read_profile(const std::string& path, const ModelFacts& facts);
  void save_profile() const;
  void resolve(const InstanceOptions& options);
  void open_weights(const InstanceOptions& options);
  std::optional<Bytes> expert_budget(const InstanceOptions& options);
  os::MemoryBudget memory() const;
  void check_plan() const;
  void resolve_context(const InstanceOptions& options, const ModelFacts& facts);
  void decide(std::string name, std::string value, std::string why);

  gguf::Model file_;
  std::unique_ptr<Blueprint> blueprint_;
  std::optional<os::MemoryBudget> memory_;
  memory::Plan plan_;
  std::unique_ptr<memory::Ledger> ledger_;
  std::unique_ptr<ThreadPool> pool_;
  device::WaitRegistry waits_;
  device::Trips trips_;
  std::vector<std::unique_ptr<device::Device>> devices_;
  std::vector<std::unique_ptr<device::Stream>> streams_;
  Stages stages_;
  ModelOptions resolved_;
  std::vector<memory::Decision> decisions_;
  std::vector<std::string> warnings_;
  std::vector<memory::DeviceUse> uses_;  // as the planner left them
  Bytes in_storage_ = 0;
  std::string profile_path_, hang_;
  std::unique_ptr<Model> model_;
};

}  // namespace strata::model
