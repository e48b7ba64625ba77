#include "strata/memory/planner.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/memory/layer_split.h"

namespace strata::memory {
namespace {

constexpr DeviceId kHost{0};
constexpr int kLeastChunk = 32;
constexpr int64_t kLeastContext = 4096;

int n_slots(const Solution& s) {
  return std::accumulate(s.devices.begin(), s.devices.end(), 0,
                         [](int sum, const DeviceUse& use) { return sum + use.expert_slots; });
}

// Which of two is nearer to a plan that fits, then which is faster.
bool better(const Solution& a, const Solution& b) {
  if (a.fits != b.fits) return a.fits;
  const auto missing = [](const Solution& s) {
    return std::accumulate(s.devices.begin(), s.devices.end(), Bytes{0},
                           [](Bytes sum, const DeviceUse& use) { return sum + use.missing(); });
  };
  if (!a.fits) return missing(a) < missing(b);
  // Sums of the same times in another order differ in their last bits.
  constexpr double kMore = 1 + 1e-9;
  const double x = a.expected.decode_tokens_per_s, y = b.expected.decode_tokens_per_s;
  if (x > y * kMore || y > x * kMore) return x > y;
  // The draft layer's experts are not in the expectation.
  const int n = n_slots(a), m = n_slots(b);
  if (n != m) return n > m;
  return a.expected.prompt_tokens_per_s > b.expected.prompt_tokens_per_s * kMore;
}

// Fills a placement with experts and prices it.
class Pricer {
 public:
  Pricer(const PlanSource& model, const Machine& machine, const PlanWishes& wishes)
      : model_(model), machine_(machine), wishes_(wishes) {}

  Solution price(const Placement& placement) const;

 private:
  Solution fill(Solution s, const std::vector<Divide>& how) const;
  void add_slots(Solution& s, const std::vector<Divide>& how) const;
  void add_ram(Solution& s) const;
  int n_expert_layers(const Placement& p) const { return model_.n_layers() + (p.drafts() ? 1 : 0); }
  Bytes blobs(const Placement& p, const std::vector<int>& n) const;

  const PlanSource& model_;
  const Machine& machine_;
  const PlanWishes& wishes_;
};

Bytes Pricer::blobs(const Placement& p, const std::vector<int>& n) const {
  Bytes sum = 0;
  for (int l = 0; l < n_expert_layers(p); ++l) {
    sum += static_cast<Bytes>(n[static_cast<size_t>(l)]) * model_.blob_bytes(l);
  }
  return sum;
}

void Pricer::add_slots(Solution& s, const std::vector<Divide>& how) const {
  const int most = wishes_.expert_slots.value_or(model_.n_experts());
  for (DeviceUse& use : s.devices) {
    if (use.where == kHost) continue;
    std::vector<int> layers;
    for (const Stage& stage : s.placement.stages) {
      if (stage.where != use.where) continue;
      for (int l = stage.first_layer; l < stage.end_layer; ++l) layers.push_back(l);
    }
    if (s.placement.draft == use.where) layers.push_back(model_.n_layers());
    const Bytes fixed = s.plan.peak(use.where);
    const Bytes left = use.budget.bytes - std::min(use.budget.bytes, fixed);
    StageSlots slots = divide_slots(model_, use.where, std::move(layers), left, most,
                                    how[static_cast<size_t>(use.where.value - 1)]);
    use.expert_slots = slots.n();
    if (slots.bytes > 0) {
      std::string formula;
      for (const SlotClass& c : slots.classes) {
        formula += format("{}{} slots x {} B", formula.empty() ? "" : " + ", c.n, c.bytes);
      }
      s.plan.add({.owner = "experts",
                  .name = "slots",
                  .formula = formula,
                  .where = use.where,
                  .bytes = slots.bytes});
    }
    s.homes.stages.push_back(std::move(slots));
  }
}

void Pricer::add_ram(Solution& s) const {
  const Placement& p = s.placement;
  const int n_layers = n_expert_layers(p);
  std::vector<int> all(static_cast<size_t>(n_layers), model_.n_experts()), absent = all;
  std::vector<int> slots(static_cast<size_t>(n_layers), 0);
  for (int l = 0; l < n_layers; ++l) {
    slots[static_cast<size_t>(l)] = s.homes.slots(l);
    absent[static_cast<size_t>(l)] -= slots[static_cast<size_t>(l)];
  }
  // Of a layer that a card has whole nothing ever leaves it.
  std::vector<int> copies = all;
  for (size_t l = 0; l < copies.size(); ++l) copies[l] = absent[l] > 0 ? all[l] : 0;
  const Bytes budget = s.devices.front().budget.bytes;
  const Bytes left = budget - std::min(budget, s.plan.peak(kHost));
  ExpertsInRam mode = wishes_.experts;
  if (mode == ExpertsInRam::kAuto) {
    mode = blobs(p, copies) <= left   ? ExpertsInRam::kAll
           : blobs(p, absent) <= left ? ExpertsInRam::kResident
                                      : ExpertsInRam::kBudget;
  }
  std::vector<int> in_ram = mode == ExpertsInRam::kAll ? copies : absent;
  s.homes.in_memory = all;
  if (mode == ExpertsInRam::kBudget) {
    const Bytes room = std::min(left, wishes_.expert_ram.value_or(left));
    std::vector<int> layers(static_cast<size_t>(n_layers));
    std::iota(layers.begin(), layers.end(), 0);
    in_ram = divide_slots(model_, kHost, layers, room, model_.n_experts()).slots;
    for (size_t l = 0; l < in_ram.size(); ++l) {
      in_ram[l] = std::min(in_ram[l], absent[l]);
      s.homes.in_memory[l] = slots[l] + in_ram[l];
      const int stored = all[l] - s.homes.in_memory[l];
      s.storage.n_blobs += stored;
      s.storage.bytes += static_cast<Bytes>(stored) * model_.blob_bytes(static_cast<int>(l));
    }
  }
  s.experts = mode;
  s.expert_ram = blobs(p, in_ram);
  const int64_t n = std::accumulate(in_ram.begin(), in_ram.end(), int64_t{0});
  if (n == 0) return;
  const char* what = mode == ExpertsInRam::kAll        ? "all experts"
                     : mode == ExpertsInRam::kResident ? "what no card holds"
                                                       : "the hottest that no card holds";
  s.plan.add(
      {.owner = "experts",
       .name = "in RAM",
       .formula = format("{} experts of {}: {}", n, int64_t{n_layers} * model_.n_experts(), what),
       .where = kHost,
       .bytes = s.expert_ram});
}

// Experts come last, so the other lines are declared once.
Solution Pricer::price(const Placement& placement) const {
  Solution s{.placement = placement};
  s.devices.push_back(
      {.where = kHost, .name = "RAM", .budget = host_budget(machine_, wishes_.ram_reserve)});
  for (size_t i = 0; i < machine_.cards.size(); ++i) {
    s.devices.push_back({.where = DeviceId(static_cast<int32_t>(i + 1)),
                         .name = machine_.cards[i].name,
                         .budget = card_budget(machine_.cards[i], i == 0, wishes_.cards)});
  }
  model_.declare(placement, s.plan);
  std::vector<Divide> how(machine_.cards.size(), Divide::kEqually);
  Solution best = fill(s, how);
  for (Divide& of_card : how) {
    of_card = Divide::kLayerByLayer;
    Solution next = fill(s, how);
    if (better(next, best)) {
      best = std::move(next);
    } else {
      of_card = Divide::kEqually;
    }
  }
  return best;
}

// how: of each card.
Solution Pricer::fill(Solution s, const std::vector<Divide>& how) const {
  add_slots(s, how);
  add_ram(s);
  s.fits = true;
  for (DeviceUse& use : s.devices) {
    use.peak = s.plan.peak(use.where);
    s.fits = s.fits && use.missing() == 0;
  }
  s.expected = expect(model_, machine_, s.placement, s.homes, wishes_.profile);
  return s;
}

Solution best_split(const PlanSource& model, const Machine& machine, const PlanWishes& wishes,
                    const Placement& rest) {
  const Pricer pricer(model, machine, wishes);
  const auto price = [&](const std::vector<int>& layers) {
    return pricer.price(place_layers(layers, rest));
  };
  if (machine.cards.empty()) return price({});
  if (wishes.layer_split) return price(*wishes.layer_split);
  std::vector<Bytes> budgets;
  for (size_t i = 0; i < machine.cards.size(); ++i) {
    budgets.push_back(card_budget(machine.cards[i], i == 0, wishes.cards).bytes);
  }
  std::vector<int> layers = split_by_budget(budgets, model.n_layers());
  Solution best = price(layers);
  // Downhill from there by moving layers between neighbours, in wide steps first.
  for (int step : {8, 4, 2, 1}) {
    for (bool moved = true; moved;) {
      moved = false;
      for (const std::vector<int>& next : neighbours(layers, step)) {
        Solution s = price(next);
        if (!better(s, best)) continue;
        best = std::move(s);
        layers = next;
        moved = true;
        break;
      }
    }
  }
  return best;
}

// What to give up next so that it fits; false if there is nothing that was not asked for.
bool step_down(const PlanWishes& wishes, Placement& p, std::vector<Decision>& told) {
  const auto tell = [&](const char* name, std::string value, const char* why) {
    std::erase_if(told, [&](const Decision& d) { return d.name == name; });
    told.push_back({name, std::move(value), why, true});
  };
  if (!wishes.chunk && p.chunk > kLeastChunk) {
    p.chunk /= 2;
    tell("prefill", format("{}", p.chunk), "longer chunks do not fit");
    return true;
  }
  if (!wishes.draft && p.drafts()) {
    p.draft = DeviceId();
    tell("draft", "off", "the draft layer does not fit");
    return true;
  }
  if (!wishes.max_context && p.max_context > kLeastContext) {
    p.max_context = std::max(p.max_context / 2, kLeastContext);
    tell("max-context", format("{}", p.max_context), "a longer one does not fit");
    return true;
  }
  return false;
}

void require_possible(const PlanSource& model, const Machine& machine, const PlanWishes& wishes) {
  if (!wishes.layer_split) return;
  const std::vector<int>& split = *wishes.layer_split;
  const int sum = std::accumulate(split.begin(), split.end(), 0);
  if (split.size() > machine.cards.size() || sum != model.n_layers() ||
      std::ranges::any_of(split, [](int n) { return n < 0; })) {
    throw Error(ErrorCode::kInvalidArgument,
                format("--layer-split names {} cards with {} layers in all; the machine has {} "
                       "cards and the model {} layers",
                       split.size(), sum, machine.cards.size(), model.n_layers()));
  }
}

std::string refusal(const Solution& s, const PlanWishes& wishes) {
  std::string text;
  for (const DeviceUse& use : s.devices) {
    if (use.missing() == 0) continue;
    text +=
        format("{} needs {} ({} B), {} ({} B) may be used: {}\n", use.name, bytes_text(use.peak),
               use.peak, bytes_text(use.budget.bytes), use.budget.bytes, use.budget.why);
  }
  text += "What would make it fit:";
  if (s.placement.max_context > kLeastContext) text += " a smaller --max-context;";
  if (s.placement.chunk > kLeastChunk) text += " a smaller --prefill;";
  if (s.placement.drafts()) text += " --spec 0;";
  if (wishes.cards.reserve_first) text += " a smaller --vram-reserve-mib;";
  if (wishes.cards.reserve_later) text += " a smaller --vram-reserve-later-mib;";
  if (wishes.layer_split) text += " --layer-split auto;";
  if (wishes.experts == ExpertsInRam::kAll) text += " --resident-experts auto;";
  if (s.devices.front().missing() > 0) text += " more RAM;";
  text.back() = '.';
  return text;
}

void explain(Solution& s, const Machine& machine) {
  std::vector<int> layers;
  for (const Stage& stage : s.placement.stages) layers.push_back(stage.n_layers());
  if (machine.cards.empty()) {
    s.decisions.push_back({"layer-split", "none", "there is no card: the processor does it all"});
  } else {
    s.decisions.push_back({"layer-split", split_text(layers),
                           machine.cards.size() > 1 ? "the fastest by the rates that fits"
                                                    : "one card has them all"});
  }
  for (const StageSlots& slots : s.homes.stages) {
    const DeviceUse& use = s.devices[static_cast<size_t>(slots.where.value)];
    s.decisions.push_back({format("experts on {}", use.name), format("{}", use.expert_slots),
                           format("what {} leave beside the other lines", use.budget.why)});
  }
  if (s.storage.n_blobs > 0) {
    s.decisions.push_back({"experts in storage", format("{}", s.storage.n_blobs),
                           format("{} do not fit into cards and RAM", bytes_text(s.storage.bytes)),
                           true});
  }
}

}  // namespace

Solution solve(const PlanSource& model, const Machine& machine, const PlanWishes& wishes) {
  require_possible(model, machine, wishes);
  Placement rest{.chunk = wishes.chunk.value_or(wishes.usual_chunk),
                 .max_context = wishes.max_context.value_or(wishes.usual_context)};
  // Any value that is there: place_layers puts it where the last layer is.
  if (model.has_draft() && wishes.draft.value_or(true)) rest.draft = kHost;
  std::vector<Decision> told;
  rest.stages = {{kHost, 0, model.n_layers()}};
  for (;;) {
    Solution s = best_split(model, machine, wishes, rest);
    if (!s.fits && step_down(wishes, rest, told)) continue;
    s.decisions = std::move(told);
    explain(s, machine);
    if (!s.fits) s.refusal = refusal(s, wishes);
    return s;
  }
}

}  // namespace strata::memory
