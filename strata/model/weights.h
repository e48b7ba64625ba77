#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "strata/device/device.h"
#include "strata/gguf/model.h"
#include "strata/kernels/ops/rows.h"
#include "strata/memory/expert_store.h"
#include "strata/memory/plan.h"

namespace strata::model {

// The tensors of a file as the kernels take them. A matrix stays as the file has it: in place where
// the device reads host memory and the file is mapped, else copied to the device. Small vectors
// (norms, convolution taps, decay) are decoded to f32 whatever their type.
//
// Use: ask for everything once, then declare_lines, then place. The places that were handed in are
// filled by place, so they must not move in between.
class Weights {
 public:
  // file outlives this.
  Weights(const gguf::Model& file, device::Device& device) : file_(file), device_(device) {}

  bool has(std::string_view name) const { return file_.find(name) != nullptr; }
  const gguf::Tensor& tensor(std::string_view name) const { return file_.get(name); }

  // Matrix NAME.weight, with the factor NAME.scale if the file has one.
  // Errors: kCorruptFile naming tensor, shape found and shape wanted; kUnsupported for a type that
  // is no weight.
  void matrix(const std::string& name, int64_t rows, int64_t cols, kernels::Weight* to);
  // Tensor `name` of n values in all.
  void vector(const std::string& name, int64_t n, const float** to);
  // Rows [first_row, first_row + rows) of each expert's matrix in NAME.weight [experts, total_rows,
  // cols]: fills shape, and [part] of every entry of parts.
  void experts(const std::string& name, int64_t total_rows, int64_t first_row, int64_t rows,
               int64_t cols, int part, kernels::Weight* shape, const float** scale,
               std::vector<memory::ExpertStore::Parts>* parts);

  // Names that the file has and nothing asked for, in file order.
  std::vector<std::string> unused() const;

  void declare_lines(memory::Plan& plan);
  // progress(done, total) in bytes. Errors: kResourceExhausted, kIo.
  void place(const std::function<void(Bytes, Bytes)>& progress);

 private:
  struct Use {
    const gguf::Tensor* tensor;
    std::function<void(const std::byte*)> placed;  // told where the tensor came to lie
  };
  const gguf::Tensor& take(const std::string& name);
  bool in_place() const;
  Bytes copied_bytes() const;

  const gguf::Model& file_;
  device::Device& device_;
  std::vector<std::string> taken_;
  std::vector<Use> matrices_, vectors_;
  PlanLineId matrix_line_, vector_line_, staging_line_;
  device::Allocation matrix_memory_, vector_memory_;
};

}  // namespace strata::model
