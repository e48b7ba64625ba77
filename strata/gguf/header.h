#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "strata/gguf/arena.h"
#include "strata/gguf/metadata.h"
#include "strata/gguf/tensor.h"
#include "strata/io/source.h"

namespace strata::gguf {

// Bounds on what one header may hold, far above any real file: the reader's memory and time stay
// small whatever the file claims.
inline constexpr uint64_t kMaxHeaderBytes = 128u << 20;
inline constexpr uint64_t kMaxKeys = 1u << 16;
inline constexpr uint64_t kMaxTensors = 1u << 17;
inline constexpr uint64_t kMaxKeyBytes = 65535;  // the format's own limit
inline constexpr uint64_t kMaxTensorNameBytes = 1024;
inline constexpr int kMaxArrayDepth = 4;
inline constexpr uint64_t kMaxNestedArrays = 1u << 16;
inline constexpr uint64_t kMaxAlignment = 1u << 20;

// The place of one file among the shards of a model.
struct Split {
  uint64_t no = 0;  // from 0
  uint64_t count = 0;
  std::optional<uint64_t> n_tensors;  // over all shards
};

// Everything before the tensor data of one file. The tensors have their name, type, extents and
// sizes; offset is as the file has it, from the start of the data (see place_tensors).
struct Header {
  Arena strings;
  uint32_t version = 0;
  uint32_t alignment = 0;
  uint64_t n_bytes = 0;
  Metadata metadata;
  std::vector<Tensor> tensors;
  std::optional<Split> split;  // set if split.count is above 1
};

// Reads from a source and judges each field as it comes.
// Errors: kCorruptFile and kUnsupported, as Model::open says; kIo.
Header read_header(const io::ByteSource& source);

}  // namespace strata::gguf
