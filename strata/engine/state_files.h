#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "strata/model/state.h"

namespace strata::engine {

// States of conversations as files of a folder, so that they outlive the process. A file is written
// whole under another name and then renamed; it holds the fingerprint of the model and the options
// that its bytes depend on, the token ids, recurrent state and cells, and a hash of all that. What
// is foreign, cut or damaged is left alone, with one line in the log.
class StateFiles {
 public:
  static constexpr size_t kMostFiles = 64;

  // One part of a state: of the trunk, or of the draft layer.
  struct Part {
    std::vector<int32_t> ids;
    std::vector<std::byte> recurrent;
    std::vector<std::byte> cells;  // whole pages
  };
  struct State {
    Part trunk, draft;  // draft without ids: none
  };

  // Reads the ids of the folder's files. Errors: kIo if the folder cannot be made or read.
  StateFiles(std::string folder, uint64_t fingerprint);

  // Which file begins these ids, with the most tokens, more than `least` and fewer than all.
  std::optional<size_t> find(std::span<const int32_t> ids, size_t least) const;
  // Nothing if it turned out to be damaged or is gone; it is forgotten then.
  std::optional<State> read(size_t index);
  bool has(std::span<const int32_t> ids) const;
  // The oldest file goes if there are too many. Failures are a line in the log.
  void write(const State& state);
  size_t size() const { return files_.size(); }

 private:
  struct File {
    std::filesystem::path path;
    std::vector<int32_t> ids;
    uint64_t used = 0;
  };
  void drop_oldest();

  std::filesystem::path folder_;
  uint64_t fingerprint_;
  std::vector<File> files_;
  uint64_t now_ = 0;
};

}  // namespace strata::engine
