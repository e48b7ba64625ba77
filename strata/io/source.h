#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace strata::io {

// Bytes that are read at an offset: a file, a mapped file, memory, or one of these with faults.
// Offsets and sizes are 64-bit bytes everywhere. Several threads may read at the same time.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  // What errors call it: the path of a file, as the caller gave it.
  const std::string& name() const { return name_; }

  // The size found when the source was opened.
  uint64_t size() const { return size_; }

  // Fills all of out with the bytes from offset on.
  // Errors: kIo if the range leaves the source, the system refuses, or the file became shorter; the
  // message has name, offset, wanted and got.
  void read_at(uint64_t offset, std::span<std::byte> out) const;

  // Tells the file that was opened from one that took its place, and from itself when written to:
  // device, inode, size and time of the last change, as they were then. Empty if it is no file.
  virtual std::string identity() const { return {}; }

  // All bytes as they lie in memory; empty if the source is not in memory (or has no bytes).
  virtual std::span<const std::byte> mapped() const { return {}; }

 protected:
  ByteSource(std::string name, uint64_t size) : name_(std::move(name)), size_(size) {}
  ByteSource(ByteSource&&) = default;
  ByteSource& operator=(ByteSource&&) = default;

  // Reads at least one byte and at most out.size() (which is not 0); returns how many, 0 if there
  // are none left. read_at has checked the range. Errors: kIo.
  virtual size_t read_some(uint64_t offset, std::span<std::byte> out) const = 0;

 private:
  friend class FaultySource;

  std::string name_;
  uint64_t size_;
};

// Owned bytes.
class MemorySource final : public ByteSource {
 public:
  MemorySource(std::string name, std::vector<std::byte> bytes);

  std::span<const std::byte> mapped() const override { return bytes_; }

 private:
  size_t read_some(uint64_t offset, std::span<std::byte> out) const override;

  std::vector<std::byte> bytes_;
};

enum class Access {
  kMapped,  // the file is mapped, pages are read when touched
  kPlain,   // the file is read into buffers of the caller
};

// Errors: those of File::open.
std::unique_ptr<ByteSource> open_source(const std::string& path, Access access);

}  // namespace strata::io
