#include "strata/gguf/signature.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <string_view>

#include "strata/base/format.h"
#include "strata/gguf/escape.h"

namespace strata::gguf {
namespace {

using std::string_view_literals::operator""sv;

struct Known {
  size_t at;
  std::string_view bytes;
  std::string_view text;
};

// First match wins.
const std::array kKnown = {
    Known{0, "version https://git-lfs"sv,
          "looks like a git-lfs pointer, a text that stands for the real file; fetch that one with "
          "`git lfs pull`, or download it by its link"},
    Known{
        0, "PK\x03\x04"sv,
        "looks like a ZIP archive (or a PyTorch checkpoint, which is one); a GGUF file is needed: "
        "unpack it if a .gguf file is inside, convert it otherwise"},
    Known{0, "\x1f\x8b"sv, "looks like a gzip archive; unpack it first"},
    Known{0, "\x28\xb5\x2f\xfd"sv, "looks like a zstd archive; unpack it first"},
    Known{0, "BZh"sv, "looks like a bzip2 archive; unpack it first"},
    Known{0,
          "\xfd"
          "7zXZ"sv,
          "looks like an xz archive; unpack it first"},
    Known{0, "7z\xbc\xaf\x27\x1c"sv, "looks like a 7z archive; unpack it first"},
    Known{257, "ustar"sv, "looks like a tar archive; unpack it first"},
    Known{0, "\x89HDF"sv, "looks like an HDF5 file; convert the model to GGUF"},
    Known{0, "tjgg"sv, "looks like a GGML file from before GGUF; convert the model again to GGUF"},
    Known{0, "lmgg"sv, "looks like a GGML file from before GGUF; convert the model again to GGUF"},
    Known{0, "fmgg"sv, "looks like a GGML file from before GGUF; convert the model again to GGUF"},
};

bool is_safetensors(std::string_view text) {
  // A 64-bit length of the header, then the header, a JSON object.
  if (text.size() < 9 || text[8] != '{') return false;
  uint64_t header = 0;
  std::memcpy(&header, text.data(), 8);
  return header >= 2 && header < (1u << 30);
}

bool is_pickle(std::string_view text) {
  return text.size() >= 2 && text[0] == '\x80' && text[1] >= 2 && text[1] <= 5;
}

std::string_view skip_space(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // byte-order mark
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text[0])) != 0) {
    text.remove_prefix(1);
  }
  return text;
}

std::string what_it_looks_like(std::string_view text, uint64_t file_bytes) {
  for (const Known& known : kKnown) {
    if (text.size() > known.at && text.substr(known.at).starts_with(known.bytes)) {
      return std::string(known.text);
    }
  }
  if (is_safetensors(text)) {
    return "looks like a safetensors file; convert the model to GGUF";
  }
  if (is_pickle(text)) return "looks like a Python pickle; convert the model to GGUF";
  const std::string_view word = skip_space(text);
  if (word.starts_with('<')) {
    return "looks like a web page (HTML or XML), often the error page of a download; download the "
           "file itself";
  }
  if (word.starts_with('{') || word.starts_with('[')) {
    return "looks like a JSON text, not a model";
  }
  if (std::all_of(text.begin(), text.end(), [](char c) { return c == 0; })) {
    return "starts with zeros only, like a download that has reserved its space and not finished; "
           "download it again";
  }
  if (file_bytes < 24) return "is too short to be a GGUF file";
  return format("starts with \"{}\" and not with \"GGUF\"", escaped(text.substr(0, 4)));
}

}  // namespace

std::optional<Refusal> signature(std::span<const std::byte> first, uint64_t file_bytes) {
  const std::string_view text(reinterpret_cast<const char*>(first.data()), first.size());
  if (text.empty()) {
    return Refusal{ErrorCode::kCorruptFile, "is empty (0 bytes); download it again"};
  }
  constexpr auto kOtherOrder =
      "is a GGUF file in the other byte order (big-endian); only little-endian files are read: "
      "get or convert to such a file";
  if (text.starts_with("FUGG")) return Refusal{ErrorCode::kUnsupported, kOtherOrder};
  if (!text.starts_with("GGUF")) {
    return Refusal{ErrorCode::kCorruptFile,
                   "is not a GGUF file: it " + what_it_looks_like(text, file_bytes)};
  }
  if (text.size() < 8) return {};  // the reader says where the file ends
  uint32_t version = 0;
  std::memcpy(&version, text.data() + 4, 4);
  if (version == 2 || version == 3) return {};
  if (version != 0 && (version & 0xFFFF) == 0) {
    return Refusal{ErrorCode::kUnsupported, kOtherOrder};
  }
  if (version == 1) {
    return Refusal{
        ErrorCode::kUnsupported,
        "is a GGUF file of version 1, which is not read (2 and 3 are); convert the model "
        "again with a current tool"};
  }
  return Refusal{version == 0 ? ErrorCode::kCorruptFile : ErrorCode::kUnsupported,
                 format("is a GGUF file of version {}, which is not known (2 and 3 are){}", version,
                        version == 0 ? "" : "; a newer strata may read it")};
}

}  // namespace strata::gguf
