#include "strata/cli/local_engine.h"

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/base/log.h"

namespace strata::cli {

LocalEngine::LocalEngine(const Invocation& invocation)
    : instance_(answering_options(invocation, find_model(invocation.settings))),
      tokenizer_(read_tokenizer(instance_.file())) {
  engine::EngineHooks hooks;
  hooks.emit = [this](std::span<const wire::Addressed> events) {
    for (const wire::Addressed& each : events) take(each);
  };
  engine_ = std::make_unique<engine::Engine>(instance_, *tokenizer_, std::move(hooks),
                                             engine_options(invocation, instance_.file()));
  const Settings& settings = invocation.settings;
  report_choices(instance_, settings);
  Progress progress(settings);
  engine_->prepare([&](Bytes done, Bytes total) { progress.show(done, total); });
  log_info(format("memory: {}", instance_.memory_text()));
}

void LocalEngine::take(const wire::Addressed& addressed) {
  if (addressed.request != last_request_) return;
  if (const auto* tokens = std::get_if<wire::Tokens>(&addressed.event)) {
    if (!tokens->bytes.empty() && *on_bytes_) (*on_bytes_)(tokens->bytes);
  } else if (const auto* finished = std::get_if<wire::Finished>(&addressed.event)) {
    finished_ = *finished;
  } else if (const auto* failed = std::get_if<wire::Failed>(&addressed.event)) {
    failed_ = *failed;
  }
}

LocalEngine::Answer LocalEngine::ask(wire::Submit submit,
                                     const std::function<void(std::string_view)>& on_bytes,
                                     const std::function<bool()>& cancelled) {
  on_bytes_ = &on_bytes;
  finished_.reset();
  failed_.reset();
  engine_->command(++last_request_, std::move(submit));
  bool told = false;
  while (!finished_ && !failed_) {
    if (!told && cancelled && cancelled()) {
      engine_->command(last_request_, wire::Cancel{});
      told = true;
    }
    // False is also said by the step that had nothing to do but end the request.
    if (!engine_->step() && !finished_ && !failed_) {
      throw Error(ErrorCode::kInternal, "the engine stopped before the answer had ended");
    }
  }
  if (failed_) throw Error(failed_->code, failed_->message);
  return {finished_->reason, finished_->usage, finished_->timings, finished_->drafts};
}

}  // namespace strata::cli
