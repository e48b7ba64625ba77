#include "strata/engine/sampler.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "strata/base/carver.h"
#include "strata/base/check.h"
#include "strata/base/format.h"
#include "strata/kernels/op_table.h"

namespace strata::engine {

Sampler::Arrays Sampler::carve(std::byte* base, Bytes* bytes) const {
  Carver c(base);
  // In this order, so that one copy takes what a step uses of the first three.
  const Arrays arrays{.params = c.take<kernels::SampleParams>(max_rows_),
                      .chosen = c.take<int32_t>(max_rows_),
                      .biases = c.take<kernels::TokenBias>(max_biases_),
                      .counts = c.take<kernels::TokenCount>(max_counts_),
                      .logprobs = c.take<kernels::RowLogprobs>(max_rows_),
                      .masks = c.take<uint64_t>(max_rows_ * n_words_)};
  *bytes = c.peak();
  return arrays;
}

Bytes Sampler::table_bytes() const {
  Bytes bytes = 0;
  carve(nullptr, &bytes);
  return bytes;
}

Sampler::Sampler(int max_rows, int64_t max_context, int n_vocab, const device::Stream& stream,
                 memory::Plan& plan)
    : max_rows_(max_rows),
      max_counts_(max_rows * max_context),
      max_biases_(int64_t{max_rows} * wire::kMaxLogitBiases),
      n_words_(kernels::mask_words(n_vocab)),
      device_(stream.device()),
      table_(device_, plan, "sampler tables", format("{} rows of {} tokens", max_rows, max_context),
             table_bytes()) {
  scratch_bytes_ =
      kernels::scratch_bytes(stream, kernels::ops_for(stream).sample_rows,
                             arguments(View<float>(nullptr, {max_rows, n_vocab}), nullptr));
  scratch_line_ = plan.add({.owner = "engine",
                            .name = "sampler scratch",
                            .formula = format("{} rows of {} logits", max_rows, n_vocab),
                            .where = device_.id(),
                            .bytes = scratch_bytes_});
}

void Sampler::allocate() {
  table_.allocate();
  scratch_ = value_or_throw(device_.allocate(scratch_line_, scratch_bytes_, device_.work_memory()));
  Bytes bytes = 0;
  host_ = carve(table_.on_host(), &bytes);
  on_device_ = carve(table_.on_device(), &bytes);
}

void Sampler::begin() {
  n_rows_ = 0, n_counts_ = 0, n_biases_ = 0, n_masks_ = 0;
  any_logprobs_ = false;
}

// The row of the mask for the token behind `ahead`; -1: none is needed. Where no token may come the
// op chooses none.
int32_t Sampler::add_mask(const Request& request, std::span<const int32_t> ahead) {
  const auto begin = std::chrono::steady_clock::now();
  Guide behind;
  if (!ahead.empty()) {
    behind = request.guide;
    for (const int32_t id : ahead) {
      // A guess that may not come is not taken, and what is behind it does not count.
      if (!behind.push(id)) return -1;
    }
  }
  const Guide& guide = ahead.empty() ? request.guide : behind;
  if (!guide.limits()) return -1;
  guide.mask(std::span(host_.masks + n_masks_ * n_words_, static_cast<size_t>(n_words_)));
  const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - begin;
  mask_ns_ += static_cast<uint64_t>(took.count());
  ++n_masks_made_;
  return n_masks_++;
}

void Sampler::add(Request& request, std::span<const int32_t> ahead, int n_top) {
  std::vector<std::optional<int32_t>> left;  // the window of each
  for (const int32_t id : ahead) left.push_back(request.penalties.push(id));
  const wire::Sampling& s = request.submit.sampling;
  const kernels::SampleParams params{
      .temperature = s.temperature,
      .top_p = s.top_p,
      .min_p = s.min_p,
      .presence = s.presence_penalty,
      .frequency = s.frequency_penalty,
      .repetition = s.repetition_penalty,
      .top_k = s.top_k,
      .first_count = n_counts_,
      .n_counts = static_cast<int32_t>(request.penalties.counts().size()),
      .first_bias = n_biases_,
      .n_bias = static_cast<int32_t>(s.logit_bias.size()),
      .mask = add_mask(request, ahead),
      .n_top = n_top,
      .seed = request.seed,
      .position =
          static_cast<int64_t>(request.submit.ids.size() + request.answer.size() + ahead.size())};
  STRATA_CHECK(n_rows_ < max_rows_ && n_biases_ + params.n_bias <= max_biases_ &&
               n_counts_ + params.n_counts <= max_counts_);
  for (const wire::LogitBias& bias : s.logit_bias) {
    host_.biases[n_biases_++] = {.id = bias.id, .bias = bias.bias};
  }
  std::ranges::copy(request.penalties.counts(), host_.counts + n_counts_);
  n_counts_ += params.n_counts;
  host_.params[n_rows_++] = params;
  any_logprobs_ = any_logprobs_ || n_top >= 0;
  for (size_t i = ahead.size(); i > 0; --i) request.penalties.take_back(ahead[i - 1], left[i - 1]);
}

kernels::SampleRows Sampler::arguments(View<float> logits, const int32_t* n_rows) const {
  return {.n_rows = n_rows,
          .logits = logits,
          .params = View<const kernels::SampleParams>(on_device_.params, {max_rows_}),
          .counts = View<const kernels::TokenCount>(on_device_.counts, {max_counts_}),
          .biases = View<const kernels::TokenBias>(on_device_.biases, {max_biases_}),
          .masks = View<const uint64_t>(on_device_.masks, {max_rows_, n_words_}),
          .chosen = View<int32_t>(on_device_.chosen, {max_rows_}),
          .logprobs = View<kernels::RowLogprobs>(on_device_.logprobs, {max_rows_}),
          .scratch = View<std::byte>(scratch_.data(), {static_cast<int64_t>(scratch_bytes_)})};
}

void Sampler::run(device::Stream& stream, View<float> logits, const int32_t* n_rows) {
  const auto* const end = reinterpret_cast<const std::byte*>(host_.biases + n_biases_);
  table_.upload(stream, table_.on_host(), static_cast<Bytes>(end - table_.on_host()));
  table_.upload(stream, host_.counts, static_cast<Bytes>(n_counts_) * sizeof(kernels::TokenCount));
  table_.upload(stream, host_.masks, static_cast<Bytes>(n_masks_ * n_words_) * sizeof(uint64_t));
  kernels::run(stream, kernels::ops_for(stream).sample_rows, arguments(logits, n_rows));
  const auto n = static_cast<Bytes>(n_rows_);
  table_.download(stream, host_.chosen, n * sizeof(int32_t));
  if (!any_logprobs_) return;
  table_.download(stream, host_.logprobs, n * sizeof(kernels::RowLogprobs));
}

std::span<const int32_t> Sampler::chosen() const {
  return {host_.chosen, static_cast<size_t>(n_rows_)};
}

std::span<const kernels::RowLogprobs> Sampler::logprobs() const {
  return {host_.logprobs, static_cast<size_t>(n_rows_)};
}

}  // namespace strata::engine
