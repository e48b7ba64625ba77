#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/io/os/file_descriptor.h"

namespace strata::io::os {
namespace {

constexpr std::string_view kSuffix = ".tmp";

// What temporary files for one name begin with. Not the name itself, which may already have the
// longest length the system allows.
std::string prefix_of(std::string_view name) {
  uint32_t hash = 2166136261u;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return format(".strata-{:08x}-", hash);
}

bool lock(const Descriptor& file) { return ::flock(file.get(), LOCK_EX | LOCK_NB) == 0; }

// Removes what has no living writer.
void remove_orphans(const std::string& folder, std::string_view prefix) {
  const std::unique_ptr<DIR, int (*)(DIR*)> list(::opendir(folder.empty() ? "." : folder.c_str()),
                                                 ::closedir);
  if (!list) return;
  while (const dirent* entry = ::readdir(list.get())) {
    const std::string_view name = entry->d_name;
    if (!name.starts_with(prefix) || !name.ends_with(kSuffix)) continue;
    const std::string path = folder + std::string(name);
    const Descriptor file =
        strata::os::open_descriptor(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file && lock(file)) ::unlink(path.c_str());
  }
}

// Somebody else's remove_orphans may have come between creating and locking.
bool still_there(const Descriptor& file) {
  struct stat facts {};
  return ::fstat(file.get(), &facts) == 0 && facts.st_nlink > 0;
}

}  // namespace

Descriptor create_beside(const std::string& path, std::string& created) {
  const size_t slash = path.rfind('/');
  const size_t name_at = slash == std::string::npos ? 0 : slash + 1;
  const std::string folder = path.substr(0, name_at);
  const std::string prefix = prefix_of(std::string_view(path).substr(name_at));
  remove_orphans(folder, prefix);
  std::random_device random;
  int error = EEXIST;
  for (int attempt = 0; attempt < 100 && error == EEXIST; ++attempt) {
    created = format("{}{}{:08x}{}", folder, prefix, random(), kSuffix);
    Descriptor file =
        strata::os::open_descriptor(created.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (!file) {
      error = errno;
      continue;
    }
    // Where a file system knows no locks the file is used without one.
    if (!lock(file) && errno == EWOULDBLOCK) continue;
    if (still_there(file)) return file;
  }
  throw Error(error == ENOENT || error == ENOTDIR ? ErrorCode::kNotFound : ErrorCode::kIo,
              format("creating {}: {}", path, strata::os::describe(error)));
}

}  // namespace strata::io::os
