#include "strata/gguf/model.h"

#include <algorithm>
#include <utility>

#include "strata/base/check.h"
#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/gguf/escape.h"
#include "strata/gguf/shards.h"

namespace strata::gguf {

struct Model::Files {
  std::vector<ShardFile> shards;
};

Model::Model(Files files) {
  for (ShardFile& file : files.shards) {
    const int shard = static_cast<int>(shards_.size());
    const Header& header = file.header;
    shards_.push_back({.path = file.source->name(),
                       .n_bytes = file.source->size(),
                       .header_bytes = header.n_bytes,
                       .version = header.version,
                       .alignment = header.alignment,
                       .n_tensors = header.tensors.size()});
    for (const Tensor& tensor : header.tensors) {
      const auto [it, is_new] = index_.emplace(tensor.name, tensors_.size());
      if (!is_new) {
        throw Error(ErrorCode::kCorruptFile,
                    format("{}: tensor {} is also in {}", shards_.back().path, escaped(tensor.name),
                           shards_[static_cast<size_t>(tensors_[it->second].shard)].path));
      }
      tensors_.push_back(tensor);
      tensors_.back().shard = shard;
    }
    sources_.push_back(std::move(file.source));
    strings_.push_back(std::move(file.header.strings));
  }
  metadata_ = std::move(files.shards.front().header.metadata);
}

Model Model::open(const std::string& path, const OpenOptions& options) {
  return Model(Files{find_shards(path, options)});
}

Model Model::from_sources(std::vector<std::unique_ptr<io::ByteSource>> sources) {
  STRATA_CHECK(!sources.empty());
  std::vector<ShardFile> files;
  files.reserve(sources.size());
  for (auto& source : sources) files.push_back(read_shard(std::move(source)));
  return Model(Files{arrange_shards(std::move(files))});
}

const Tensor* Model::find(std::string_view name) const {
  const auto it = index_.find(name);
  return it == index_.end() ? nullptr : &tensors_[it->second];
}

const Tensor& Model::get(std::string_view name) const {
  const Tensor* tensor = find(name);
  if (tensor == nullptr) {
    throw Error(ErrorCode::kCorruptFile,
                format("{}: the tensor {} is missing", shards_.front().path, escaped(name)));
  }
  return *tensor;
}

bool Model::has_data() const {
  return std::all_of(tensors_.begin(), tensors_.end(), [this](const Tensor& tensor) {
    return source(tensor.shard).size() >= tensor.offset + tensor.n_bytes;
  });
}

bool Model::is_mapped() const {
  return has_data() && std::all_of(sources_.begin(), sources_.end(), [](const auto& source) {
           return source->mapped().size() == source->size();
         });
}

std::span<const std::byte> Model::bytes(const Tensor& tensor) const {
  const auto all = source(tensor.shard).mapped();
  STRATA_CHECK(all.size() >= tensor.offset + tensor.n_bytes);
  return all.subspan(tensor.offset, tensor.n_bytes);
}

void Model::read(const Tensor& tensor, uint64_t offset, std::span<std::byte> out) const {
  if (offset > tensor.n_bytes || out.size() > tensor.n_bytes - offset) {
    throw Error(ErrorCode::kInvalidArgument,
                format("tensor {} has {} bytes; {} at {} are wanted", escaped(tensor.name),
                       tensor.n_bytes, out.size(), offset));
  }
  try {
    source(tensor.shard).read_at(tensor.offset + offset, out);
  } catch (Error& e) {
    e.with(format("reading tensor {}", escaped(tensor.name)));
    throw;
  }
}

std::vector<std::byte> Model::read(const Tensor& tensor) const {
  std::vector<std::byte> bytes(tensor.n_bytes);
  read(tensor, 0, bytes);
  return bytes;
}

}  // namespace strata::gguf
