#pragma once

#include <string>
#include <utility>
#include <vector>

#include "strata/gguf/model.h"

namespace strata::cli {

// Which files a model was opened from. Front and engine process read the same model at different
// times: the tokenizer of one file and the weights of another would answer nonsense.
class ModelFiles {
 public:
  explicit ModelFiles(const gguf::Model& model);

  // For the engine: what require_files() takes.
  std::string text() const;
  // Errors: kCorruptFile with kModelChanged if one of the paths leads to another file by now, or to
  // none. What cannot be told (too many open files) is no error.
  void require_unchanged() const;

 private:
  std::vector<std::pair<std::string, std::string>> files_;  // path, io::ByteSource::identity()
};

inline constexpr const char* kModelChanged =
    "the model file has changed since the server started; restart it";

// Errors: kCorruptFile with kModelChanged if `model` was opened from other files than `text` says.
// An empty text allows all.
void require_files(const gguf::Model& model, const std::string& text);

}  // namespace strata::cli
