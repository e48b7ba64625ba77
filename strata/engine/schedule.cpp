#include "strata/engine/schedule.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace strata::engine {
namespace {

// Of their speed, that answers keep while prompts are read.
constexpr double kKept = 0.7;
// An answer pauses about so long for a piece of a prompt, if that is at least kLeastPiece rows:
// smaller ones would read the weights for too few.
constexpr double kPauseMs = 500;
constexpr double kLeastPiece = 32;

StepPart window_of(Request& request, size_t room) {
  StepPart part{.request = &request, .decodes = true};
  const std::vector<int32_t>& guesses = request.drafting.guesses;
  const size_t n = std::min({guesses.size(), room - 1, request.n_left() - 1});
  part.ids = {request.answer.back()};
  part.ids.insert(part.ids.end(), guesses.begin(),
                  guesses.begin() + static_cast<std::ptrdiff_t>(n));
  part.n_outputs = static_cast<int>(part.ids.size());
  return part;
}

StepPart piece_of(Request& request, size_t n) {
  StepPart part{.request = &request};
  const std::vector<int32_t>& ids = request.text;
  const auto first = ids.begin() + static_cast<std::ptrdiff_t>(request.n_read);
  part.ids.assign(first, first + static_cast<std::ptrdiff_t>(n));
  part.n_outputs = request.n_read + n == ids.size() ? 1 : 0;
  return part;
}

}  // namespace

StepPlan plan_step(std::span<const std::unique_ptr<Request>> running, size_t room,
                   size_t prompt_rows) {
  StepPlan plan;
  std::vector<Request*> prompts;
  size_t n_answers = 0;  // that have no row yet
  for (const auto& request : running) n_answers += request->decoding() ? 1 : 0;
  for (const auto& request : running) {
    if (!request->decoding()) {
      prompts.push_back(request.get());
    } else if (room > 0) {
      // Guesses leave a row for everybody else's token.
      plan.push_back(window_of(*request, room - std::min(room - 1, n_answers - 1)));
      room -= plan.back().ids.size();
      --n_answers;
    }
  }
  room = std::min(room, prompt_rows);
  std::vector<size_t> rows(prompts.size());
  const auto give = [&](size_t i, size_t most) {
    const size_t n = std::min({room, most, prompts[i]->n_readable() - rows[i]});
    rows[i] += n;
    room -= n;
  };
  if (prompts.size() > 1) give(0, (room + 1) / 2);
  for (size_t i = 1; i < prompts.size(); ++i) give(i, room / (prompts.size() - i));
  for (size_t i = 0; i < prompts.size(); ++i) give(i, room);
  for (size_t i = 0; i < prompts.size(); ++i) {
    if (rows[i] > 0) plan.push_back(piece_of(*prompts[i], rows[i]));
  }
  return plan;
}

size_t PromptPace::rows(size_t chunk, bool answers_run) const {
  if (!answers_run) return chunk;
  if (debt_ms_ > 0) return 0;
  if (row_ms_ == 0) return chunk;
  const double piece = std::max(kPauseMs / row_ms_, kLeastPiece);
  return piece < static_cast<double>(chunk) ? static_cast<size_t>(piece) : chunk;
}

void PromptPace::add(int answer_rows, int prompt_rows, double ms, const StepCosts& costs) {
  if (answer_rows == 0) {
    debt_ms_ = 0;
    if (prompt_rows >= kLeastPiece) row_ms_ = ms / prompt_rows;
    return;
  }
  if (!costs.known()) return;
  // What the step would have taken without the prompt belongs to the answers.
  const double of_answers = prompt_rows == 0 ? ms : std::min(ms, costs.step(answer_rows));
  debt_ms_ += (ms - of_answers) - of_answers * (1 - kKept) / kKept;
  debt_ms_ = std::max(debt_ms_, 0.0);
  if (prompt_rows >= kLeastPiece) row_ms_ = (ms - of_answers) / prompt_rows;
}

}  // namespace strata::engine
