#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strata/io/os/file_descriptor.h"

namespace strata::io {

// Bytes written one after the other.
class Output {
 public:
  virtual ~Output() = default;

  // Errors: kIo.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);

  uint64_t n_written() const { return n_written_; }

 private:
  virtual void write_all(std::span<const std::byte> bytes) = 0;

  uint64_t n_written_ = 0;
};

class MemoryOutput final : public Output {
 public:
  const std::vector<std::byte>& bytes() const { return bytes_; }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  void write_all(std::span<const std::byte> bytes) override;

  std::vector<std::byte> bytes_;
};

// A file that appears under its path complete or not at all: it grows beside it under a temporary
// name (same folder, so that the rename is one step) and takes the path at commit(). Without
// commit() the destructor removes what was written; an older file of that name stays as it was.
class AtomicFile final : public Output {
 public:
  // Errors: kNotFound if the folder does not exist, kIo; both name the path.
  explicit AtomicFile(const std::string& path);
  ~AtomicFile() override;
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Writes the rest, waits until the bytes are on the disk, renames. Call it once, as the last.
  // Errors: kIo.
  void commit();

 private:
  void write_all(std::span<const std::byte> bytes) override;
  void flush();

  std::string path_;
  std::string temporary_;
  Descriptor descriptor_;
  std::vector<std::byte> buffer_;
  bool committed_ = false;
};

// The whole file at once, by AtomicFile.
// Errors: kNotFound, kIo; what fill throws passes through and leaves no file behind.
void write_atomically(const std::string& path, std::span<const std::byte> bytes);
void write_atomically(const std::string& path, const std::function<void(Output&)>& fill);

}  // namespace strata::io
