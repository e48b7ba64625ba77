#include "strata/gguf/layout.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/gguf/escape.h"

namespace strata::gguf {
namespace {

// Another branch of the ecosystem gave the id of Q2_0 to blocks of 128 values in 34 bytes. Nothing
// in the table tells the two apart but the space that a tensor has.
constexpr uint64_t kOtherQ2Values = 128;
constexpr uint64_t kOtherQ2Bytes = 34;

// Inputs are below 2^63 and the alignment below 2^21: no overflow.
uint64_t align_up(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

class Layout {
 public:
  Layout(Header& header, const io::ByteSource& source)
      : header_(header), source_(source), data_start_(align_up(header.n_bytes, header.alignment)) {}

  void check(bool header_only);

 private:
  [[noreturn]] void fail(const std::string& text) const {
    throw Error(ErrorCode::kCorruptFile, format("{}: {}", source_.name(), text));
  }
  std::string shown(const Tensor& tensor) const {
    return format("tensor {} ({} {})", escaped(tensor.name), tensor.type->name,
                  shape_text(tensor.shape()));
  }
  void check_inside(const std::vector<Tensor*>& by_offset, uint64_t size) const;
  void check_other_q2(const Tensor& tensor, uint64_t space) const;
  void check_gap(const Tensor* before, const Tensor* after, uint64_t end, uint64_t next) const;
  void check_rest(uint64_t end) const;
  bool is_gguf_at(uint64_t offset) const;

  Header& header_;
  const io::ByteSource& source_;
  uint64_t data_start_;
};

// The file's end comes first: a cut-off file is the usual damage, and its message should not be
// about anything else.
void Layout::check_inside(const std::vector<Tensor*>& by_offset, uint64_t size) const {
  const Tensor* first_out = nullptr;
  uint64_t needed = 0;
  for (const Tensor* tensor : by_offset) {
    constexpr uint64_t kMax = uint64_t{1} << 63;
    // n_bytes is below 2^63 and data_start_ small.
    if (tensor->offset >= kMax - data_start_ ||
        tensor->n_bytes > kMax - data_start_ - tensor->offset) {
      fail(format("{}: {} bytes at offset {} of the data are more than a file can have",
                  shown(*tensor), tensor->n_bytes, tensor->offset));
    }
    const uint64_t end = data_start_ + tensor->offset + tensor->n_bytes;
    needed = std::max(needed, end);
    if (end > size && first_out == nullptr) first_out = tensor;
  }
  if (first_out == nullptr) return;
  const uint64_t begin = data_start_ + first_out->offset;
  fail(
      format("{} needs bytes {} to {} of the file, which has {}: {} bytes of {} are missing (a "
             "download or copy that broke off?{})",
             shown(*first_out), begin, begin + first_out->n_bytes, size, needed - size, needed,
             size <= data_start_ ? " A header alone can be inspected and planned with" : ""));
}

void Layout::check_other_q2(const Tensor& tensor, uint64_t space) const {
  if (tensor.type->type != quant::Type::kQ2_0) return;
  if (static_cast<uint64_t>(tensor.n_columns()) % kOtherQ2Values != 0) return;
  const uint64_t other = tensor.n_values / kOtherQ2Values * kOtherQ2Bytes;
  if (space < other || space >= other + header_.alignment || space >= tensor.n_bytes) return;
  throw Error(ErrorCode::kUnsupported,
              format("{}: {} has {} bytes, which is Q2_0 with blocks of 128 values in 34 bytes, a "
                     "form of another branch under the same id; only blocks of 64 values in 18 "
                     "bytes ({} bytes here) are handled: convert the model again",
                     source_.name(), shown(tensor), space, tensor.n_bytes));
}

// end and next count from the start of the file.
void Layout::check_gap(const Tensor* before, const Tensor* after, uint64_t end,
                       uint64_t next) const {
  if (next < end) {
    fail(format("{} begins at byte {} inside {}, which ends at byte {}", shown(*after), next,
                shown(*before), end));
  }
  // A gap means that the table describes something else than the file holds: a wrong block size, or
  // a wrong shape.
  if (next - end >= header_.alignment) {
    const auto from = before == nullptr ? std::string("the header") : shown(*before);
    fail(format("{} bytes after {} (ends at byte {}) belong to no tensor; {} begins at byte {}",
                next - end, from, end, shown(*after), next));
  }
}

bool Layout::is_gguf_at(uint64_t offset) const {
  if (offset > source_.size() || source_.size() - offset < 4) return false;
  std::array<std::byte, 4> magic{};
  source_.read_at(offset, magic);
  return std::memcmp(magic.data(), "GGUF", magic.size()) == 0;
}

void Layout::check_rest(uint64_t end) const {
  const uint64_t padded = align_up(end, header_.alignment);
  if (source_.size() <= padded && !is_gguf_at(end)) return;
  const uint64_t extra = source_.size() - end;
  if (is_gguf_at(end) || is_gguf_at(padded)) {
    const auto who = header_.split ? format("is shard {} of {} with trailing data",
                                            header_.split->no + 1, header_.split->count)
                                   : std::string("has trailing data");
    fail(
        format("the file {}: after its end at byte {} another GGUF file begins ({} bytes more). "
               "Shards must stay separate files in one folder; do not join them",
               who, end, extra));
  }
  fail(
      format("{} bytes after the end of the last tensor (byte {}) belong to nothing; the file has "
             "{} bytes and should have {}",
             extra, end, source_.size(), padded));
}

void Layout::check(bool header_only) {
  std::vector<Tensor*> by_offset;
  by_offset.reserve(header_.tensors.size());
  for (Tensor& tensor : header_.tensors) by_offset.push_back(&tensor);
  std::stable_sort(by_offset.begin(), by_offset.end(),
                   [](const Tensor* a, const Tensor* b) { return a->offset < b->offset; });

  // As if the data were there.
  const bool absent = header_only && !by_offset.empty() && source_.size() <= data_start_;
  const uint64_t size = absent ? uint64_t{1} << 63 : source_.size();
  // The Q2_0 forms before all else: with the wrong one everything else looks broken, too.
  for (size_t i = 0; i < by_offset.size(); ++i) {
    const uint64_t data_bytes = size - std::min(size, data_start_);
    const uint64_t next = i + 1 < by_offset.size() ? by_offset[i + 1]->offset : data_bytes;
    const uint64_t offset = by_offset[i]->offset;
    if (next >= offset) check_other_q2(*by_offset[i], next - offset);
  }
  check_inside(by_offset, size);

  uint64_t end = by_offset.empty() ? header_.n_bytes : data_start_;
  const Tensor* before = nullptr;
  for (Tensor* tensor : by_offset) {
    tensor->offset += data_start_;
    check_gap(before, tensor, end, tensor->offset);
    end = tensor->offset + tensor->n_bytes;
    before = tensor;
  }
  if (!absent) check_rest(end);
}

}  // namespace

void place_tensors(Header& header, const io::ByteSource& source, bool header_only) {
  Layout(header, source).check(header_only);
}

}  // namespace strata::gguf
