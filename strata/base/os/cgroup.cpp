#include "strata/base/os/cgroup.h"

#include <optional>
#include <sstream>

namespace strata::os {
namespace {

bool list_has(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    if (list.substr(0, end) == word) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

// /proc escapes blanks and the like as a backslash and three octal digits.
std::string unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      int code = 0;
      for (size_t k = 1; k <= 3; ++k) code = code * 8 + (text[i + k] - '0');
      out += static_cast<char>(code);
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

// The group of this process as /proc/self/cgroup names it: lines "id:controllers:path".
std::optional<std::string> own_group(std::string_view text, int version,
                                     std::string_view controller) {
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    if (first == std::string::npos) continue;
    const size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string_view names = std::string_view(line).substr(first + 1, second - first - 1);
    const bool fits = version == 2 ? line.starts_with("0::") : list_has(names, controller);
    if (fits) return line.substr(second + 1);
  }
  return std::nullopt;
}

struct Mount {
  std::string root;  // the group that the mount point shows
  std::string point;
};

// Lines of /proc/self/mountinfo: "id parent dev root point options ... - type source options".
std::optional<Mount> find_mount(std::string_view text, int version, std::string_view controller) {
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream head(line.substr(0, dash)), tail(line.substr(dash + 3));
    std::string id, parent, device, type, source, options;
    Mount mount;
    head >> id >> parent >> device >> mount.root >> mount.point;
    tail >> type >> source >> options;
    const bool fits =
        version == 2 ? type == "cgroup2" : type == "cgroup" && list_has(options, controller);
    if (!fits) continue;
    return Mount{.root = unescape(mount.root), .point = unescape(mount.point)};
  }
  return std::nullopt;
}

std::vector<std::string> dirs_between(const std::string& group, const Mount& mount) {
  // A group outside of what is mounted (a container sees only its own part): all that can be read
  // is the mount point.
  std::string below;
  if (mount.root == "/") {
    below = group;
  } else if (group.starts_with(mount.root + "/")) {
    below = group.substr(mount.root.size());
  }
  if (below == "/" || below.find("/..") != std::string::npos) below.clear();
  std::vector<std::string> dirs;
  while (!below.empty()) {
    dirs.push_back(mount.point + below);
    below.resize(below.rfind('/'));
  }
  dirs.push_back(mount.point);
  return dirs;
}

}  // namespace

CgroupDirs cgroup_dirs(const SystemRoot& root, std::string_view controller) {
  const auto groups = read_text(root, "/proc/self/cgroup");
  const auto mounts = read_text(root, "/proc/self/mountinfo");
  if (!groups || !mounts) return {};
  for (const int version : {1, 2}) {
    const auto group = own_group(*groups, version, controller);
    const auto mount = find_mount(*mounts, version, controller);
    if (group && mount && group->starts_with('/')) {
      return {.version = version, .dirs = dirs_between(*group, *mount)};
    }
  }
  return {};
}

}  // namespace strata::os
