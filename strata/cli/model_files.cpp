#include "strata/cli/model_files.h"

#include "strata/base/error.h"
#include "strata/io/file.h"

namespace strata::cli {
namespace {

[[noreturn]] void refuse_change() { throw Error(ErrorCode::kCorruptFile, kModelChanged); }

// What the path leads to now; empty: nothing that can be opened.
std::string identity_of(const std::string& path) {
  try {
    return io::File::open(path).identity();
  } catch (const Error& e) {
    if (e.code() == ErrorCode::kIo) throw;
    return {};
  }
}

}  // namespace

ModelFiles::ModelFiles(const gguf::Model& model) {
  for (size_t i = 0; i < model.shards().size(); ++i) {
    files_.emplace_back(model.shards()[i].path, model.source(static_cast<int>(i)).identity());
  }
}

std::string ModelFiles::text() const {
  std::string text;
  for (const auto& [path, identity] : files_) text += (text.empty() ? "" : ",") + identity;
  return text;
}

void ModelFiles::require_unchanged() const {
  for (const auto& [path, identity] : files_) {
    std::string now;
    try {
      now = identity_of(path);
    } catch (const Error&) {
      continue;
    }
    if (now != identity) refuse_change();
  }
}

void require_files(const gguf::Model& model, const std::string& text) {
  if (!text.empty() && ModelFiles(model).text() != text) refuse_change();
}

}  // namespace strata::cli
