#include "strata/gguf/cursor.h"

#include <algorithm>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/gguf/escape.h"
#include "strata/gguf/header.h"

namespace strata::gguf {
namespace {

// One read for the header of a small file; large enough that the calls do not count for a large
// one.
constexpr size_t kWindowBytes = 256 * 1024;

}  // namespace

Cursor::Cursor(const io::ByteSource& source, Arena& strings) : source_(source), strings_(strings) {}

void Cursor::set_place(std::string_view kind, uint64_t index, std::string_view name) {
  kind_ = kind;
  index_ = index;
  name_ = name;
}

std::string Cursor::place() const {
  if (kind_ == "header") return std::string(kind_);
  if (name_.empty()) return format("{} {}", kind_, index_);
  return format("{} {} ({})", kind_, index_, escaped(name_));
}

void Cursor::fail(std::string_view text) const {
  throw Error(ErrorCode::kCorruptFile, format("{}: {}: {}", source_.name(), place(), text));
}

void Cursor::fail_unsupported(std::string_view text) const {
  throw Error(ErrorCode::kUnsupported, format("{}: {}: {}", source_.name(), place(), text));
}

void Cursor::expect(uint64_t n, uint64_t min_bytes, std::string_view what) const {
  if (n <= remaining() / min_bytes) return;
  fail(
      format("{} {} at byte {} need at least {} bytes each, but the file has only {} bytes more "
             "({} in all): it is cut off or damaged",
             n, what, position_, min_bytes, remaining(), source_.size()));
}

void Cursor::fetch(std::span<std::byte> out, std::string_view what) {
  if (out.size() > remaining()) {
    fail(
        format("{} at byte {} needs {} bytes, but the file ends after {} more ({} in all): it is "
               "cut off or damaged",
               what, position_, out.size(), remaining(), source_.size()));
  }
  if (out.size() > kMaxHeaderBytes - std::min(position_, kMaxHeaderBytes)) {
    fail(format("{} at byte {} needs {} bytes; a header of more than {} bytes is not read", what,
                position_, out.size(), kMaxHeaderBytes));
  }
  while (!out.empty()) {
    if (position_ < window_at_ || position_ >= window_at_ + window_.size()) {
      window_.resize(std::min<uint64_t>(kWindowBytes, remaining()));
      window_at_ = position_;
      source_.read_at(position_, window_);
    }
    const size_t from = position_ - window_at_;
    const size_t n = std::min(out.size(), window_.size() - from);
    std::memcpy(out.data(), window_.data() + from, n);
    out = out.subspan(n);
    position_ += n;
  }
}

std::string_view Cursor::string(std::string_view what, uint64_t max_bytes) {
  const auto n_bytes = scalar<uint64_t>(what);
  if (n_bytes > max_bytes && n_bytes <= remaining()) {
    fail(format("{} at byte {} has {} bytes; at most {} are read", what, position_, n_bytes,
                max_bytes));
  }
  const auto copy = bytes(n_bytes, what);
  return {reinterpret_cast<const char*>(copy.data()), copy.size()};
}

std::span<const std::byte> Cursor::bytes(uint64_t n_bytes, std::string_view what) {
  // Judged before memory is taken for it.
  if (n_bytes > remaining() || n_bytes > kMaxHeaderBytes) {
    fail(format("{} at byte {} needs {} bytes, but the file has only {} bytes more ({} in all)",
                what, position_, n_bytes, std::min(remaining(), kMaxHeaderBytes), source_.size()));
  }
  const auto copy = strings_.allocate(n_bytes);
  fetch(copy, what);
  return copy;
}

}  // namespace strata::gguf
