#include <algorithm>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/cli/commands.h"
#include "strata/cli/model_setup.h"
#include "strata/engine/expert_counts.h"

namespace strata::cli {
namespace {

using Json = nlohmann::ordered_json;

// Tokens that are read in one session.
constexpr size_t kStretch = 2048;

// Before the long work, not behind it.
void require_place(const std::string& path, bool replace) {
  std::error_code error;
  if (!replace && std::filesystem::exists(path, error)) {
    throw Error(ErrorCode::kInvalidArgument,
                format("{} is there already; --force replaces it", path));
  }
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty() && !std::filesystem::is_directory(folder, error)) {
    throw Error(ErrorCode::kNotFound, format("{} is no folder", folder.string()));
  }
}

// What so many of the hottest experts of each layer would have had.
double share_of(const memory::ExpertProfile& profile, int slots_a_layer) {
  const auto experts = static_cast<size_t>(profile.n_experts);
  double hits = 0, all = 0;
  for (size_t l = 0; l < static_cast<size_t>(profile.n_layers); ++l) {
    const auto layer = std::span(profile.counts).subspan(l * experts, experts);
    std::vector<int32_t> sorted(layer.begin(), layer.end());
    std::ranges::sort(sorted, std::ranges::greater{});
    for (size_t i = 0; i < experts; ++i) {
      all += sorted[i];
      if (i < static_cast<size_t>(slots_a_layer)) hits += sorted[i];
    }
  }
  return all > 0 ? hits / all : 0;
}

void print(const memory::ExpertProfile& profile, size_t n_tokens, const Settings& s) {
  Json shares = Json::object();
  std::string text;
  for (int eighths = 1; eighths <= 4; eighths *= 2) {
    const int slots = std::max(1, profile.n_experts * eighths / 8);
    shares[std::to_string(slots)] = share_of(profile, slots);
    text += format("{}{:.0f} % with {}", text.empty() ? "" : ", ", 100 * share_of(profile, slots),
                   slots);
  }
  if (s.json) {
    std::cout << Json{{"tokens", n_tokens},
                      {"layers", profile.n_layers},
                      {"experts", profile.n_experts},
                      {"hit_rate_by_slots", shares}}
                     .dump()
              << '\n';
    return;
  }
  std::cout << format(
      "{}: {} tokens, {} layers of {} experts\n"
      "of what this text chose, slots for the hottest of each layer would have had: {}\n",
      s.expert_profile, n_tokens, profile.n_layers, profile.n_experts, text);
}

}  // namespace

int run_profile(const Invocation& invocation) {
  const Settings& s = invocation.settings;
  if (s.text.empty() || s.expert_profile.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                "profile needs --text FILE to read and --expert-profile FILE to write");
  }
  require_place(s.expert_profile, s.force);
  const std::string text = read_text_file(s.text, "text");
  check_utf8(text, format("the text {}", s.text));
  model::InstanceOptions options = instance_options(s, find_model(s));
  options.expert_profile.clear();  // written here, not when the model goes
  options.draft = true;
  model::Instance instance(options);
  const std::vector<int32_t> ids =
      read_tokenizer(instance.file())->encode(text, text::SpecialParsing::kNone);
  if (ids.empty()) throw Error(ErrorCode::kInvalidArgument, format("{} has no tokens", s.text));
  load_and_seal(instance, s);
  engine::ExpertCounts counts(instance);
  {
    Progress progress(s, "reading the text");
    const auto stretch = std::min(kStretch, static_cast<size_t>(instance.options().max_context));
    for (size_t at = 0; at < ids.size(); at += stretch) {
      progress.show(at, ids.size());
      counts.add(std::span(ids).subspan(at, std::min(stretch, ids.size() - at)));
    }
  }
  const memory::ExpertProfile profile = counts.profile();
  memory::write_expert_profile(s.expert_profile, profile);
  print(profile, ids.size(), s);
  return 0;
}

}  // namespace strata::cli
