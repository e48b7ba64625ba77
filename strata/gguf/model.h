#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "strata/gguf/arena.h"
#include "strata/gguf/metadata.h"
#include "strata/gguf/open_options.h"
#include "strata/gguf/tensor.h"
#include "strata/io/source.h"

namespace strata::gguf {

struct Shard {
  std::string path;
  uint64_t n_bytes = 0;       // of the file
  uint64_t header_bytes = 0;  // up to the end of the tensor table
  uint32_t version = 0;
  uint32_t alignment = 0;
  size_t n_tensors = 0;
};

// A GGUF file, or all shards of a split one, open for reading: metadata and tensor table are in
// memory and checked, tensor data stays in the file. Nothing here knows what the tensors mean.
// Views (strings, tensor bytes) live as long as the Model; moving it keeps them valid.
// Immutable: any number of threads may use it.
class Model {
 public:
  // path: a file, any shard of a split file, or a folder that holds one model.
  // Shards are put in order by their split.no, whatever they are called.
  // Errors, each naming file and place: kNotFound (no such file; shards missing or empty, all of
  // them in one message), kCorruptFile (not a GGUF, what it looks like instead; any count, length,
  // offset or size that does not fit), kUnsupported (version, byte order, tensor type),
  // kInvalidArgument (a folder with several models), kIo.
  static Model open(const std::string& path, const OpenOptions& options = {});

  // The same for sources in any order, all shards of one model.
  static Model from_sources(std::vector<std::unique_ptr<io::ByteSource>> sources);

  // Of the first shard; the later ones have nothing but split keys.
  const Metadata& metadata() const { return metadata_; }

  std::span<const Shard> shards() const { return shards_; }
  const io::ByteSource& source(int shard) const { return *sources_[static_cast<size_t>(shard)]; }

  // All shards one after the other, each in the order of its table.
  std::span<const Tensor> tensors() const { return tensors_; }
  const Tensor* find(std::string_view name) const;
  // Errors: kCorruptFile naming file and tensor.
  const Tensor& get(std::string_view name) const;

  // Whether all tensors have their bytes; not so with OpenOptions::header_only alone.
  bool has_data() const;
  // Whether bytes() can be used for every tensor.
  bool is_mapped() const;
  // The tensor where it lies, not aligned beyond Shard::alignment. The model must be mapped.
  std::span<const std::byte> bytes(const Tensor& tensor) const;

  // Fills out from byte offset of the tensor on; works for mapped and plain access.
  // Errors: kInvalidArgument if the range leaves the tensor; kIo, also without data.
  void read(const Tensor& tensor, uint64_t offset, std::span<std::byte> out) const;
  // The whole tensor.
  std::vector<std::byte> read(const Tensor& tensor) const;

 private:
  struct Files;
  explicit Model(Files files);

  std::vector<std::unique_ptr<io::ByteSource>> sources_;
  std::vector<Arena> strings_;  // what all string views point into
  std::vector<Shard> shards_;
  Metadata metadata_;
  std::vector<Tensor> tensors_;
  std::unordered_map<std::string_view, size_t> index_;
};

}  // namespace strata::gguf
