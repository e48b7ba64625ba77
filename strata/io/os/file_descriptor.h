#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "strata/base/os/descriptor.h"

namespace strata::io {

// The operating system's files, for io/ alone. No system header leaks from here.

using strata::os::Descriptor;

// A read-only private mapping of a whole file. Move-only.
class Mapping {
 public:
  Mapping() = default;
  // Errors: kIo, naming the path.
  Mapping(const Descriptor& file, uint64_t size, const std::string& path);
  ~Mapping() { reset(); }
  Mapping(Mapping&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  Mapping& operator=(Mapping&& other) noexcept {
    if (this != &other) {
      reset();
      bytes_ = std::exchange(other.bytes_, {});
    }
    return *this;
  }

  std::span<const std::byte> bytes() const { return bytes_; }
  void reset();

 private:
  std::span<const std::byte> bytes_;
};

namespace os {

struct OpenedFile {
  Descriptor descriptor;
  uint64_t size = 0;
  std::string identity;  // see ByteSource
};

// Errors: as File::open.
OpenedFile open_for_reading(const std::string& path);

// The same past the page cache where the file's system can; else `direct` becomes false.
OpenedFile open_direct(const std::string& path, bool& direct);

// One system read; 0 at the end. Errors: kIo, naming path, offset, wanted.
size_t read_some(const Descriptor& file, uint64_t offset, std::span<std::byte> out,
                 const std::string& path);

// Creates a new file of a short unused name in the folder of path; tells its path. It stays locked
// as long as it is open, so what a killed writer of the same path left behind is told from the file
// of a living one, and removed.
// Errors: kNotFound, kIo.
Descriptor create_beside(const std::string& path, std::string& created);

// Errors: kIo.
void write_all(const Descriptor& file, std::span<const std::byte> bytes, const std::string& path);
void sync(const Descriptor& file, const std::string& path);
void rename_over(const std::string& from, const std::string& to);

// Best effort: no error leaves.
void remove_quietly(const std::string& path) noexcept;

uint64_t page_bytes();
enum class PageAdvice { kNormal, kSequential, kRandom, kWillNeed, kDontNeed };
// Hints; refusals are ignored. bytes must start at a page boundary.
void advise_pages(std::span<const std::byte> bytes, PageAdvice advice);
void drop_from_cache(const Descriptor& file, uint64_t offset, uint64_t n_bytes);

}  // namespace os
}  // namespace strata::io
