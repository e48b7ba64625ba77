#include "strata/io/os/file_descriptor.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "strata/base/check.h"
#include "strata/base/error.h"
#include "strata/base/format.h"

namespace strata::io {
namespace {

// Linux moves at most this many bytes a call; larger requests are only shortened.
constexpr size_t kMaxCallBytes = 1u << 30;

using strata::os::describe;
using strata::os::open_descriptor;

[[noreturn]] void fail(const std::string& doing, const std::string& path, int error) {
  const bool absent = error == ENOENT || error == ENOTDIR;
  throw Error(absent ? ErrorCode::kNotFound : ErrorCode::kIo,
              format("{} {}: {}", doing, path, describe(error)));
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

}  // namespace

Mapping::Mapping(const Descriptor& file, uint64_t size, const std::string& path) {
  if (size == 0) return;  // mmap refuses an empty range
  if (size > std::numeric_limits<size_t>::max()) fail("mapping", path, EOVERFLOW);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) fail(format("mapping {} bytes of", size), path, errno);
  bytes_ = {static_cast<const std::byte*>(address), static_cast<size_t>(size)};
}

void Mapping::reset() {
  const auto bytes = std::exchange(bytes_, {});
  if (!bytes.empty()) ::munmap(const_cast<std::byte*>(bytes.data()), bytes.size());
}

namespace os {

namespace {

OpenedFile look_at(Descriptor file, const std::string& path) {
  struct stat facts {};
  if (::fstat(file.get(), &facts) != 0) fail("opening", path, errno);
  if (S_ISDIR(facts.st_mode)) {
    throw Error(ErrorCode::kInvalidArgument, format("{} is a folder, not a file", path));
  }
  if (!S_ISREG(facts.st_mode)) {
    throw Error(ErrorCode::kInvalidArgument, format("{} is not a regular file", path));
  }
  STRATA_CHECK(facts.st_size >= 0);
  // With it io_uring gives up reads of a drive that cannot take them at once, as encrypted ones do.
  if (const int flags = ::fcntl(file.get(), F_GETFL); flags >= 0) {
    static_cast<void>(::fcntl(file.get(), F_SETFL, flags & ~O_NONBLOCK));
  }
  return {std::move(file), static_cast<uint64_t>(facts.st_size),
          format("{}:{}:{}:{}.{:09}", facts.st_dev, facts.st_ino, facts.st_size,
                 facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec)};
}

}  // namespace

OpenedFile open_for_reading(const std::string& path) {
  // O_NONBLOCK: opening a pipe without a writer would wait for ever, before we see what it is.
  Descriptor file = open_descriptor(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (!file) fail("opening", path, errno);
  return look_at(std::move(file), path);
}

OpenedFile open_direct(const std::string& path, bool& direct) {
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  Descriptor file = open_descriptor(path.c_str(), kFlags | O_DIRECT);
  direct = static_cast<bool>(file);
  if (!direct && errno == EINVAL) file = open_descriptor(path.c_str(), kFlags);
  if (!file) fail("opening", path, errno);
  return look_at(std::move(file), path);
}

size_t read_some(const Descriptor& file, uint64_t offset, std::span<std::byte> out,
                 const std::string& path) {
  static_assert(sizeof(off_t) == 8, "files of more than 2 GiB need 64-bit offsets");
  ssize_t got = -1;
  do {
    got = ::pread(file.get(), out.data(), std::min(out.size(), kMaxCallBytes),
                  static_cast<off_t>(offset));
  } while (got < 0 && errno == EINTR);
  if (got < 0) {
    throw Error(ErrorCode::kIo, format("{}: reading {} bytes at {}: {}", path, out.size(), offset,
                                       describe(errno)));
  }
  return static_cast<size_t>(got);
}

void write_all(const Descriptor& file, std::span<const std::byte> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(file.get(), bytes.data(), std::min(bytes.size(), kMaxCallBytes));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      throw Error(ErrorCode::kIo, format("writing {}: {}", path, describe(errno)));
    }
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
}

void sync(const Descriptor& file, const std::string& path) {
  if (::fsync(file.get()) != 0) {
    throw Error(ErrorCode::kIo, format("writing {} to disk: {}", path, describe(errno)));
  }
}

void rename_over(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) {
    throw Error(ErrorCode::kIo, format("renaming {} to {}: {}", from, to, describe(errno)));
  }
  // The new name outlives a power cut only once the folder is on the disk. Some file systems
  // cannot do that; the file itself is complete, so it is no error.
  const std::string folder = folder_of(to);
  const Descriptor handle =
      open_descriptor(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (handle) static_cast<void>(::fsync(handle.get()));
}

void remove_quietly(const std::string& path) noexcept { ::unlink(path.c_str()); }

uint64_t page_bytes() {
  static const uint64_t bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

void advise_pages(std::span<const std::byte> bytes, PageAdvice advice) {
  if (bytes.empty()) return;
  int flag = MADV_NORMAL;
  switch (advice) {
    case PageAdvice::kNormal:
      break;
    case PageAdvice::kSequential:
      flag = MADV_SEQUENTIAL;
      break;
    case PageAdvice::kRandom:
      flag = MADV_RANDOM;
      break;
    case PageAdvice::kWillNeed:
      flag = MADV_WILLNEED;
      break;
    case PageAdvice::kDontNeed:
      flag = MADV_DONTNEED;
      break;
  }
  static_cast<void>(::madvise(const_cast<std::byte*>(bytes.data()), bytes.size(), flag));
}

void drop_from_cache(const Descriptor& file, uint64_t offset, uint64_t n_bytes) {
  static_cast<void>(::posix_fadvise(file.get(), static_cast<off_t>(offset),
                                    static_cast<off_t>(n_bytes), POSIX_FADV_DONTNEED));
}

}  // namespace os
}  // namespace strata::io
