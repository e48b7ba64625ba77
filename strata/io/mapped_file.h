#pragma once

#include <cstdint>
#include <string>

#include "strata/io/file.h"
#include "strata/io/os/file_descriptor.h"
#include "strata/io/source.h"

namespace strata::io {

// A regular file, mapped read-only and private as a whole. Owns mapping and descriptor; the span of
// mapped() stays where it is when the MappedFile is moved.
//
// The mapping has the real size of the file, so an access inside mapped() cannot leave the file. If
// somebody shortens the file afterwards, touching the lost pages is a SIGBUS that no program can
// turn into an error; read_at() reads through the descriptor and reports kIo instead.
class MappedFile final : public ByteSource {
 public:
  // Errors: those of File::open; kIo if the system cannot map it. A file of 0 bytes maps to an
  // empty span.
  static MappedFile open(const std::string& path);

  std::string identity() const override { return file_.identity(); }
  std::span<const std::byte> mapped() const override { return mapping_.bytes(); }

  // How the range will be used. A hint: ranges are clipped to the file, refusals are ignored.
  enum class Advice { kNormal, kSequential, kRandom, kWillNeed };
  void advise(Advice advice, uint64_t offset, uint64_t n_bytes) const;
  void advise(Advice advice) const { advise(advice, 0, size()); }

  // Gives back the memory of the whole pages inside the range (they are read again when touched).
  // With from_cache the system is asked to drop them from its page cache as well.
  void release(uint64_t offset, uint64_t n_bytes, bool from_cache = false) const;

 private:
  MappedFile(File file, Mapping mapping);
  size_t read_some(uint64_t offset, std::span<std::byte> out) const override;

  File file_;
  Mapping mapping_;
};

}  // namespace strata::io
