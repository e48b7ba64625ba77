#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strata/gguf/header.h"
#include "strata/gguf/open_options.h"
#include "strata/io/source.h"

namespace strata::gguf {

// One opened file with its checked header; tensor offsets count from the start of the file.
struct ShardFile {
  std::unique_ptr<io::ByteSource> source;
  Header header;
};

// What "base-00002-of-00003.gguf" says: base, no = 1 (from 0), count = 3.
struct ShardName {
  std::string base;
  int no;
  int count;
};
std::optional<ShardName> parse_shard_path(std::string_view path);

ShardFile read_shard(std::unique_ptr<io::ByteSource> source, bool header_only = false);

// All files of the model that path leads to, in order of their split.no, none missing.
// Errors: as Model::open.
std::vector<ShardFile> find_shards(const std::string& path, const OpenOptions& options);

// Puts files into the order of their split.no.
// Errors: kNotFound if some are missing, kCorruptFile if they do not belong together.
std::vector<ShardFile> arrange_shards(std::vector<ShardFile> files);

}  // namespace strata::gguf
