#pragma once

#include <cstdint>
#include <utility>

namespace strata::device {

// A claim on something (a pinned expert, a staging slot) that ends when this is destroyed. Two
// words and a function instead of a std::function: handing one to a stream uses no heap. The
// function may run inside a call of a stream, so it uses none.
class Lease {
 public:
  using Release = void (*)(void* owner, uint64_t key) noexcept;

  Lease() = default;
  Lease(void* owner, uint64_t key, Release call) : owner_(owner), key_(key), release_(call) {}
  Lease(Lease&& other) noexcept
      : owner_(other.owner_), key_(other.key_), release_(std::exchange(other.release_, nullptr)) {}
  Lease& operator=(Lease&& other) noexcept {
    if (this != &other) {
      release();
      owner_ = other.owner_;
      key_ = other.key_;
      release_ = std::exchange(other.release_, nullptr);
    }
    return *this;
  }
  ~Lease() { release(); }

  void release() {
    if (Release call = std::exchange(release_, nullptr)) call(owner_, key_);
  }
  explicit operator bool() const { return release_ != nullptr; }

 private:
  void* owner_ = nullptr;
  uint64_t key_ = 0;
  Release release_ = nullptr;
};

}  // namespace strata::device
