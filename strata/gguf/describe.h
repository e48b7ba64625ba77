#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "strata/gguf/model.h"

namespace strata::gguf {

// What a file contains, for people and programs: `strata inspect`. Holds copies, no views. All text
// from the file is escaped: control characters and invalid UTF-8 read \n, \t, \x1b, ...
struct Description {
  struct File {
    std::string path;
    uint64_t n_bytes;
    uint64_t header_bytes;
    uint32_t version;
    uint32_t alignment;
    uint64_t n_tensors;
  };
  struct Key {
    std::string key;
    std::string type;  // "u32", "array of 512 strings"
    std::string text;  // shortened; strings without quotes
    bool shortened;
  };
  struct TensorRow {
    std::string name;
    std::string type;  // "Q4_K"
    std::vector<int64_t> shape;
    uint64_t n_bytes;
    uint64_t offset;
    int file;
  };
  struct TypeTotal {
    std::string type;
    uint64_t n_tensors;
    uint64_t n_values;
    uint64_t n_bytes;
  };

  std::vector<File> files;
  std::vector<Key> keys;
  std::vector<TensorRow> tensors;
  std::vector<TypeTotal> types;  // largest first
  uint64_t n_values = 0;
  uint64_t n_bytes = 0;  // of tensor data
};

struct DescribeOptions {
  int max_items = 8;          // shown of an array
  int max_string_bytes = 80;  // shown of a string
};

Description describe(const Model& model, const DescribeOptions& options = {});

// Lines for a terminal, the last one ended.
std::string to_text(const Description& description);

}  // namespace strata::gguf
