#pragma once

#include <string>
#include <utility>

namespace strata::os {

// Owns a file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  // What was held before is closed at once.
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~Descriptor() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset();

 private:
  int fd_ = -1;
};

// The system's open(), again when a signal came between. Not open: errno says why.
Descriptor open_descriptor(const char* path, int flags, unsigned mode = 0);

// What an errno means, in words.
std::string describe(int error);

}  // namespace strata::os
