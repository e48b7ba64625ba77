#pragma once

#include <cstddef>
#include <fstream>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "strata/quant/bits.h"

// For tests: the arrays of tests/golden/quant/vectors.gguf, by name. Reads just what that file is
// made of: string metadata, tensors of two dimensions.
namespace strata::quant {

class GoldenVectors {
 public:
  GoldenVectors() {
    std::ifstream file(STRATA_SOURCE_DIR "/tests/golden/quant/vectors.gguf", std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    bytes_.resize(text.size());
    for (size_t i = 0; i < text.size(); ++i) bytes_[i] = static_cast<std::byte>(text[i]);
    if (!bytes_.empty()) parse();
  }

  // Empty if there is no such array. The rest of the file follows: the length is the caller's.
  std::span<const std::byte> find(const std::string& name) const {
    const auto found = offsets_.find(name);
    if (found == offsets_.end()) return {};
    return std::span(bytes_).subspan(data_ + found->second);
  }

  std::vector<float> values(const std::string& name, size_t n) const {
    std::vector<float> out(n);
    const auto bytes = find(name);
    for (size_t i = 0; i < n; ++i) {
      out[i] = std::bit_cast<float>(load_u32(bytes.subspan(4 * i, 4).data()));
    }
    return out;
  }

 private:
  uint32_t u32() {
    at_ += 4;
    return load_u32(&bytes_.at(at_ - 4));
  }
  uint64_t u64() {
    const uint64_t low = u32();
    return low | static_cast<uint64_t>(u32()) << 32;
  }
  std::string string() {
    std::string out(u64(), ' ');
    for (char& c : out) c = static_cast<char>(bytes_.at(at_++));
    return out;
  }

  void parse() {
    at_ = 8;
    const uint64_t n_tensors = u64();
    const uint64_t n_keys = u64();
    for (uint64_t i = 0; i < n_keys; ++i) {
      string();
      u32();
      string();
    }
    for (uint64_t i = 0; i < n_tensors; ++i) {
      const std::string name = string();
      for (uint32_t n = u32(); n > 0; --n) u64();
      u32();
      offsets_[name] = u64();
    }
    data_ = (at_ + 31) / 32 * 32;
  }

  std::vector<std::byte> bytes_;
  std::map<std::string, size_t> offsets_;
  size_t at_ = 0;
  size_t data_ = 0;
};

}  // namespace strata::quant
