#include "strata/model/weights.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <span>
#include <unordered_set>

#include "strata/base/carver.h"
#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/base/os/memory.h"
#include "strata/model/weight_copier.h"
#include "strata/quant/decode.h"
#include "strata/quant/tiles.h"

namespace strata::model {

using kernels::Packing;

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

// Kernels load tiles in whole lines of the cache.
constexpr Bytes kTileAlign = 64;

Bytes aligned(Bytes n) { return (n + Carver::kAlign - 1) / Carver::kAlign * Carver::kAlign; }

}  // namespace

Weights::Weights(const gguf::Model& file, device::Device& device, Packing packing,
                 std::string owner)
    : file_(file),
      device_(device),
      owner_(std::move(owner)),
      packing_(packing),
      // What has no data yet is planned as if it were mapped.
      can_stay_(device.reads_host_memory() && (file.is_mapped() || !file.has_data())) {}

const gguf::Tensor& Weights::take(const std::string& name) {
  taken_.push_back(name);
  return file_.get(name);
}

Packing Weights::packing_of(const gguf::Tensor& tensor, int64_t rows) const {
  const Bytes bytes = static_cast<Bytes>(rows) * tensor.row_bytes();
  const bool fits = rows % quant::kTileRows == 0 && bytes % kTileAlign == 0;
  return packing_ == Packing::kTiles && fits && quant::tile_form(tensor.type->type)
             ? Packing::kTiles
             : Packing::kGguf;
}

void Weights::add_matrix(Use use) {
  for (Use& known : matrices_) {
    if (known.tensor != use.tensor || known.packing != use.packing ||
        known.in_place != use.in_place) {
      continue;
    }
    // Placed once and told to both users.
    known.placed = [first = std::move(known.placed),
                    second = std::move(use.placed)](const std::byte* at) {
      first(at);
      second(at);
    };
    return;
  }
  matrices_.push_back(std::move(use));
}

void Weights::matrix(const std::string& name, int64_t rows, int64_t cols, kernels::Weight* to) {
  any_matrix(name, rows, cols, false, to);
}
void Weights::table(const std::string& name, int64_t rows, int64_t cols, kernels::Weight* to) {
  any_matrix(name, rows, cols, true, to);
}

void Weights::any_matrix(const std::string& name, int64_t rows, int64_t cols, bool lookup,
                         kernels::Weight* to) {
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
         .type = tensor.type->type,
         .packing = lookup ? Packing::kGguf : packing_of(tensor, rows)};
  add_matrix({.tensor = &tensor,
              .packing = to->packing,
              .in_place = can_stay_ && (lookup || packing_ == Packing::kGguf),
              .placed = [to](const std::byte* at) { to->data = at; }});
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
      {.tensor = &tensor,
       .packing = Packing::kGguf,
       .in_place = false,
       .placed = [to](const std::byte* at) { *to = reinterpret_cast<const float*>(at); }});
}

void Weights::experts(const std::string& name, const ExpertMatrix& which, kernels::Weight* shape,
                      const float** scale, std::vector<memory::ExpertStore::Parts>* parts) {
  const std::string full = name + ".weight";
  const gguf::Tensor& tensor = take(full);
  require_weight_type(tensor);
  require_shape(tensor, {which.n, which.total_rows, which.cols});
  *shape = {.rows = static_cast<int32_t>(which.rows),
            .cols = static_cast<int32_t>(which.cols),
            .type = tensor.type->type,
            .packing = packing_of(tensor, which.rows)};
  if (has(name + ".scale")) vector(name + ".scale", which.n, scale);
  if (has(name + ".input_scale")) take(name + ".input_scale");
  if (parts == nullptr) return;
  parts->resize(static_cast<size_t>(which.n));
  auto placed = [parts, which, row_bytes = tensor.row_bytes()](const std::byte* at) {
    for (size_t e = 0; e < parts->size(); ++e) {
      const Bytes row =
          e * static_cast<Bytes>(which.total_rows) + static_cast<Bytes>(which.first_row);
      (*parts)[e][static_cast<size_t>(which.part)] = at + row * row_bytes;
    }
  };
  add_matrix({.tensor = &tensor,
              .packing = shape->packing,
              .in_place = can_stay_ && packing_ == Packing::kGguf,
              .placed = placed});
}

memory::BlobFiles::Part Weights::place_of(const std::string& name,
                                          const ExpertMatrix& which) const {
  const gguf::Tensor& tensor = file_.get(name + ".weight");
  return {.file = tensor.shard,
          .offset = tensor.offset + static_cast<Bytes>(which.first_row) * tensor.row_bytes(),
          .stride = static_cast<Bytes>(which.total_rows) * tensor.row_bytes()};
}

std::vector<std::string> Weights::unused() const {
  const std::unordered_set<std::string_view> taken(taken_.begin(), taken_.end());
  std::vector<std::string> names;
  for (const gguf::Tensor& tensor : file_.tensors()) {
    if (!taken.contains(tensor.name)) names.emplace_back(tensor.name);
  }
  return names;
}

WeightBytes Weights::bytes() const {
  WeightBytes bytes;
  for (const Use& use : matrices_) {
    (use.in_place                     ? bytes.in_place
     : use.packing == Packing::kTiles ? bytes.tiles
                                      : bytes.rows) += use.tensor->n_bytes;
  }
  return bytes;
}

Bytes Weights::copied_bytes() const {
  Bytes n = 0;
  for (const Use& use : matrices_) n += use.in_place ? 0 : aligned(use.tensor->n_bytes);
  return n;
}
Bytes Weights::vector_bytes() const {
  Bytes n = 0;
  for (const Use& use : vectors_) n += aligned(use.tensor->n_values * sizeof(float));
  return n;
}

void Weights::declare_lines(memory::Plan& plan) {
  // As the file has them, so that it is read from front to back.
  std::ranges::stable_sort(matrices_, {}, [](const Use& use) {
    return std::pair(use.tensor->shard, use.tensor->offset);
  });
  const WeightBytes sum = bytes();
  const auto count = [&](bool in_place) {
    return std::ranges::count(matrices_, in_place, &Use::in_place);
  };
  if (sum.copied() > 0) {
    matrix_line_ =
        plan.add({.owner = owner_,
                  .name = "matrices",
                  .formula = format("{} tensors: {} B in tiles of {} rows, {} B as in the file",
                                    count(false), sum.tiles, quant::kTileRows, sum.rows),
                  .where = device_.id(),
                  .bytes = copied_bytes()});
  }
  if (sum.in_place > 0) {
    plan.add({.owner = owner_,
              .name = "matrices in place",
              .formula = format("{} tensors: {} B in the mapped file", count(true), sum.in_place),
              .where = device_.id(),
              .bytes = sum.in_place,
              .mapped = true});
  }
  if (!vectors_.empty()) {
    vector_line_ = plan.add({.owner = owner_,
                             .name = "vectors",
                             .formula = format("{} tensors as f32", vectors_.size()),
                             .where = device_.id(),
                             .bytes = vector_bytes()});
  }
  for (const Use& use : matrices_) {
    if (use.packing != Packing::kTiles) continue;
    largest_tile_ = std::max(largest_tile_, quant::kTileRows * use.tensor->row_bytes());
  }
  if (copies()) staging_line_ = WeightCopier::declare(plan, device_, largest_tile_);
}

void Weights::place(const std::function<void(Bytes, Bytes)>& progress) {
  std::optional<WeightCopier> copier;
  if (copies()) copier.emplace(file_, device_, staging_line_, largest_tile_);
  const Bytes total = bytes().copied();
  Bytes done = 0;
  if (total > 0) {
    matrix_memory_ =
        value_or_throw(device_.allocate(matrix_line_, copied_bytes(), device_.work_memory()));
    if (device_.reads_host_memory()) {
      os::want_huge_pages({matrix_memory_.data(), matrix_memory_.bytes()});
    }
  }
  Bytes at = 0;
  for (const Use& use : matrices_) {
    if (use.in_place) {
      use.placed(file_.bytes(*use.tensor).data());
      continue;
    }
    const device::MemView to = matrix_memory_.view().part(at, use.tensor->n_bytes);
    copier->copy(*use.tensor, use.packing, to, [&](Bytes n) {
      done += n;
      if (progress) progress(done, total);
    });
    use.placed(to.data);
    at += aligned(use.tensor->n_bytes);
  }
  if (progress && total == 0) progress(0, 0);
  if (copier) place_vectors(*copier);
}

void Weights::place_vectors(WeightCopier& copier) {
  if (vectors_.empty()) return;
  vector_memory_ =
      value_or_throw(device_.allocate(vector_line_, vector_bytes(), device_.work_memory()));
  Bytes at = 0;
  for (const Use& use : vectors_) {
    const std::vector<std::byte> raw = file_.read(*use.tensor);
    std::vector<float> decoded(use.tensor->n_values);
    quant::decode(use.tensor->type->type, raw.data(), decoded);
    const std::span<const std::byte> bytes = std::as_bytes(std::span(decoded));
    const device::MemView to = vector_memory_.view().part(at, bytes.size());
    copier.put(bytes, to);
    use.placed(to.data);
    at += aligned(bytes.size());
  }
}

}  // namespace strata::model
