#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "strata/device/device.h"
#include "strata/gguf/model.h"
#include "strata/kernels/ops/rows.h"
#include "strata/memory/expert_blob.h"
#include "strata/memory/expert_store.h"
#include "strata/memory/plan.h"

namespace strata::model {

class WeightCopier;

// Where the matrices of a model come to lie. A tensor that is both looked up and multiplied with
// may count in two of them.
struct WeightBytes {
  Bytes tiles = 0;     // copied in tiles of 16 rows
  Bytes rows = 0;      // copied as the file has them
  Bytes in_place = 0;  // in the mapped file
  Bytes copied() const { return tiles + rows; }
  WeightBytes& operator+=(const WeightBytes& other) {
    tiles += other.tiles;
    rows += other.rows;
    in_place += other.in_place;
    return *this;
  }
};

// The tensors of a file as the kernels take them.
//
// Matrices for products are packed as asked for: as the file has them (kGguf), or in tiles where
// type and shape have such a form (kTiles). What is looked up by row stays as the file has it.
// What keeps the file's form lies in place where the device reads host memory and the file is
// mapped, except that with kTiles every matrix for products is copied, so that no page of the file
// is needed in each step. All else is copied. Small vectors (norms, convolution taps, decay) are
// decoded to f32 whatever their type.
//
// Use: ask for everything once, then declare_lines, then place. The places that were handed in are
// filled by place, so they must not move in between.
class Weights {
 public:
  // file and device outlive this. owner: in the plan.
  Weights(const gguf::Model& file, device::Device& device, kernels::Packing packing,
          std::string owner = "weights");

  bool has(std::string_view name) const { return file_.find(name) != nullptr; }
  const gguf::Tensor& tensor(std::string_view name) const { return file_.get(name); }

  // Matrix NAME.weight for products, with the factor NAME.scale if the file has one.
  // Errors: kCorruptFile naming tensor, shape found and shape wanted; kUnsupported for a type that
  // is no weight.
  void matrix(const std::string& name, int64_t rows, int64_t cols, kernels::Weight* to);
  // The same, to look rows up by their number. Asking for both is possible.
  void table(const std::string& name, int64_t rows, int64_t cols, kernels::Weight* to);
  // Tensor `name` of n values in all.
  void vector(const std::string& name, int64_t n, const float** to);
  // One of the three matrices of n experts: rows [first_row, first_row + rows) of each in a tensor
  // [n, total_rows, cols].
  struct ExpertMatrix {
    int part = 0;  // of gate, up, down
    int64_t n = 0, total_rows = 0, first_row = 0, rows = 0, cols = 0;
  };
  // Fills shape, and [part] of each of n entries of parts; without parts the matrices are not here
  // and only their shape and factors are asked for.
  void experts(const std::string& name, const ExpertMatrix& which, kernels::Weight* shape,
               const float** scale, std::vector<memory::ExpertStore::Parts>* parts);
  // Where they lie in the shards of the file.
  memory::BlobFiles::Part place_of(const std::string& name, const ExpertMatrix& which) const;

  // Names that the file has and nothing asked for, in file order.
  std::vector<std::string> unused() const;

  // Of the matrices asked for so far, without the gaps of alignment.
  WeightBytes bytes() const;

  void declare_lines(memory::Plan& plan);
  // Reads what is copied, with the device's threads. progress(done, total) in bytes that are read.
  // Errors: kResourceExhausted, kIo.
  void place(const std::function<void(Bytes, Bytes)>& progress);

 private:
  struct Use {
    const gguf::Tensor* tensor;
    kernels::Packing packing;
    bool in_place;
    std::function<void(const std::byte*)> placed;  // told where the tensor came to lie
  };
  const gguf::Tensor& take(const std::string& name);
  void any_matrix(const std::string& name, int64_t rows, int64_t cols, bool lookup,
                  kernels::Weight* to);
  kernels::Packing packing_of(const gguf::Tensor& tensor, int64_t rows) const;
  void add_matrix(Use use);
  bool copies() const { return !vectors_.empty() || copied_bytes() > 0; }
  Bytes copied_bytes() const;
  Bytes vector_bytes() const;
  void place_vectors(WeightCopier& copier);

  const gguf::Model& file_;
  device::Device& device_;
  std::string owner_;
  kernels::Packing packing_;
  bool can_stay_;  // the device can use the file's own memory
  std::vector<std::string> taken_;
  std::vector<Use> matrices_, vectors_;
  Bytes largest_tile_ = 0;
  PlanLineId matrix_line_, vector_line_, staging_line_;
  device::Allocation matrix_memory_, vector_memory_;
};

}  // namespace strata::model
