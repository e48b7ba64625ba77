#include "strata/model/weights.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <span>
#include <unordered_set>

#include "strata/base/carver.h"
#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/device/stream.h"
#include "strata/quant/decode.h"

namespace strata::model {
namespace {

void require_shape(const gguf::Tensor& tensor, std::initializer_list<int64_t> wanted) {
  if (std::ranges::equal(tensor.shape(), wanted)) return;
  throw Error(ErrorCode::kCorruptFile, format("tensor {} has the shape {}, {} is wanted",
                                              tensor.name, gguf::shape_text(tensor.shape()),
                                              gguf::shape_text({wanted.begin(), wanted.size()})));
}

void require_weight_type(const gguf::Tensor& tensor) {
  if (tensor.type->type_class == quant::TypeClass::kPlain) {
    throw Error(ErrorCode::kUnsupported, format("tensor {} has the type {}, which is no weight",
                                                tensor.name, tensor.type->name));
  }
  // The row must also be whole blocks of activations (Q2_0: 64 of 64 is, 32 of a 256-value type is
  // excluded by the file format itself).
}

Bytes aligned(Bytes n) { return (n + Carver::kAlign - 1) / Carver::kAlign * Carver::kAlign; }

constexpr Bytes kStagingBytes = Bytes{4} << 20;

// Copies in pieces through staging memory, so that loading needs no second copy of the model and a
// card never touches pageable memory.
class Upload {
 public:
  Upload(device::Device& device, device::Allocation& staging)
      : stream_(device.make_stream("load")), staging_(staging) {}

  // fill(offset, out) writes bytes of the source.
  template <class Fill>
  void copy(Bytes bytes, const device::MemView& to, const Fill& fill) {
    for (Bytes at = 0; at < bytes; at += kStagingBytes) {
      const Bytes n = std::min(kStagingBytes, bytes - at);
      fill(at, std::span(staging_.data(), n));
      value(stream_->copy(to.part(at, n), staging_.view().part(0, n)));
      if (!stream_->drain({"loading", "copy of weights"},
                          device::Deadline::within(std::chrono::minutes(5)))) {
        throw Error(ErrorCode::kDevice, "a copy of weights did not end within 5 minutes");
      }
    }
  }

 private:
  std::unique_ptr<device::Stream> stream_;
  device::Allocation& staging_;
};

}  // namespace

const gguf::Tensor& Weights::take(const std::string& name) {
  taken_.push_back(name);
  return file_.get(name);
}

bool Weights::in_place() const {
  return device_.kind() == device::Kind::kHost && file_.is_mapped();
}

void Weights::matrix(const std::string& name, int64_t rows, int64_t cols, kernels::Weight* to) {
  const gguf::Tensor& tensor = take(name + ".weight");
  require_weight_type(tensor);
  // A matrix of one row is stored as a vector.
  if (rows == 1 && tensor.rank == 1) {
    require_shape(tensor, {cols});
  } else {
    require_shape(tensor, {rows, cols});
  }
  *to = {.rows = static_cast<int32_t>(rows),
         .cols = static_cast<int32_t>(cols),
         .type = tensor.type->type};
  matrices_.push_back({&tensor, [to](const std::byte* at) { to->data = at; }});
  if (has(name + ".scale")) vector(name + ".scale", 1, &to->scale);
  if (has(name + ".input_scale")) take(name + ".input_scale");
}

void Weights::vector(const std::string& name, int64_t n, const float** to) {
  const gguf::Tensor& tensor = take(name);
  require_weight_type(tensor);
  if (static_cast<int64_t>(tensor.n_values) != n) {
    throw Error(ErrorCode::kCorruptFile, format("tensor {} has the shape {}, {} values are wanted",
                                                tensor.name, gguf::shape_text(tensor.shape()), n));
  }
  vectors_.push_back(
      {&tensor, [to](const std::byte* at) { *to = reinterpret_cast<const float*>(at); }});
}

void Weights::experts(const std::string& name, int64_t total_rows, int64_t first_row, int64_t rows,
                      int64_t cols, int part, kernels::Weight* shape, const float** scale,
                      std::vector<memory::ExpertStore::Parts>* parts) {
  const std::string full = name + ".weight";
  const bool again = std::find(taken_.begin(), taken_.end(), full) != taken_.end();
  const gguf::Tensor& tensor = take(full);
  require_weight_type(tensor);
  const int64_t n = static_cast<int64_t>(parts->size());
  require_shape(tensor, {n, total_rows, cols});
  *shape = {.rows = static_cast<int32_t>(rows),
            .cols = static_cast<int32_t>(cols),
            .type = tensor.type->type};
  const Bytes row_bytes = tensor.row_bytes();
  auto placed = [parts, part, row_bytes, total_rows, first_row](const std::byte* at) {
    for (size_t e = 0; e < parts->size(); ++e) {
      const Bytes row = e * static_cast<Bytes>(total_rows) + static_cast<Bytes>(first_row);
      (*parts)[e][static_cast<size_t>(part)] = at + row * row_bytes;
    }
  };
  if (again) {
    // A fused tensor is placed once and told to both users.
    for (Use& use : matrices_) {
      if (use.tensor == &tensor) {
        use.placed = [first = use.placed, second = placed](const std::byte* at) {
          first(at);
          second(at);
        };
      }
    }
  } else {
    matrices_.push_back({&tensor, placed});
  }
  if (has(name + ".scale")) vector(name + ".scale", n, scale);
  if (has(name + ".input_scale")) take(name + ".input_scale");
}

std::vector<std::string> Weights::unused() const {
  const std::unordered_set<std::string_view> taken(taken_.begin(), taken_.end());
  std::vector<std::string> names;
  for (const gguf::Tensor& tensor : file_.tensors()) {
    if (!taken.contains(tensor.name)) names.emplace_back(tensor.name);
  }
  return names;
}

Bytes Weights::copied_bytes() const {
  Bytes n = 0;
  for (const Use& use : matrices_) n += aligned(use.tensor->n_bytes);
  return n;
}

void Weights::declare_lines(memory::Plan& plan) {
  const bool mapped = in_place();
  const DeviceId where = device_.kind() == device::Kind::kHost ? device::kHostId : device_.id();
  matrix_line_ = plan.add(
      {.owner = "weights",
       .name = "matrices",
       .formula = format("{} tensors{}", matrices_.size(), mapped ? ", in place" : ", copied"),
       .where = where,
       .bytes = copied_bytes(),
       .mapped = mapped});
  Bytes vectors = 0;
  for (const Use& use : vectors_) vectors += aligned(use.tensor->n_values * sizeof(float));
  vector_line_ = plan.add({.owner = "weights",
                           .name = "vectors",
                           .formula = format("{} tensors as f32", vectors_.size()),
                           .where = where,
                           .bytes = vectors});
  staging_line_ = plan.add({.owner = "weights",
                            .name = "staging",
                            .formula = "pieces of tensors on their way",
                            .where = device::kHostId,
                            .bytes = kStagingBytes,
                            .phases = memory::kLoad});
}

void Weights::place(const std::function<void(Bytes, Bytes)>& progress) {
  const bool host = device_.kind() == device::Kind::kHost;
  const device::Mem mem = host ? device::Mem::kPageable : device::Mem::kDevice;
  device::Allocation staging = value(device_.allocate(
      staging_line_, kStagingBytes, host ? device::Mem::kPageable : device::Mem::kPinned));
  Upload upload(device_, staging);
  const Bytes total = copied_bytes();
  Bytes done = 0;
  if (!in_place()) matrix_memory_ = value(device_.allocate(matrix_line_, total, mem));
  for (const Use& use : matrices_) {
    if (in_place()) {
      use.placed(file_.bytes(*use.tensor).data());
    } else {
      const device::MemView to = matrix_memory_.view().part(done, use.tensor->n_bytes);
      upload.copy(use.tensor->n_bytes, to,
                  [&](Bytes at, std::span<std::byte> out) { file_.read(*use.tensor, at, out); });
      use.placed(to.data);
    }
    done += aligned(use.tensor->n_bytes);
    if (progress) progress(done, total);
  }

  Bytes vectors = 0;
  for (const Use& use : vectors_) vectors += aligned(use.tensor->n_values * sizeof(float));
  if (vectors == 0) return;
  vector_memory_ = value(device_.allocate(vector_line_, vectors, mem));
  Bytes at = 0;
  for (const Use& use : vectors_) {
    const std::vector<std::byte> raw = file_.read(*use.tensor);
    std::vector<float> decoded(use.tensor->n_values);
    quant::decode(use.tensor->type->type, raw.data(), decoded);
    const Bytes n = decoded.size() * sizeof(float);
    const device::MemView to = vector_memory_.view().part(at, n);
    upload.copy(n, to, [&](Bytes from, std::span<std::byte> out) {
      std::memcpy(out.data(), reinterpret_cast<const std::byte*>(decoded.data()) + from,
                  out.size());
    });
    use.placed(to.data);
    at += aligned(n);
  }
}

}  // namespace strata::model
