#include "strata/io/file.h"

#include <utility>

namespace strata::io {

File File::open(const std::string& path) { return File(path, os::open_for_reading(path)); }

File::File(std::string path, os::OpenedFile opened)
    : ByteSource(std::move(path), opened.size),
      descriptor_(std::move(opened.descriptor)),
      identity_(std::move(opened.identity)) {}

size_t File::read_some(uint64_t offset, std::span<std::byte> out) const {
  return os::read_some(descriptor_, offset, out, name());
}

}  // namespace strata::io
