#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "strata/base/cpu_features.h"
#include "strata/base/thread_pool.h"
#include "strata/device/device.h"
#include "strata/gguf/model.h"
#include "strata/kernels/test_machines.h"
#include "strata/model/model.h"

// Models of the repository, loaded and driven by hand.
namespace strata::model::testing {

// "tiny", "tiny-yarn", "tiny-nople" or "strata-demo".
std::string model_path(const std::string& name);
std::string reference_path(const std::string& name);

// An array of a reference file as floats, whatever its type.
std::vector<float> array(const gguf::Model& file, const std::string& name);
std::vector<int32_t> ids_of(const gguf::Model& reference, const std::string& name = "ids");
// The ids of the reference; of the demo all four sequences, one after the other.
std::vector<int32_t> text_of(const std::string& name);

float max_difference(std::span<const float> a, std::span<const float> b);
int32_t argmax(std::span<const float> x);

// How close rows of logits are to reference rows.
struct Closeness {
  int64_t rows = 0, equal_argmax = 0;
  double kl_sum = 0;  // of KL(reference || got)
  void add(std::span<const float> got, std::span<const float> reference, int64_t n_vocab);
  double mean_kl() const { return kl_sum / static_cast<double>(rows); }
  double agreement() const { return static_cast<double>(equal_argmax) / static_cast<double>(rows); }
};

// Devices of a list as device::make_devices takes it, with streams; a model's layers as evenly as
// possible on the cards, or all on the host.
struct Workplace {
  std::vector<std::unique_ptr<device::Device>> devices;
  std::vector<std::unique_ptr<device::Stream>> streams;
  Stages stages;
  Workplace(const std::string& list, const device::DeviceOptions& options, int n_layers);
};

struct LoadOptions {
  int chunk = 64;
  int slots = 2;
  int window = 16;
  int max_context = 256;
  kernels::CacheType cache = kernels::CacheType::kF32;
  bool draft = false;
  std::optional<bool> per_stream;
  device::Backend backend = device::Backend::kCpu;
  std::string devices = "host";
  int threads = 1;
  bool by_place = false;          // threads that stay on processors, as on several memory nodes
  uint64_t seed = 1;              // of the order of a sim
  std::optional<CpuLevel> level;  // the processor's best, if not given
  double yarn_factor = 0;
  bool mapped = true;
  kernels::Packing packing = kernels::Packing::kGguf;
  std::optional<int> expert_slots;  // of each layer on a card; else all of its experts
  std::optional<Bytes> expert_ram;  // of experts that are not whole with their layer
  int max_swaps = 4;
  double swap_margin = 1.2;
};

// A model on devices of its own.
class Loaded {
 public:
  explicit Loaded(const std::string& name, const LoadOptions& options = {});
  Loaded(gguf::Model file, const LoadOptions& options);
  ~Loaded();

  Model& model() { return *model_; }
  device::Device& device(int i) { return *place_.devices[static_cast<size_t>(i)]; }
  device::Stream& stream() { return *place_.stages.last().stream; }
  const gguf::Model& file() const { return file_; }
  const LoadOptions& options() const { return options_; }
  void wait();

  std::unique_ptr<SessionState> session();
  std::unique_ptr<SessionState> draft_session();

  // One step of several sessions: their next tokens. Leaves them pending; returns the logits of
  // every row, in the order given.
  struct Part {
    SessionState* session;
    std::vector<int32_t> ids;
  };
  std::vector<float> forward(std::span<const Part> parts);
  // Keeps the first kept[i] rows of each part.
  void commit(std::span<const Part> parts, std::span<const int> kept);

  // forward and commit of all.
  std::vector<float> step(SessionState& session, std::span<const int32_t> ids);
  // In steps of `piece` rows.
  std::vector<float> run(SessionState& session, std::span<const int32_t> ids, int piece);
  // The same, with the residual of every row appended.
  std::vector<float> run(SessionState& session, std::span<const int32_t> ids, int piece,
                         std::vector<float>* residual);
  // Row-parallel draft: cell i takes residual row i and ids[i]; both as many rows. Replaces the
  // rows of residual by the layer's own.
  std::vector<float> run_draft(SessionState& session, std::span<const int32_t> ids, int piece,
                               std::vector<float>& residual);
  uint64_t hash(const SessionState& session) { return session.hash(); }
  int64_t n_vocab() const { return model_->info().n_vocab; }
  int64_t residual_width() const;

 private:
  void set_all_outputs(size_t n);
  std::vector<float> read(const View<float>& from, int64_t n);

  LoadOptions options_;
  std::optional<kernels::testing::AtLevel> level_;
  gguf::Model file_;
  ThreadPool pool_;
  memory::Plan plan_;
  Workplace place_;
  std::unique_ptr<Model> model_;
};

}  // namespace strata::model::testing
