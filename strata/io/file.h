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

  std::string identity() const override { return identity_; }

  const Descriptor& descriptor() const { return descriptor_; }

 private:
  File(std::string path, os::OpenedFile opened);
  size_t read_some(uint64_t offset, std::span<std::byte> out) const override;

  Descriptor descriptor_;
  std::string identity_;
};

}  // namespace strata::io
