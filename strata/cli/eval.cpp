#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/cli/commands.h"
#include "strata/cli/model_setup.h"
#include "strata/cli/reference.h"
#include "strata/engine/evaluate.h"

namespace strata::cli {
namespace {

using Json = nlohmann::ordered_json;

// Rows whose logits are computed at once: with a vocabulary of 150,000 this is 19 MB.
constexpr int kRowsOfLogits = 32;

struct Comparison {
  engine::Difference trunk, drafts;
  int n_drafts = 0;
};

Comparison compare(model::Instance& instance, const Reference& reference, const Settings& s) {
  Comparison result;
  Progress progress(s, "comparing");
  size_t n_done = 0;
  engine::Evaluator evaluator(instance);
  const size_t columns = static_cast<size_t>(reference.n_vocab);
  for (const ReferenceSequence& sequence : reference.sequences) {
    const int n_drafts = static_cast<int>(sequence.drafts.size());
    result.n_drafts = std::max(result.n_drafts, n_drafts);
    progress.show(n_done++, reference.sequences.size());
    evaluator.run(sequence.ids, n_drafts, [&](int draft, size_t first, View<const float> rows) {
      const std::vector<float>& wanted =
          draft == 0 ? sequence.logits : sequence.drafts[static_cast<size_t>(draft - 1)];
      engine::Difference& difference = draft == 0 ? result.trunk : result.drafts;
      for (int64_t r = 0; r < rows.extent(0); ++r) {
        difference.add(
            {rows.row(r), columns},
            std::span(wanted).subspan((first + static_cast<size_t>(r)) * columns, columns));
      }
    });
  }
  return result;
}

void print(const Comparison& c, const Reference& reference, bool json) {
  if (json) {
    Json out = {{"tokens", c.trunk.n_rows},
                {"max_abs_logit_diff", c.trunk.max_abs},
                {"mean_kl", c.trunk.mean_kl()},
                {"argmax_agreement", c.trunk.agreement()},
                {"draft_max_abs_diff", nullptr}};
    if (c.n_drafts > 0) out["draft_max_abs_diff"] = c.drafts.max_abs;
    std::cout << out.dump() << '\n';
    return;
  }
  std::cout << format("tokens                {} in {} sequences\n", c.trunk.n_rows,
                      reference.sequences.size())
            << format("largest difference    {:.3g} of a logit\n", c.trunk.max_abs)
            << format("mean KL divergence    {:.3g} nats\n", c.trunk.mean_kl())
            << format("same best token       {:.1f} %\n", 100 * c.trunk.agreement());
  if (c.n_drafts > 0) {
    std::cout << format("drafts                {} steps, largest difference {:.3g}\n", c.n_drafts,
                        c.drafts.max_abs);
  }
}

DraftNorm draft_norm(const Settings& s, const model::ModelFacts& facts) {
  const bool per_stream =
      s.mtp_hnorm == "auto" ? facts.draft_norm_per_stream : s.mtp_hnorm == "stream";
  return {per_stream, per_stream == facts.draft_norm_per_stream};
}

int against_reference(const Settings& s, const std::string& path) {
  model::InstanceOptions options = instance_options(s, path);
  const model::ModelFacts facts = model::read_facts(gguf::Model::open(path));
  Reference reference = read_reference(gguf::Model::open(s.reference), draft_norm(s, facts));
  size_t longest = 0, n_drafts = 0;
  for (ReferenceSequence& sequence : reference.sequences) {
    if (s.mtp == "off" || !facts.has_draft) sequence.drafts.clear();
    longest = std::max(longest, sequence.ids.size());
    n_drafts = std::max(n_drafts, sequence.drafts.size());
  }
  if (s.mtp_hnorm != "auto" && s.mtp != "off" && n_drafts == 0) {
    warn(!facts.has_draft       ? "--mtp-hnorm has no effect: the model has no MTP layer"
         : reference.other_norm ? "--mtp-hnorm: the reference has no drafts of this norm"
                                : "--mtp-hnorm has no effect: the reference has no drafts");
  }
  if (options.max_context == 0) options.max_context = static_cast<int64_t>(longest);
  options.max_out = kRowsOfLogits;
  // Each draft step is a session of its own.
  options.slots = std::max(1, static_cast<int>(n_drafts));
  options.draft = n_drafts > 0;
  if (s.mtp_hnorm != "auto") options.draft_norm_per_stream = s.mtp_hnorm == "stream";
  model::Instance instance(options);
  if (instance.model().info().n_vocab != reference.n_vocab) {
    throw Error(ErrorCode::kInvalidArgument,
                format("{} has {} columns of logits, the model {}", s.reference, reference.n_vocab,
                       instance.model().info().n_vocab));
  }
  load_and_seal(instance, s);
  print(compare(instance, reference, s), reference, s.json);
  return 0;
}

// The text in stretches of the context's length, each read afresh; all but the first token of a
// stretch count.
int of_text(const Settings& s, const std::string& path) {
  const std::string text = read_text_file(s.text, "text");
  check_utf8(text, format("the text {}", s.text));
  model::InstanceOptions options = instance_options(s, path);
  options.max_out = kRowsOfLogits;
  model::Instance instance(options);
  const auto tokenizer = read_tokenizer(instance.file());
  const std::vector<int32_t> ids = tokenizer->encode(text, text::SpecialParsing::kNone);
  if (ids.size() < 2) {
    throw Error(ErrorCode::kInvalidArgument,
                format("{} has {} tokens, 2 are needed", s.text, ids.size()));
  }
  load_and_seal(instance, s);
  engine::Evaluator evaluator(instance);
  const size_t stretch = static_cast<size_t>(instance.options().max_context);
  double sum = 0;
  int64_t n = 0;
  std::optional<Progress> progress(std::in_place, s, "reading the text");
  for (size_t at = 0; at + 1 < ids.size(); at += stretch) {
    const auto part = std::span(ids).subspan(at, std::min(stretch, ids.size() - at));
    evaluator.run(part, 0, [&](int, size_t first, View<const float> rows) {
      for (size_t r = 0; r < static_cast<size_t>(rows.extent(0)); ++r) {
        if (first + r + 1 >= part.size()) break;
        sum += engine::negative_log_likelihood(
            {rows.row(static_cast<int64_t>(r)), static_cast<size_t>(rows.extent(1))},
            part[first + r + 1]);
        ++n;
      }
      progress->show(at + first, ids.size());
    });
  }
  progress.reset();
  const double nll = sum / static_cast<double>(n);
  if (s.json) {
    std::cout << Json{{"tokens", n}, {"nll", nll}, {"ppl", std::exp(nll)}}.dump() << '\n';
  } else {
    std::cout << format(
        "tokens        {} in stretches of {}\nnats a token  {:.4f}\n"
        "perplexity    {:.4f}\n",
        n, stretch, nll, std::exp(nll));
  }
  return 0;
}

}  // namespace

int run_eval(const Invocation& invocation) {
  const Settings& s = invocation.settings;
  if (s.reference.empty() == s.text.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "eval needs either --reference FILE or --text FILE");
  }
  const std::string path = find_model(s);
  return s.text.empty() ? against_reference(s, path) : of_text(s, path);
}

}  // namespace strata::cli
