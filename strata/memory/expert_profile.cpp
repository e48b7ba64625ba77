#include "strata/memory/expert_profile.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numeric>
#include <span>
#include <type_traits>

#include "strata/base/check.h"
#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/base/log.h"
#include "strata/io/file.h"
#include "strata/io/output.h"

namespace strata::memory {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr char kMagic[4] = {'S', 'T', 'R', 'P'};
constexpr uint32_t kVersion = 1;
constexpr uint32_t kMaxLayers = 1 << 12, kMaxExperts = 1 << 16;

struct Header {
  char magic[4];
  uint32_t version, n_layers, n_experts, slots, n_ranked;
};
static_assert(sizeof(Header) == 24 && sizeof(ExpertPlace) == 4);

size_t cells(int n_layers, int n_experts) {
  return static_cast<size_t>(n_layers) * static_cast<size_t>(n_experts);
}

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw Error(ErrorCode::kCorruptFile, format("expert profile {}: {}", path, why));
}

Header read_header(const io::ByteSource& file) {
  Header header{};
  if (file.size() < sizeof(header)) {
    refuse(file.name(), format("{} bytes, its header alone has {}", file.size(), sizeof(header)));
  }
  file.read_at(0, std::as_writable_bytes(std::span(&header, 1)));
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0) {
    refuse(file.name(), "it does not begin with STRP, so it is something else");
  }
  if (header.version != kVersion) {
    refuse(file.name(), format("its version is {}, {} is known", header.version, kVersion));
  }
  if (header.n_layers == 0 || header.n_layers > kMaxLayers || header.n_experts == 0 ||
      header.n_experts > kMaxExperts) {
    refuse(file.name(), format("it claims {} layers of {} experts; at most {} of {} can be",
                               header.n_layers, header.n_experts, kMaxLayers, kMaxExperts));
  }
  const uint64_t n_cells = uint64_t{header.n_layers} * header.n_experts;
  if (header.n_ranked > n_cells) {
    refuse(file.name(), format("it ranks {} experts of {}", header.n_ranked, n_cells));
  }
  const uint64_t wanted = sizeof(header) + 4 * (uint64_t{header.n_ranked} + n_cells);
  if (file.size() != wanted) {
    refuse(file.name(),
           format("{} layers of {} experts with {} ranked take {} bytes, it has {}",
                  header.n_layers, header.n_experts, header.n_ranked, wanted, file.size()));
  }
  return header;
}

}  // namespace

ExpertProfile ExpertProfile::unknown(int n_layers, int n_experts) {
  return from_counts(n_layers, n_experts, std::vector<int32_t>(cells(n_layers, n_experts)));
}

ExpertProfile ExpertProfile::from_counts(int n_layers, int n_experts, std::vector<int32_t> counts) {
  STRATA_CHECK(counts.size() == cells(n_layers, n_experts));
  ExpertProfile profile{.n_layers = n_layers, .n_experts = n_experts};
  profile.ranked.reserve(counts.size());
  for (int e = 0; e < n_experts; ++e) {
    for (int layer = 0; layer < n_layers; ++layer) {
      profile.ranked.push_back({static_cast<uint16_t>(layer), static_cast<uint16_t>(e)});
    }
  }
  const auto count = [&](const ExpertPlace& p) {
    return counts[size_t{p.layer} * static_cast<size_t>(n_experts) + p.expert];
  };
  std::ranges::stable_sort(profile.ranked, std::ranges::greater{}, count);
  profile.counts = std::move(counts);
  return profile;
}

ExpertProfile read_expert_profile(const std::string& path) {
  const io::File file = io::File::open(path);
  const Header header = read_header(file);
  ExpertProfile profile{.n_layers = static_cast<int>(header.n_layers),
                        .n_experts = static_cast<int>(header.n_experts)};
  const size_t n_cells = cells(profile.n_layers, profile.n_experts);
  profile.ranked.resize(header.n_ranked);
  profile.counts.resize(n_cells);
  file.read_at(sizeof(header), std::as_writable_bytes(std::span(profile.ranked)));
  file.read_at(sizeof(header) + sizeof(ExpertPlace) * profile.ranked.size(),
               std::as_writable_bytes(std::span(profile.counts)));
  for (size_t i = 0; i < n_cells; ++i) {
    if (profile.counts[i] >= 0) continue;
    refuse(path, format("expert {} of layer {} was chosen {} times", i % header.n_experts,
                        i / header.n_experts, profile.counts[i]));
  }
  std::vector<bool> seen(n_cells);
  for (size_t i = 0; i < profile.ranked.size(); ++i) {
    const ExpertPlace p = profile.ranked[i];
    if (p.layer >= header.n_layers || p.expert >= header.n_experts) {
      refuse(path, format("rank {} is expert {} of layer {}; it has {} layers of {} experts", i,
                          p.expert, p.layer, header.n_layers, header.n_experts));
    }
    const size_t cell = size_t{p.layer} * header.n_experts + p.expert;
    if (seen[cell]) {
      refuse(path, format("expert {} of layer {} is ranked twice", p.expert, p.layer));
    }
    seen[cell] = true;
  }
  return profile;
}

void write_expert_profile(const std::string& path, const ExpertProfile& profile) {
  STRATA_CHECK(profile.counts.size() == cells(profile.n_layers, profile.n_experts));
  Header header{.version = kVersion,
                .n_layers = static_cast<uint32_t>(profile.n_layers),
                .n_experts = static_cast<uint32_t>(profile.n_experts),
                .slots = 0,
                .n_ranked = static_cast<uint32_t>(profile.ranked.size())};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  io::write_atomically(path, [&](io::Output& out) {
    out.write(bytes_of(header));
    out.write(std::as_bytes(std::span(profile.ranked)));
    out.write(std::as_bytes(std::span(profile.counts)));
  });
}

std::optional<ExpertProfile> usable_expert_profile(const std::string& path, int n_layers,
                                                   int n_experts) {
  try {
    ExpertProfile profile = read_expert_profile(path);
    if (profile.n_layers == n_layers && profile.n_experts == n_experts) return profile;
    refuse(path, format("made for {} layers of {} experts, this model has {} of {}",
                        profile.n_layers, profile.n_experts, n_layers, n_experts));
  } catch (const Error& e) {
    log_warning(format("{}; going on without a profile, and the file stays as it is", e.what()));
  }
  return std::nullopt;
}

}  // namespace strata::memory
