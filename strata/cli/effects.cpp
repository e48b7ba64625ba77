#include "strata/cli/effects.h"

#include "strata/base/format.h"

namespace strata::cli {

std::vector<std::string> without_effect(const Invocation& invocation) {
  const Settings& s = invocation.settings;
  std::vector<std::string> result;
  const auto idle = [&](bool no_effect, std::initializer_list<std::string_view> names,
                        std::string_view why) {
    if (!no_effect) return;
    for (const std::string_view name : names) {
      if (invocation.given.contains(name)) {
        result.push_back(format("--{} has no effect {}", name, why));
      }
    }
  };
  idle(s.rope_scaling != "yarn", {"rope-scale", "yarn-orig-ctx"}, "without --rope-scaling yarn");
  const bool guesses = s.spec.value_or(invocation.command == kBench ? 0 : 1) > 0;
  if (invocation.command != kEval && invocation.command != kPlan) {
    idle(!guesses, {"mtp", "mtp-hnorm", "spec-min-p"}, s.spec ? "with --spec 0" : "without --spec");
    idle(guesses && s.mtp == "off", {"mtp-hnorm", "spec-min-p"}, "with --mtp off");
  }
  idle(s.prompt_cache_mib == 0U, {"prompt-cache-dir"}, "with --prompt-cache-mib 0");
  if (invocation.command != kPlan) {
    idle(s.device == "host",
         {"expert-cache", "layer-split", "resident-experts", "vram-limit-mib", "vram-reserve-mib",
          "vram-reserve-later-mib"},
         "without a card (--device)");
    idle(s.device == "host" && s.resident_budget_gib == 0 && invocation.command != kProfile,
         {"expert-profile"}, "where all experts lie in RAM");
  }
  // A request may bring its own temperature, so for the server all of them count.
  if (invocation.command == kRun) {
    idle(s.temp == 0, {"top-k", "top-p", "min-p", "seed"},
         "with --temp 0: the likeliest token is always taken");
    idle(s.raw, {"system", "think"}, "with --raw: there is no chat template");
    const bool one_shot = invocation.given.contains("prompt");
    idle(one_shot, {"prompt-file"}, "with --prompt");
  }
  if (invocation.command == kRun || invocation.command == kServe) {
    idle(s.repetition_penalty == 1, {"repeat-window"}, "without --repetition-penalty");
  }
  if (invocation.command == kEval) {
    idle(s.reference.empty(), {"mtp", "mtp-hnorm"}, "without --reference");
    idle(s.mtp == "off", {"mtp-hnorm"}, "with --mtp off");
  }
  return result;
}

}  // namespace strata::cli
