#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace strata::gguf {

// Bytes that keep their address while the arena lives, also when it moves. Not aligned.
class Arena {
 public:
  std::span<std::byte> allocate(size_t n_bytes) {
    if (n_bytes > left_.size()) {
      const size_t block = std::max(n_bytes, kBlockBytes);
      blocks_.push_back(std::make_unique_for_overwrite<std::byte[]>(block));
      left_ = {blocks_.back().get(), block};
    }
    const auto result = left_.first(n_bytes);
    left_ = left_.subspan(n_bytes);
    return result;
  }

 private:
  static constexpr size_t kBlockBytes = 64 * 1024;

  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  std::span<std::byte> left_;
};

}  // namespace strata::gguf
