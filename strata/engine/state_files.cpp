#include "strata/engine/state_files.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <system_error>
#include <utility>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/base/log.h"
#include "strata/base/random_bits.h"

namespace strata::engine {
namespace {

namespace fs = std::filesystem;

constexpr std::array<char, 8> kMagic = {'s', 't', 'r', 'a', 't', 'a', 's', '1'};
constexpr const char* kExtension = ".state";

struct Header {
  std::array<char, 8> magic = kMagic;
  uint64_t fingerprint = 0;
  uint64_t hash = 0;  // of all that follows the header
  // Of the trunk, then of the draft layer.
  std::array<uint64_t, 2> n_ids{}, recurrent_bytes{}, cell_bytes{};

  uint64_t body_bytes() const {
    uint64_t bytes = 0;
    for (size_t i = 0; i < 2; ++i) bytes += 4 * n_ids[i] + recurrent_bytes[i] + cell_bytes[i];
    return bytes;
  }
  // Before sizes are added up: none is larger than the file.
  bool fits(uint64_t file_bytes) const {
    for (size_t i = 0; i < 2; ++i) {
      if (n_ids[i] > file_bytes || recurrent_bytes[i] > file_bytes || cell_bytes[i] > file_bytes) {
        return false;
      }
    }
    return sizeof(Header) + body_bytes() == file_bytes;
  }
};
static_assert(std::is_trivially_copyable_v<Header>);

// Fast enough for gigabytes; against accidents, not against forgers.
class BodyHash {
 public:
  void add(const void* data, size_t n) {
    const auto* at = static_cast<const unsigned char*>(data);
    for (; n >= 8; at += 8, n -= 8) {
      uint64_t word;
      std::memcpy(&word, at, 8);
      mix(word);
    }
    uint64_t last = n;
    for (size_t i = 0; i < n; ++i) last = last << 8 | at[i];
    mix(last);
  }
  uint64_t value() const { return random_bits(value_, 1); }

 private:
  void mix(uint64_t word) {
    value_ = (value_ ^ word) * 0x9E3779B97F4A7C15u;
    value_ ^= value_ >> 29;
  }
  uint64_t value_ = 0x5851F42D4C957F2Du;
};

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

bool get(std::istream& in, void* to, uint64_t n) {
  return static_cast<bool>(in.read(static_cast<char*>(to), static_cast<std::streamsize>(n)));
}

// A header that belongs to its file; why not otherwise.
std::string read_header(std::istream& in, uint64_t file_bytes, uint64_t fingerprint,
                        Header& header) {
  if (!get(in, &header, sizeof header) || header.magic != kMagic) return "is none of this version";
  if (header.fingerprint != fingerprint) return "belongs to another model or other options";
  if (!header.fits(file_bytes) || header.n_ids[0] == 0) return "is cut or damaged";
  return {};
}

}  // namespace

StateFiles::StateFiles(std::string folder, uint64_t fingerprint)
    : folder_(std::move(folder)), fingerprint_(fingerprint) {
  std::error_code error;
  fs::create_directories(folder_, error);
  std::vector<std::pair<fs::file_time_type, File>> found;
  for (const fs::directory_entry& each : fs::directory_iterator(folder_, error)) {
    if (each.path().extension() != kExtension) continue;
    std::error_code ignored;
    std::ifstream in(each.path(), std::ios::binary);
    Header header;
    std::string why = read_header(in, each.file_size(ignored), fingerprint_, header);
    File file{.path = each.path()};
    if (why.empty()) {
      file.ids.resize(header.n_ids[0]);
      if (!get(in, file.ids.data(), 4 * header.n_ids[0])) why = "cannot be read";
    }
    if (!why.empty()) {
      log_info(format("kept state {} is not used: it {}", each.path().filename().string(), why));
      continue;
    }
    found.emplace_back(each.last_write_time(ignored), std::move(file));
  }
  if (error) {
    throw Error(ErrorCode::kIo,
                format("the folder of the prompt cache {}: {}", folder_.string(), error.message()));
  }
  std::ranges::sort(found, {}, [](const auto& each) { return each.first; });
  for (auto& each : found) {
    each.second.used = ++now_;
    files_.push_back(std::move(each.second));
  }
}

bool StateFiles::has(std::span<const int32_t> ids) const {
  return std::ranges::any_of(files_,
                             [&](const File& file) { return std::ranges::equal(file.ids, ids); });
}

std::optional<size_t> StateFiles::find(std::span<const int32_t> ids, size_t least) const {
  std::optional<size_t> best;
  for (size_t i = 0; i < files_.size(); ++i) {
    const std::vector<int32_t>& own = files_[i].ids;
    if (own.size() <= least || own.size() >= ids.size()) continue;
    if (!std::ranges::equal(own, ids.first(own.size()))) continue;
    least = own.size();
    best = i;
  }
  return best;
}

std::optional<StateFiles::State> StateFiles::read(size_t index) {
  File& file = files_[index];
  file.used = ++now_;
  std::error_code error;
  const uint64_t size = fs::file_size(file.path, error);
  std::ifstream in(file.path, std::ios::binary);
  Header header;
  std::string why = error ? "is gone" : read_header(in, size, fingerprint_, header);
  State state;
  if (why.empty()) {
    BodyHash hash;
    bool whole = true;
    Part* const parts[] = {&state.trunk, &state.draft};
    for (size_t i = 0; i < 2; ++i) {
      parts[i]->ids.resize(header.n_ids[i]);
      parts[i]->recurrent.resize(header.recurrent_bytes[i]);
      parts[i]->cells.resize(header.cell_bytes[i]);
      whole = whole && get(in, parts[i]->ids.data(), 4 * header.n_ids[i]) &&
              get(in, parts[i]->recurrent.data(), header.recurrent_bytes[i]) &&
              get(in, parts[i]->cells.data(), header.cell_bytes[i]);
      hash.add(parts[i]->ids.data(), 4 * header.n_ids[i]);
      hash.add(parts[i]->recurrent.data(), header.recurrent_bytes[i]);
      hash.add(parts[i]->cells.data(), header.cell_bytes[i]);
    }
    if (!whole || hash.value() != header.hash || state.trunk.ids != file.ids) why = "is damaged";
  }
  if (why.empty()) return state;
  log_warning(format("kept state {} is not used: it {}", file.path.filename().string(), why));
  files_.erase(files_.begin() + static_cast<std::ptrdiff_t>(index));
  return std::nullopt;
}

void StateFiles::drop_oldest() {
  const auto oldest = std::ranges::min_element(files_, {}, &File::used);
  std::error_code ignored;
  fs::remove(oldest->path, ignored);
  files_.erase(oldest);
}

void StateFiles::write(const State& state) {
  Header header{.fingerprint = fingerprint_};
  BodyHash hash;
  std::vector<std::span<const std::byte>> body;
  const Part* const parts[] = {&state.trunk, &state.draft};
  for (size_t i = 0; i < 2; ++i) {
    header.n_ids[i] = parts[i]->ids.size();
    header.recurrent_bytes[i] = parts[i]->recurrent.size();
    header.cell_bytes[i] = parts[i]->cells.size();
    for (const auto& bytes :
         {bytes_of(parts[i]->ids), bytes_of(parts[i]->recurrent), bytes_of(parts[i]->cells)}) {
      body.push_back(bytes);
      hash.add(bytes.data(), bytes.size());
    }
  }
  header.hash = hash.value();
  BodyHash name;
  name.add(state.trunk.ids.data(), 4 * state.trunk.ids.size());
  const fs::path path =
      folder_ / format("{:016x}-{:016x}{}", fingerprint_, name.value(), kExtension);
  fs::path unfinished = path;
  unfinished += ".new";
  std::error_code error;
  {
    std::ofstream out(unfinished, std::ios::binary | std::ios::trunc);
    out.write(reinterpret_cast<const char*>(&header), sizeof header);
    for (const std::span<const std::byte> bytes : body) {
      out.write(reinterpret_cast<const char*>(bytes.data()),
                static_cast<std::streamsize>(bytes.size()));
    }
    out.close();
    if (!out) error = std::make_error_code(std::errc::io_error);
  }
  if (!error) fs::rename(unfinished, path, error);
  if (error) {
    log_warning(format("a state could not be written to {}: {}", path.string(), error.message()));
    fs::remove(unfinished, error);
    return;
  }
  files_.push_back({.path = path, .ids = state.trunk.ids, .used = ++now_});
  while (files_.size() > kMostFiles) drop_oldest();
}

}  // namespace strata::engine
