#include "strata/model/instance.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <numeric>
#include <span>
#include <utility>

#include "strata/base/check.h"
#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/base/log.h"
#include "strata/base/os/cpus.h"
#include "strata/base/os/memory.h"
#include "strata/base/os/topology.h"
#include "strata/device/registry.h"
#include "strata/memory/budget.h"
#include "strata/memory/layer_split.h"
#include "strata/memory/ram_pool.h"
#include "strata/model/plan_source.h"

namespace strata::model {
namespace {

gguf::Model open_file(const InstanceOptions& options) {
  const bool mapped = options.weights != WeightForm::kCopied;
  return gguf::Model::open(options.path,
                           {.access = mapped ? io::Access::kMapped : io::Access::kPlain});
}

const memory::PlanWishes kUsual;

constexpr const char* kSmaller = "a smaller --max-context, --batch or --prefill would make it fit";

}  // namespace

Instance::Instance(const InstanceOptions& options)
    : file_(open_file(options)),
      memory_(options.memory),
      ledger_(std::make_unique<memory::Ledger>(plan_)) {
  const os::CpuBudget budget = os::cpu_budget();
  const os::Topology topology = os::read_topology();
  const os::ThreadChoice threads =
      os::choose_threads(options.threads > 0 ? std::optional(options.threads) : std::nullopt,
                         budget, topology.n_cores);
  decide("threads", format("{}", threads.n_threads), threads.reason);
  if (!threads.warning.empty()) warnings_.push_back(threads.warning);
  pool_ = std::make_unique<ThreadPool>(ThreadPoolOptions{
      .n_threads = threads.n_threads, .cpus = os::thread_cpus(topology, threads.n_threads)});
  devices_ = device::make_devices(options.device, {.pool = pool_.get(),
                                                   .gate = ledger_.get(),
                                                   .waits = &waits_,
                                                   .trips = &trips_,
                                                   .backend = options.backend,
                                                   .seed = options.seed,
                                                   .hangs_take_time = options.hangs_take_time});
  blueprint_ = read_blueprint(file_);
  resolve(options);
  make_stages(place(options));
  open_weights(options);
}

// Queued work names memory of the model, which goes before the streams.
Instance::~Instance() {
  save_profile();
  if (const std::string text = experts_text(); !text.empty()) log_info(format("experts: {}", text));
  for (const auto& stream : streams_) {
    try {
      stream->drain({"instance", "the end"}, std::chrono::minutes(1));
    } catch (const std::exception& e) {
      log_warning(format("while {} was closed: {}", stream->device().name(), e.what()));
    }
  }
}

// As the planner knows machines; what the cards have besides is free.
memory::Machine Instance::machine(const InstanceOptions& options) {
  const os::MemoryBudget host = memory();
  memory::Machine machine{.name = options.device, .ram = host.total};
  if (host.available > 0) {
    machine.ram_used_by_others = host.total - std::min(host.total, host.available);
  } else {
    machine.ram = Bytes{1} << 60;  // not known: no limit
  }
  machine.peer_access = true;
  for (size_t i = 1; i < devices_.size(); ++i) {
    const device::Device& card = *devices_[i];
    const device::Capacity capacity = card.capacity();
    const device::CardFacts facts = card.facts();
    machine.cards.push_back({.name = card.name(),
                             .total = capacity.total,
                             .used_by_others = capacity.total - capacity.free,
                             .os_budget = facts.os_budget,
                             .display = facts.display,
                             .link_rate = facts.link_rate,
                             .memory_rate = facts.memory_rate,
                             .graph_node_bytes = (card.graph_bytes(1) - card.graph_bytes(0)) *
                                                 Stage::nodes_per_op(card)});
    machine.peer_access = machine.peer_access && (i == 1 || card.reaches(*devices_[1]));
  }
  for (std::string& told : memory::drop_absurd_rates(machine)) {
    warnings_.push_back(std::move(told));
  }
  return machine;
}

// Without a card the host has all layers. With some the planner places layers and experts, and
// may give up some of what nobody asked for.
memory::Placement Instance::place(const InstanceOptions& options) {
  const ModelFacts& facts = blueprint_->facts();
  const int n_layers = facts.n_layers;
  const size_t n_cards = devices_.size() - 1;
  const memory::Placement on_host{.stages = {{device::kHostId, 0, n_layers}}};
  const memory::Machine machine = this->machine(options);
  if (n_cards == 0) {
    uses_ = {{.where = device::kHostId,
              .name = "RAM",
              .budget = memory::host_budget(machine, options.wishes.ram_reserve)}};
    return on_host;
  }
  const std::vector<int>& split = options.layer_split;
  if (!split.empty() &&
      (split.size() > n_cards || std::accumulate(split.begin(), split.end(), 0) != n_layers)) {
    throw Error(ErrorCode::kInvalidArgument,
                format("--layer-split {}: {} cards are named with --device, and the model has {} "
                       "layers",
                       memory::split_text(split), n_cards, n_layers));
  }
  memory::PlanWishes wishes = options.wishes;
  if (!split.empty()) wishes.layer_split = split;
  if (options.chunk > 0) wishes.chunk = resolved_.chunk;
  if (options.max_context > 0) wishes.max_context = resolved_.max_context;
  wishes.usual_chunk = resolved_.chunk;
  wishes.usual_context = resolved_.max_context;
  if (!options.draft) wishes.draft = false;
  wishes.profile = resolved_.experts.profile.get();
  ModelOptions shape = resolved_;
  if (options.weights != WeightForm::kMapped) shape.packing = kernels::Packing::kTiles;
  const ModelPlanSource source(*blueprint_, shape, machine);
  memory::Solution solution = memory::solve(source, machine, wishes);
  if (!solution.fits) {
    throw Error(ErrorCode::kResourceExhausted,
                format("{}\n{}", solution.refusal, solution.plan.table()));
  }
  for (memory::Decision& decision : solution.decisions) {
    if (decision.warning) {
      warnings_.push_back(format("{} {}: {}", decision.name, decision.value, decision.why));
    }
    std::erase_if(decisions_, [&](const auto& known) { return known.name == decision.name; });
    decisions_.push_back(std::move(decision));
  }
  resolved_.chunk = std::max(solution.placement.chunk, resolved_.slots);
  resolved_.max_context = solution.placement.max_context;
  resolved_.draft = solution.placement.drafts();
  resolved_.experts.cards = solution.homes.stages;
  uses_ = std::move(solution.devices);
  in_storage_ = solution.storage.bytes;
  if (solution.experts != memory::ExpertsInRam::kAll && solution.expert_ram > 0) {
    keep_in_ram(solution.expert_ram);
  }
  return solution.placement;
}

// The others are read from storage, through buffers that come on top of what experts take.
void Instance::keep_in_ram(Bytes bytes) {
  Bytes largest = 0;
  for (const ModelFacts::Layer& layer : blueprint_->facts().layers) {
    largest = std::max(largest, layer.blob_bytes);
  }
  resolved_.experts.ram = bytes + memory::RamPool::most_buffers(largest);
}

void Instance::make_stages(const memory::Placement& placement) {
  const auto make_stream = [this](device::Device& device, const char* name) {
    streams_.push_back(device.make_stream(name));
    return streams_.back().get();
  };
  stages_.host = devices_.front().get();
  stages_.host_stream = make_stream(*stages_.host, "lookups");
  for (const memory::Stage& stage : placement.stages) {
    device::Device& device = *devices_[static_cast<size_t>(stage.where.value)];
    stages_.list.push_back({.device = &device,
                            .stream = make_stream(device, "compute"),
                            .first_layer = stage.first_layer,
                            .end_layer = stage.end_layer});
  }
}

// What is not there yet is learned, and will be written there. What is something else is neither
// used nor written over.
void Instance::read_profile(const std::string& path, const ModelFacts& facts) {
  if (path.empty()) return;
  std::error_code unknown;
  if (std::filesystem::symlink_status(path, unknown).type() ==
      std::filesystem::file_type::not_found) {
    profile_path_ = path;
    return;
  }
  if (std::optional<memory::ExpertProfile> profile = memory::usable_expert_profile(
          path, static_cast<int>(facts.layers.size()), facts.n_experts)) {
    resolved_.experts.profile = std::make_shared<memory::ExpertProfile>(std::move(*profile));
    profile_path_ = path;
  }
}

void Instance::save_profile() const {
  if (profile_path_.empty() || !model_) return;
  const std::optional<memory::ExpertProfile> learned = model_->learned();
  if (!learned) return;
  try {
    memory::write_expert_profile(profile_path_, *learned);
  } catch (const std::exception& e) {
    log_warning(format("what was learned of experts is not kept: {}", e.what()));
  }
}

void Instance::decide(std::string name, std::string value, std::string why) {
  decisions_.push_back({std::move(name), std::move(value), std::move(why)});
}

void Instance::resolve_context(const InstanceOptions& options, const ModelFacts& facts) {
  int64_t scaled = facts.scaled_context;
  if (options.rope_scaling == RopeScaling::kYarn) {
    if (!(options.rope_scale > 1)) {
      throw Error(
          ErrorCode::kInvalidArgument,
          format("--rope-scaling yarn needs a --rope-scale above 1, not {}", options.rope_scale));
    }
    resolved_.yarn_factor = options.rope_scale;
    resolved_.yarn_context =
        options.yarn_context > 0 ? options.yarn_context : facts.trained_context;
    scaled = static_cast<int64_t>(static_cast<double>(resolved_.yarn_context) * options.rope_scale);
  } else if (options.rope_scaling == RopeScaling::kNone) {
    resolved_.yarn_factor = 1;
    scaled = facts.trained_context;
  }
  if (options.max_context > 0) {
    resolved_.max_context = options.max_context;
    if (options.max_context > scaled) {
      warnings_.push_back(
          format("a context of {} tokens is beyond the {} that the model was trained on times its "
                 "scaling; answers will get worse there",
                 options.max_context, scaled));
    }
    return;
  }
  resolved_.max_context = std::min(scaled, kUsual.usual_context);
  decide("max-context", format("{}", resolved_.max_context),
         scaled <= kUsual.usual_context
             ? "what the model was trained on"
             : format("the model can {}; ask for more with --max-context", scaled));
}

void Instance::resolve(const InstanceOptions& options) {
  const std::pair<const char*, int64_t> counts[] = {{"--max-context", options.max_context},
                                                    {"--batch", options.slots},
                                                    {"--prefill", options.chunk},
                                                    {"--spec", options.spec},
                                                    {"--yarn-orig-ctx", options.yarn_context}};
  for (const auto& [name, value] : counts) {
    if (value >= 0) continue;
    throw Error(ErrorCode::kInvalidArgument, format("{} is {}, below 0", name, value));
  }
  STRATA_CHECK(options.max_out >= 0);  // no option of a person's
  const ModelFacts& facts = blueprint_->facts();
  resolved_ = {.slots = std::max(options.slots, 1),
               .window = options.spec + 1,
               .draft = options.draft,
               .draft_norm_per_stream = options.draft_norm_per_stream};
  read_profile(options.expert_profile, facts);
  resolve_context(options, facts);
  resolved_.chunk = options.chunk;
  if (options.chunk == 0) {
    resolved_.chunk =
        static_cast<int>(std::min<int64_t>(kUsual.usual_chunk, resolved_.max_context));
    decide("prefill", format("{}", resolved_.chunk), "rows of a prompt that are read at once");
  }
  // A step also holds a row of every running answer.
  resolved_.chunk = std::max(resolved_.chunk, resolved_.slots);
  if (options.spec > 0) {
    decide("spec", format("up to {}", options.spec),
           options.draft && facts.has_draft
               ? "tokens guessed by the draft layer and from repetitions"
               : "tokens guessed from repetitions");
  }
  resolved_.max_out = std::max(options.max_out, resolved_.slots * resolved_.window);
  if (options.kv) {
    resolved_.cache = *options.kv;
    return;
  }
  resolved_.cache = facts.f32_attention ? kernels::CacheType::kF32 : kernels::CacheType::kF16;
  decide("kv", facts.f32_attention ? "f32" : "f16",
         facts.f32_attention ? "the attention weights are f32" : "half the memory of f32");
}

// What experts may have of the host's memory; nothing if that is enough for all of them.
std::optional<Bytes> Instance::expert_budget(const InstanceOptions& options) {
  Bytes all = 0, largest = 0;
  const ModelFacts& facts = blueprint_->facts();
  const size_t n = facts.layers.size() - (facts.has_draft && !resolved_.draft ? 1 : 0);
  for (const ModelFacts::Layer& layer : std::span(facts.layers).first(n)) {
    all += static_cast<Bytes>(facts.n_experts) * layer.blob_bytes;
    largest = std::max(largest, layer.blob_bytes);
  }
  const Bytes wanted = options.wishes.expert_ram.value_or(all);
  const Bytes buffers = memory::RamPool::most_buffers(largest);
  if (wanted >= all + buffers) return std::nullopt;
  in_storage_ = all - std::min(all, wanted - std::min(wanted, buffers));
  return wanted;
}

os::MemoryBudget Instance::memory() const { return memory_ ? *memory_ : os::memory_budget(); }

void Instance::open_weights(const InstanceOptions& options) {
  const std::optional<WeightForm> wanted = options.weights;
  const bool host = stages_.last().is_host();
  if (host && options.wishes.experts == memory::ExpertsInRam::kBudget) {
    resolved_.experts.ram = expert_budget(options);
  }
  const std::string where = host ? ""
                            : stages_.list.size() == 1
                                ? format(" on {}", device().name())
                                : format(" on {} cards", stages_.list.size());
  const auto open_as = [&](kernels::Packing packing) {
    resolved_.packing = packing;
    model_.reset();
    plan_ = {};
    model_ = blueprint_->open(resolved_, stages_, plan_);
    return model_->info().weights;
  };
  const auto keep_rows = [&](const std::string& why) {
    const WeightBytes bytes = open_as(kernels::Packing::kGguf);
    decide("weights", host ? "mapped" : "rows",
           format("{}{}{}", memory::bytes_text(bytes.in_place + bytes.copied()), where, why));
  };
  if (wanted == WeightForm::kMapped) return keep_rows("");

  const WeightBytes bytes = open_as(kernels::Packing::kTiles);
  if (!wanted && bytes.tiles <= bytes.rows) {
    return keep_rows(format("; only {} of {} have a type and a shape for tiles",
                            memory::bytes_text(bytes.tiles), memory::bytes_text(bytes.copied())));
  }
  if (wanted == WeightForm::kTiles && bytes.tiles == 0) {
    warnings_.push_back("--weights tiles: no matrix of this file has a type and a shape for tiles");
  }
  // A card has its own memory, which holds either form; check_plan looks at it.
  if (host) {
    const os::MemoryBudget memory = this->memory();
    const Bytes reserve = memory::host_reserve(memory.total), need = plan_.peak(device::kHostId);
    const Bytes left = memory.available - std::min(memory.available, reserve);
    if (!wanted && memory.available == 0) {
      return keep_rows("; how much memory is free is not known");
    }
    if (!wanted && need > left) {
      return keep_rows(format("; re-laid the plan would need {}, {} are free with {} kept",
                              memory::bytes_text(need), memory::bytes_text(memory.available),
                              memory::bytes_text(reserve)));
    }
    if (memory.available > 0) {
      plan_.require(device::kHostId, left,
                    format("of {} free ({} B) a reserve of {} ({} B) is kept; --weights mapped "
                           "leaves the weights in the file, {}",
                           memory::bytes_text(memory.available), memory.available,
                           memory::bytes_text(reserve), reserve, kSmaller));
    }
  }
  std::string why = format("{} re-laid{}", memory::bytes_text(bytes.tiles), where);
  if (bytes.rows > 0) why += format(", {} copied", memory::bytes_text(bytes.rows));
  if (bytes.in_place > 0) why += format(", {} in the file", memory::bytes_text(bytes.in_place));
  decide("weights", file_.is_mapped() ? "tiles" : "copied", why);
}

void Instance::check_plan() const {
  const os::MemoryBudget host = memory();
  if (host.available > 0) plan_.require(device::kHostId, host.available, kSmaller);
  for (const Stage& stage : stages_.list) {
    if (stage.is_host()) continue;
    plan_.require(stage.device->id(), stage.device->capacity().free, kSmaller);
  }
}

void Instance::load(const std::function<void(Bytes, Bytes)>& progress) {
  check_plan();
  with_ledger([&] { model_->load(progress); });
}

std::string Instance::memory_text() const {
  std::string text;
  for (const auto& device : devices_) {
    text += format("{}{}: {} used, {} planned", text.empty() ? "" : "; ", device->name(),
                   memory::bytes_text(ledger_->peak(device->id())),
                   memory::bytes_text(plan_.peak(device->id())));
  }
  return text;
}

std::vector<memory::DeviceUse> Instance::memory_uses() const {
  std::vector<memory::DeviceUse> uses = uses_;
  for (memory::DeviceUse& use : uses) use.peak = plan_.peak(use.where);
  // How much the machine has is not known; machine() left it without a limit.
  if (memory().available == 0) uses.front().budget = {};
  return uses;
}

std::string Instance::experts_text() const {
  if (!model_) return "";
  std::string text;
  const memory::SlotCounters slots = model_->slot_counters();
  if (const uint64_t reads = slots.hits + slots.misses; reads > 0) {
    text = format("cards had {} of {} experts that rows chose, {} were swapped", slots.hits, reads,
                  slots.swapped);
  }
  const memory::PoolCounters pool = model_->pool_counters();
  if (pool.uses + pool.preloaded > 0) {
    text += format(
        "{}RAM gave {} experts; read from storage: {} as they were wanted, {} ahead, {} before the "
        "first step; {} B, {} B by the count of the reader",
        text.empty() ? "" : "; ", pool.uses, pool.misses, pool.look_ahead, pool.preloaded,
        pool.bytes, pool.io_bytes);
  }
  return text;
}

void Instance::seal() {
  ledger_->seal();
  for (const auto& device : devices_) device->started();
}

void Instance::with_ledger(const std::function<void()>& allocate) const {
  try {
    allocate();
  } catch (const Error& e) {
    if (e.code() != ErrorCode::kResourceExhausted) throw;
    throw Error(e.code(), format("{}\n{}", e.what(), ledger_->table()), e.where());
  }
}

bool Instance::drain(const char* what, device::Deadline deadline) {
  return std::ranges::all_of(streams_, [&](const auto& stream) {
    return stream->drain({"engine", what}, deadline);
  });
}

void Instance::wait(const char* what, std::chrono::milliseconds limit) {
  const Clock::TimePoint begun = waits_.clock().now();
  if (drain(what, device::Deadline::within(limit, waits_.clock()))) return;
  throw Error(ErrorCode::kDevice, format("{} did not end {}", what, waits_.late_text(begun)));
}

}  // namespace strata::model
