#include "strata/io/output.h"

#include "strata/base/check.h"

namespace strata::io {
namespace {

// Small writes are gathered: a header comes in pieces of a few bytes.
constexpr size_t kBufferBytes = 256 * 1024;

}  // namespace

void Output::write(std::span<const std::byte> bytes) {
  write_all(bytes);
  n_written_ += bytes.size();
}

void Output::write(std::string_view text) { write(std::as_bytes(std::span(text))); }

void MemoryOutput::write_all(std::span<const std::byte> bytes) {
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

AtomicFile::AtomicFile(const std::string& path)
    : path_(path), descriptor_(os::create_beside(path, temporary_)) {
  buffer_.reserve(kBufferBytes);
}

AtomicFile::~AtomicFile() {
  if (!committed_) os::remove_quietly(temporary_);
}

void AtomicFile::write_all(std::span<const std::byte> bytes) {
  STRATA_CHECK(!committed_);
  if (buffer_.size() + bytes.size() > kBufferBytes) flush();
  if (bytes.size() > kBufferBytes) {
    os::write_all(descriptor_, bytes, path_);
  } else {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
}

void AtomicFile::flush() {
  os::write_all(descriptor_, buffer_, path_);
  buffer_.clear();
}

void AtomicFile::commit() {
  STRATA_CHECK(!committed_);
  flush();
  os::sync(descriptor_, path_);
  os::rename_over(temporary_, path_);
  committed_ = true;
}

void write_atomically(const std::string& path, std::span<const std::byte> bytes) {
  write_atomically(path, [&](Output& out) { out.write(bytes); });
}

void write_atomically(const std::string& path, const std::function<void(Output&)>& fill) {
  AtomicFile file(path);
  fill(file);
  file.commit();
}

}  // namespace strata::io
