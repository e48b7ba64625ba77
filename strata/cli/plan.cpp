#include <algorithm>
#include <cstdio>
#include <iostream>
#include <optional>
#include <utility>
#include <vector>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/base/os/memory.h"
#include "strata/cli/bandwidth.h"
#include "strata/cli/commands.h"
#include "strata/cli/machine_file.h"
#include "strata/cli/model_setup.h"
#include "strata/cli/plan_report.h"
#include "strata/gguf/escape.h"
#include "strata/memory/planner.h"
#include "strata/model/plan_source.h"

namespace strata::cli {
namespace {

// As many as a server answers at once.
constexpr int kUsualSlots = 2;

// This computer. Cards are not looked for yet, and how fast the disk is, is not known.
memory::Machine this_machine(int threads) {
  const os::MemoryBudget budget = os::memory_budget();
  ThreadPool pool(threads);
  return {.name = format("this computer: {} threads, {} of {} free", threads,
                         memory::bytes_text(budget.available), memory::bytes_text(budget.total)),
          .ram = budget.total,
          .ram_used_by_others = budget.total - std::min(budget.total, budget.available),
          .ram_rate = measure_bandwidth(pool).bytes_per_s};
}

memory::PlanWishes wishes_of(const Settings& s, const model::ModelFacts& facts) {
  memory::PlanWishes w = memory_wishes(s);
  if (std::vector<int> split = parse_layer_split(s.layer_split); !split.empty()) {
    w.layer_split = std::move(split);
  }
  if (s.prefill > 0) w.chunk = static_cast<int>(s.prefill);
  if (s.max_context > 0) w.max_context = s.max_context;
  w.usual_context = std::min(w.usual_context, facts.scaled_context);
  w.usual_chunk =
      static_cast<int>(std::min<int64_t>(w.usual_chunk, w.max_context.value_or(w.usual_context)));
  if (s.mtp == "off") w.draft = false;
  if (s.mtp == "on") w.draft = true;
  return w;
}

model::ModelOptions options_of(const Invocation& invocation, const model::ModelFacts& facts) {
  const Settings& s = invocation.settings;
  const int window = max_guesses(invocation) + 1;
  const int slots = s.batch > 0 ? static_cast<int>(s.batch) : kUsualSlots;
  Settings here = s;
  here.machine.clear();  // planned for, and nothing poses as it
  const model::InstanceOptions asked = instance_options(here, s.model);
  model::ModelOptions options{
      .slots = slots,
      .max_out = slots * window,
      .window = window,
      .cache = asked.kv.value_or(facts.f32_attention ? kernels::CacheType::kF32
                                                     : kernels::CacheType::kF16),
      .packing = asked.weights == model::WeightForm::kMapped ? kernels::Packing::kGguf
                                                             : kernels::Packing::kTiles};
  if (asked.rope_scaling == model::RopeScaling::kNone) options.yarn_factor = 1;
  if (asked.rope_scaling == model::RopeScaling::kYarn) {
    options.yarn_factor = asked.rope_scale;
    options.yarn_context = asked.yarn_context;
  }
  return options;
}

std::string subject_text(const std::string& path, const model::ModelFacts& facts) {
  Bytes least = facts.layers.front().expert_bytes, most = least, all = 0;
  for (const model::ModelFacts::Layer& layer : facts.layers) {
    least = std::min(least, layer.expert_bytes);
    most = std::max(most, layer.expert_bytes);
    all += static_cast<Bytes>(facts.n_experts) * layer.expert_bytes;
  }
  const std::string each =
      least == most ? memory::bytes_text(most)
                    : format("{} to {}", memory::bytes_text(least), memory::bytes_text(most));
  return format("{}: {} layers{}, {} experts of {} a layer, {} used; experts are {} in all",
                gguf::escaped(model_name(path)), facts.n_layers,
                facts.has_draft ? " and a draft layer" : "", facts.n_experts, each, facts.top_k,
                memory::bytes_text(all));
}

}  // namespace

int run_plan(const Invocation& invocation) {
  const Settings& s = invocation.settings;
  const std::string path = find_model(s);
  const gguf::Model file = gguf::Model::open(path, {.header_only = true});
  const std::unique_ptr<model::Blueprint> blueprint = model::read_blueprint(file);
  const model::ModelFacts& facts = blueprint->facts();

  if (s.mtp == "on" && !facts.has_draft) {
    warn("--mtp on has no effect: the model has no MTP layer");
  }
  memory::Machine machine =
      s.machine.empty() ? this_machine(thread_count(s)) : read_machine(s.machine);
  for (const std::string& text : memory::drop_absurd_rates(machine)) warn(text);
  memory::PlanWishes wishes = wishes_of(s, facts);
  std::optional<memory::ExpertProfile> profile;
  if (!s.expert_profile.empty()) {
    profile = memory::read_expert_profile(s.expert_profile);
    const auto layers = static_cast<int>(facts.layers.size());
    if (profile->n_experts != facts.n_experts || profile->n_layers > layers) {
      throw Error(
          ErrorCode::kInvalidArgument,
          format("{} is a profile of {} layers with {} experts, the model has {} with {}",
                 s.expert_profile, profile->n_layers, profile->n_experts, layers, facts.n_experts));
    }
    wishes.profile = &*profile;
  }

  const model::ModelPlanSource source(*blueprint, options_of(invocation, facts), machine);
  const memory::Solution solution = memory::solve(source, machine, wishes);
  const PlanSubject subject{
      .model = subject_text(path, facts), .machine = machine.name, .n_experts = facts.n_experts};
  std::cout << (s.json ? plan_json(solution, subject) : plan_text(solution, subject)) << std::flush;
  if (solution.fits) return 0;
  std::fprintf(stderr, "strata: it does not fit\n%s\n", gguf::printable(solution.refusal).c_str());
  return exit_code(ErrorCode::kResourceExhausted);
}

}  // namespace strata::cli
