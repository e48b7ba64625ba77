#pragma once

#include <string>

#include "strata/io/os/file_descriptor.h"
#include "strata/io/source.h"

namespace strata::io {

// A regular file open for reading. Owns its descriptor. Reads go through the page cache.
class File final : public ByteSource {
 public:
  // Errors: kNotFound if there is no such file, kInvalidArgument if it is a folder or another thing
  // that is no regular file, kIo for what else the system refuses; all name the path.
  static File open(const std::string& path);

  const Descriptor& descriptor() const { return descriptor_; }

 private:
  File(std::string path, uint64_t size, Descriptor descriptor);
  size_t read_some(uint64_t offset, std::span<std::byte> out) const override;

  Descriptor descriptor_;
};

}  // namespace strata::io
