#include "strata/io/source.h"

#include <algorithm>
#include <cstring>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/io/file.h"
#include "strata/io/mapped_file.h"

namespace strata::io {

void ByteSource::read_at(uint64_t offset, std::span<std::byte> out) const {
  if (out.empty()) return;
  if (offset > size_ || out.size() > size_ - offset) {
    throw Error(ErrorCode::kIo, format("{}: wanted {} bytes at {}, but the file has {}", name_,
                                       out.size(), offset, size_));
  }
  size_t done = 0;
  while (done < out.size()) {
    const size_t got = read_some(offset + done, out.subspan(done));
    if (got == 0) {
      throw Error(ErrorCode::kIo,
                  format("{}: wanted {} bytes at {}, got {}: the file became shorter than the {} "
                         "bytes it had when it was opened",
                         name_, out.size(), offset, done, size_));
    }
    done += got;
  }
}

MemorySource::MemorySource(std::string name, std::vector<std::byte> bytes)
    : ByteSource(std::move(name), bytes.size()), bytes_(std::move(bytes)) {}

size_t MemorySource::read_some(uint64_t offset, std::span<std::byte> out) const {
  std::memcpy(out.data(), bytes_.data() + offset, out.size());
  return out.size();
}

std::unique_ptr<ByteSource> open_source(const std::string& path, Access access) {
  if (access == Access::kMapped) return std::make_unique<MappedFile>(MappedFile::open(path));
  return std::make_unique<File>(File::open(path));
}

}  // namespace strata::io
