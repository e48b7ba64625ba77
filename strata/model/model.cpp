#include "strata/model/model.h"

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/model/arch/registry.h"

namespace strata::model {

void Model::begin_step() { inputs_->begin(); }

void Model::add(SessionState& session, std::span<const int32_t> ids) {
  const size_t first = session.ids().size();
  session.begin(ids);
  lay_out(session, first);
}

void Model::add_behind(SessionState& session, std::span<const int32_t> ids) {
  const size_t first = session.ids().size();
  session.extend(ids);
  lay_out(session, first);
}

// The session's tokens from `first` on.
void Model::lay_out(SessionState& session, size_t first) {
  const std::span<const int32_t> ids = session.ids().subspan(first);
  const int ratio = std::max(index_ratio(), 1);
  positions_.clear();
  block_positions_.clear();
  for (size_t i = first; i < first + ids.size(); ++i) {
    const int64_t index = static_cast<int64_t>(i);
    positions_.push_back(session.position(index));
    block_positions_.push_back(session.position(index / ratio * ratio));
  }
  ple_rows_.clear();
  if (inputs_->shape().ple_rows > 0 && session.is_of(*states_))
    ngram_rows(session.ids(), first, ple_rows_);
  inputs_->set_pages(session.slot(), session.pages());
  inputs_->set_side(session.slot(), session.side());
  inputs_->add({.slot = session.slot(),
                .first_index = static_cast<int>(first),
                .ids = ids,
                .positions = positions_,
                .block_positions = block_positions_,
                .ple_rows = ple_rows_},
               rope());
}

std::unique_ptr<Blueprint> read_blueprint(const gguf::Model& file) {
  return find_architecture(file).read(file);
}

ModelFacts read_facts(const gguf::Model& file) { return read_blueprint(file)->facts(); }

std::unique_ptr<Model> open_model(const gguf::Model& file, const ModelOptions& options,
                                  const Stages& stages, memory::Plan& plan) {
  return read_blueprint(file)->open(options, stages, plan);
}

}  // namespace strata::model
