#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "strata/cli/arguments.h"
#include "strata/engine/engine.h"
#include "strata/gguf/model.h"
#include "strata/model/instance.h"
#include "strata/text/chat_template.h"
#include "strata/text/tokenizer.h"

namespace strata::cli {

// The model asked for, or the demo model below the current folder or the program's repository.
// Errors: kNotFound if it is in neither.
std::string find_model(const Settings& settings);

// As many as asked for, or the cores of this process; warns if the former are more than that.
int thread_count(const Settings& settings);

// "auto" (empty), "48", "20,28". Errors: kInvalidArgument.
std::vector<int> parse_layer_split(const std::string& text);

// What is said about cards, slots and tiers.
memory::PlanWishes memory_wishes(const Settings& settings);

// For the model at `path`.
model::InstanceOptions instance_options(const Settings& settings, const std::string& path);
// Also with what answers are guessed with.
model::InstanceOptions answering_options(const Invocation& invocation, const std::string& path);
engine::EngineOptions engine_options(const Invocation& invocation, const gguf::Model& file);
// How long the engine gives a step.
engine::StepLimit step_limit(const Settings& settings);
// Tokens of an answer that are guessed at once, at most.
int max_guesses(const Invocation& invocation);

// Tells what the options came to (info), warns, and prints the plan if asked for.
void report_choices(model::Instance& instance, const Settings& settings);

// "1.84 tokens a pass, right 82 % of 120, 61 % of 98, ..." by depth; empty if nothing was guessed.
std::string drafts_text(const wire::Drafts& drafts);

// The name under which a model is reported: that of its file or folder, without the number of a
// shard. Known before the file is read.
std::string model_name(const std::string& path);

// Tokenizer and chat template of a file. Errors: kCorruptFile, kUnsupported.
std::unique_ptr<text::Tokenizer> read_tokenizer(const gguf::Model& file);
// A file without a template gets one that refuses to render and says why.
std::unique_ptr<text::ChatTemplate> read_chat_template(const gguf::Model& file,
                                                       const text::Tokenizer& tokenizer);

// Shows on stderr how far long work is: from half a second on, if that is a terminal or was asked
// for. Clears its line when it goes.
class Progress {
 public:
  explicit Progress(const Settings& settings, std::string what = "reading weights");
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // In any unit.
  void show(uint64_t done, uint64_t total);

 private:
  std::string what_;
  std::chrono::steady_clock::time_point begun_;
  bool wanted_, shown_ = false;
  int percent_ = -1;
};

// Tells what the options came to and reads the weights, with progress; nothing else is allocated.
void load_and_seal(model::Instance& instance, const Settings& settings);

}  // namespace strata::cli
