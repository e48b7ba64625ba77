#pragma once

#include <array>
#include <cstdint>

#include "strata/base/carver.h"
#include "strata/device/gpu/api.h"
#include "strata/kernels/ops/rows.h"

// Matrix products of cards: activations are quantised once, then one launch computes all matrices
// of a type that share them.
namespace strata::kernels::gpu {

using NativeStream = device::gpu::NativeStream;

// A row of activations in int8, with one scale a block and the sum of every 16 codes.
struct QuantRows {
  int8_t* q = nullptr;      // [rows, cols]
  float* scale = nullptr;   // [rows, cols / block]
  int16_t* sums = nullptr;  // [rows, cols / 16]
};

// Rows that share a weight matrix: which experts are wanted, and by which entries. An entry is
// row * top_k + j. Without groups there is one matrix, and every row is an entry.
struct Groups {
  int32_t* n_active = nullptr;  // [1]
  int32_t* expert = nullptr;    // [experts] the active ones
  int32_t* first = nullptr;     // [experts + 1] where the entries of active expert i begin
  int32_t* entry = nullptr;     // [rows * top_k]
};

// Where activations come from: x or a function of it.
struct ActivationSource {
  enum class From : uint8_t {
    kPlain,   // x
    kSilu,    // silu(factor * x)
    kSwiGlu,  // silu(x) * y
  };
  const float* x = nullptr;
  const float* y = nullptr;  // of kSwiGlu
  From from = From::kPlain;
  float factor = 1;
};

// Activations of one product, [max_rows, cols].
struct Activations {
  using From = ActivationSource::From;
  const int32_t* n_rows = nullptr;  // null: all
  int rows_each = 1;                // rows of x for each of n_rows
  const float* x = nullptr;
  const float* y = nullptr;
  From from = From::kPlain;
  float factor = 1;
  int64_t max_rows = 0;
  int cols = 0;
  bool wants32 = false, wants256 = false, wants_floats = false;
  QuantRows by32, by256;
  float* floats = nullptr;  // what float weights take if it is not x itself
  bool quantised = false;   // who made x has quantised it

  constexpr ActivationSource source() const { return {x, y, from, factor}; }
  // Reserves what w takes. Call for every weight, then prepare.
  void want(const Weight& w, Carver& carver);
  // Quantises and applies the function: one launch for each form that is wanted.
  void prepare(bool codes, bool as_floats, NativeStream s) const;
};

// One matrix of a launch. y row of an entry: y + entry * y_stride.
struct Product {
  const std::byte* data = nullptr;  // without groups
  const float* scale = nullptr;     // one factor, with groups one an expert; or null
  float* y = nullptr;
  int32_t rows = 0;
  int32_t part = 0;  // with groups: which of an expert's three parts
};

struct ProductArgs {
  static constexpr int kMost = 6;
  std::array<Product, kMost> product{};
  int n_products = 0;
  const int32_t* n_rows = nullptr;
  int rows_each = 1;
  const int32_t* x_row = nullptr;  // [rows] or null: which row of the activations is meant
  int entries_a_row = 1;           // with groups: entry / this is the row
  int cols = 0;
  int64_t max_entries = 0;
  bool one_each = false;  // no matrix meets more than one row
  QuantRows x;
  const float* floats = nullptr;
  Groups groups;                            // entry null: none
  const std::byte* const* parts = nullptr;  // [experts, 3]
  int n_experts = 0;
  const int32_t* id = nullptr;  // [rows * entries_a_row] of experts, of a step of few rows
};

// Queues the products of all matrices, one launch a type and packing, behind what prepares x. rows:
// of the step; experts may have as many for each.
class ProductList {
 public:
  ProductList(const Activations& x, int64_t rows, NativeStream s)
      : x_(x), rows_(rows), stream_(s) {}
  void add(const Weight& w, float* y);
  // The same of an expert's part; what `of` holds of groups and parts.
  void add(const Weight& w, const float* scales, int part, float* y, const ProductArgs& of);
  void run();

 private:
  struct Item {
    Weight w;
    Product product;
    ProductArgs of;
    bool done = false;
    bool few = false;  // by few.cuh
  };
  const float* floats() const;
  ProductArgs args_of(const Item& item) const;
  // Adds item i and those that share its launch.
  void gather(int i, ProductArgs& args);
  void run_few();

  const Activations& x_;
  int64_t rows_;
  NativeStream stream_;
  std::array<Item, ProductArgs::kMost> item_{};
  int n_ = 0;
};

// One launch of a type.
void launch_products(quant::Type type, Packing packing, const ProductArgs& args, NativeStream s);

}  // namespace strata::kernels::gpu
