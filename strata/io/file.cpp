#include "strata/io/file.h"

#include <utility>

namespace strata::io {

File File::open(const std::string& path) {
  os::OpenedFile opened = os::open_for_reading(path);
  return File(path, opened.size, std::move(opened.descriptor));
}

File::File(std::string path, uint64_t size, Descriptor descriptor)
    : ByteSource(std::move(path), size), descriptor_(std::move(descriptor)) {}

size_t File::read_some(uint64_t offset, std::span<std::byte> out) const {
  return os::read_some(descriptor_, offset, out, name());
}

}  // namespace strata::io
