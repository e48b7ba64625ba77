#include "strata/gguf/shards.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/gguf/layout.h"
#include "strata/gguf/writer.h"

namespace strata::gguf {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExtension = ".gguf";

bool is_missing_or_empty(const std::string& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  // A refusal other than "not there" is left to the opening, which says it better.
  if (error) return error == std::errc::no_such_file_or_directory;
  return size == 0;
}

std::vector<std::string> expected_paths(const ShardName& name) {
  std::vector<std::string> paths;
  paths.reserve(static_cast<size_t>(name.count));
  for (int no = 0; no < name.count; ++no) paths.push_back(shard_path(name.base, no, name.count));
  return paths;
}

// One a line. A name may claim a hundred thousand shards: not all of them are listed.
std::string lines(const std::vector<std::string>& items) {
  constexpr size_t kShown = 100;
  std::string text;
  for (size_t i = 0; i < std::min(items.size(), kShown); ++i) text += "\n  " + items[i];
  if (items.size() > kShown) text += format("\n  ... {} more", items.size() - kShown);
  return text;
}

void check_none_missing(const std::vector<std::string>& paths) {
  std::vector<std::string> missing;
  for (const std::string& path : paths) {
    if (!is_missing_or_empty(path)) continue;
    std::error_code error;
    missing.push_back(path + (fs::exists(path, error) ? " (empty)" : " (missing)"));
  }
  if (missing.empty()) return;
  throw Error(ErrorCode::kNotFound,
              format("{} of the {} shards of the model are missing or empty; download them into "
                     "the same folder:{}",
                     missing.size(), paths.size(), lines(missing)));
}

// The files of a folder with the extension, sorted, so that no result depends on the order in which
// the file system lists them.
std::vector<std::string> list_folder(const fs::path& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  fs::directory_iterator it(folder.empty() ? fs::path(".") : folder, error);
  if (error) {
    throw Error(ErrorCode::kIo,
                format("listing the folder {}: {}", folder.string(), error.message()));
  }
  for (const fs::directory_iterator end; it != end && !error; it.increment(error)) {
    std::string path = (folder / it->path().filename()).string();
    const std::string file = it->path().filename().string();
    if (file.ends_with(kExtension) && !file.starts_with('.')) paths.push_back(std::move(path));
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

ShardFile open_shard(const std::string& path, const OpenOptions& options) {
  return read_shard(io::open_source(path, options.access), options.header_only);
}

// The header of a file that is only looked at: no answer if it cannot be read.
std::optional<ShardFile> try_read(const std::string& path) {
  try {
    return open_shard(path, {.access = io::Access::kPlain, .header_only = true});
  } catch (const Error&) {
    return {};
  }
}

bool same_model(const Split& a, const Split& b) {
  return a.count == b.count && a.n_tensors == b.n_tensors;
}

// For shards that do not have the usual names: all files of the folder that say they belong to a
// model of as many shards and tensors.
std::vector<std::string> find_siblings(const std::string& path, const Split& split) {
  std::vector<std::string> found = {path};
  for (const std::string& other : list_folder(fs::path(path).parent_path())) {
    std::error_code error;
    if (fs::equivalent(other, path, error)) continue;
    const auto file = try_read(other);
    if (file && file->header.split && same_model(*file->header.split, split)) {
      found.push_back(other);
    }
  }
  return found;
}

std::vector<ShardFile> read_all(const std::vector<std::string>& paths, const OpenOptions& options) {
  std::vector<ShardFile> files;
  files.reserve(paths.size());
  for (const std::string& path : paths) files.push_back(open_shard(path, options));
  return files;
}

std::vector<ShardFile> find_from_file(const std::string& path, const OpenOptions& options) {
  const auto name = parse_shard_path(path);
  // A shard that is itself absent or empty: tell all that are.
  if (name && is_missing_or_empty(path)) check_none_missing(expected_paths(*name));

  ShardFile file = open_shard(path, options);
  if (!file.header.split) {
    std::vector<ShardFile> files;
    files.push_back(std::move(file));
    return files;
  }
  const Split split = *file.header.split;
  if (name && static_cast<uint64_t>(name->count) == split.count) {
    const auto paths = expected_paths(*name);
    check_none_missing(paths);
    return arrange_shards(read_all(paths, options));
  }
  return arrange_shards(read_all(find_siblings(path, split), options));
}

// One model of a folder: what to open, and whether it is the vision part of another one.
struct Candidate {
  std::string path;
  bool is_projector;
};

std::vector<Candidate> find_candidates(const std::vector<std::string>& paths) {
  std::map<std::string, Candidate> by_model;
  for (const std::string& path : paths) {
    const auto name = parse_shard_path(path);
    const auto file = try_read(path);
    std::string model = path;
    if (name) {
      model = format("{}/{}", name->base, name->count);
    } else if (file && file->header.split) {
      const Split& split = *file->header.split;
      model = format("/{}/{}", split.count, split.n_tensors.value_or(0));
    }
    bool is_projector = false;
    if (file) {
      const Value* type = file->header.metadata.find("general.architecture");
      const auto* text = type == nullptr ? nullptr : std::get_if<std::string_view>(type);
      is_projector = text != nullptr && *text == "clip";
    }
    by_model.emplace(model, Candidate{path, is_projector});
  }
  std::vector<Candidate> candidates;
  candidates.reserve(by_model.size());
  for (auto& [model, candidate] : by_model) candidates.push_back(std::move(candidate));
  return candidates;
}

std::vector<ShardFile> find_from_folder(const std::string& folder, const OpenOptions& options) {
  auto candidates = find_candidates(list_folder(folder));
  if (candidates.empty()) {
    throw Error(ErrorCode::kNotFound, format("the folder {} has no .gguf file", folder));
  }
  if (candidates.size() > 1) {
    // The vision part lies beside its model and is never the one that is meant.
    std::erase_if(candidates, [](const Candidate& c) { return c.is_projector; });
  }
  if (candidates.size() != 1) {
    std::vector<std::string> paths;
    paths.reserve(candidates.size());
    for (const Candidate& candidate : candidates) paths.push_back(candidate.path);
    throw Error(ErrorCode::kInvalidArgument,
                format("the folder {} has {} models; give one of these files instead:{}", folder,
                       paths.empty() ? "no language" : std::to_string(paths.size()), lines(paths)));
  }
  return find_from_file(candidates.front().path, options);
}

}  // namespace

std::optional<ShardName> parse_shard_path(std::string_view path) {
  // base-NNNNN-of-MMMMM.gguf
  constexpr size_t kDigits = 5;
  constexpr std::string_view kOf = "-of-";
  constexpr size_t kTail = 1 + kDigits + kOf.size() + kDigits + kExtension.size();
  if (path.size() <= kTail || !path.ends_with(kExtension)) return {};
  const std::string_view tail = path.substr(path.size() - kTail);
  const auto number = [](std::string_view digits) {
    int value = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + kDigits, value);
    return error == std::errc() && end == digits.data() + kDigits ? value : -1;
  };
  const int no = number(tail.substr(1, kDigits));
  const int count = number(tail.substr(1 + kDigits + kOf.size(), kDigits));
  if (tail[0] != '-' || tail.substr(1 + kDigits, kOf.size()) != kOf) return {};
  if (no < 1 || count < no) return {};
  return ShardName{std::string(path.substr(0, path.size() - kTail)), no - 1, count};
}

ShardFile read_shard(std::unique_ptr<io::ByteSource> source, bool header_only) {
  Header header = read_header(*source);
  place_tensors(header, *source, header_only);
  return {std::move(source), std::move(header)};
}

std::vector<ShardFile> arrange_shards(std::vector<ShardFile> files) {
  const ShardFile& any = files.front();
  if (!any.header.split && files.size() == 1) return files;
  for (const ShardFile& file : files) {
    if (file.header.split && any.header.split &&
        same_model(*file.header.split, *any.header.split)) {
      continue;
    }
    throw Error(ErrorCode::kCorruptFile,
                format("{} and {} are no shards of one model: split.count or split.tensors.count "
                       "differ or are missing",
                       any.source->name(), file.source->name()));
  }
  const Split split = *any.header.split;
  std::vector<ShardFile> ordered(split.count);
  uint64_t n_tensors = 0;
  for (ShardFile& file : files) {
    ShardFile& place = ordered[file.header.split->no];
    if (place.source != nullptr) {
      throw Error(ErrorCode::kCorruptFile,
                  format("{} and {} both say that they are shard {} of {}; keep the shards of one "
                         "model in a folder of their own, under their original names",
                         place.source->name(), file.source->name(), file.header.split->no + 1,
                         split.count));
    }
    n_tensors += file.header.tensors.size();
    place = std::move(file);
  }
  std::vector<std::string> missing;
  std::string present;
  for (uint64_t no = 0; no < split.count; ++no) {
    if (ordered[no].source == nullptr) {
      missing.push_back(format("shard {} of {}", no + 1, split.count));
    } else {
      present = ordered[no].source->name();
    }
  }
  if (!missing.empty()) {
    throw Error(
        ErrorCode::kNotFound,
        format("{} belongs to a model of {} shards, {} of which are missing in its folder:{}",
               present, split.count, missing.size(), lines(missing)));
  }
  if (split.n_tensors && *split.n_tensors != n_tensors) {
    throw Error(ErrorCode::kCorruptFile,
                format("{}: split.tensors.count is {}, but the {} shards have {} tensors together",
                       ordered[0].source->name(), *split.n_tensors, split.count, n_tensors));
  }
  return ordered;
}

std::vector<ShardFile> find_shards(const std::string& path, const OpenOptions& options) {
  std::error_code error;
  if (fs::is_directory(path, error)) return find_from_folder(path, options);
  return find_from_file(path, options);
}

}  // namespace strata::gguf
