#include <gtest/gtest.h>
#include <pthread.h>

#include <array>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>
#include <string>

#include "strata/base/error.h"
#include "strata/device/gpu/api.h"
#include "strata/device/gpu/gpu_device.h"
#include "strata/kernels/test_machines.h"

// Runs the tests of the ops on a card. They hand vectors and locals to an op, so this program takes
// its heap and the stack of its tests from memory that the card reads and writes through the link.
// Without a card it leaves with 77: skipped.
namespace strata::kernels::testing {
namespace {

constexpr size_t kArenaBytes = size_t{1} << 30, kStackBytes = size_t{16} << 20;

// Pieces of a power of two, handed out again when they come back.
class Arena {
 public:
  void open(std::byte* begin, size_t bytes) { begin_ = next_ = begin, end_ = begin + bytes; }
  bool has(const void* at) const { return at >= begin_ && at < end_; }
  std::byte* begin() const { return begin_; }

  // Null where it is not open, or empty.
  void* take(size_t bytes) {
    if (begin_ == nullptr) return nullptr;
    const auto kind = static_cast<size_t>(std::bit_width(bytes + kHeader - 1));
    const std::lock_guard lock(mutex_);
    std::byte* piece = spare_[kind];
    if (piece != nullptr) {
      spare_[kind] = *reinterpret_cast<std::byte**>(piece + kHeader);
    } else {
      const size_t size = size_t{1} << std::max<size_t>(kind, 7);
      if (size > static_cast<size_t>(end_ - next_)) return nullptr;
      piece = next_;
      next_ += size;
    }
    *reinterpret_cast<size_t*>(piece) = kind;
    return piece + kHeader;
  }
  void give(void* at) {
    std::byte* const piece = static_cast<std::byte*>(at) - kHeader;
    const size_t kind = *reinterpret_cast<size_t*>(piece);
    const std::lock_guard lock(mutex_);
    *reinterpret_cast<std::byte**>(at) = spare_[kind];
    spare_[kind] = piece;
  }

 private:
  static constexpr size_t kHeader = 64;  // keeps the alignment

  std::mutex mutex_;
  std::byte *begin_ = nullptr, *next_ = nullptr, *end_ = nullptr;
  std::array<std::byte*, 64> spare_{};
};

constinit Arena arena;

void* run_tests(void* result) {
  *static_cast<int*>(result) = RUN_ALL_TESTS();
  return nullptr;
}

int on_a_stack_of_the_arena() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, arena.begin(), kStackBytes);
  pthread_t thread;
  int* const result = new int(1);
  if (pthread_create(&thread, &attributes, &run_tests, result) != 0) return 1;
  pthread_join(thread, nullptr);
  const int code = *result;
  delete result;
  return code;
}

}  // namespace
}  // namespace strata::kernels::testing

using strata::kernels::testing::arena;

void* operator new(size_t bytes) {
  void* at = arena.take(bytes);
  if (at == nullptr) at = std::malloc(bytes);
  if (at == nullptr) throw std::bad_alloc();
  return at;
}
void operator delete(void* at) noexcept {
  if (arena.has(at)) return arena.give(at);
  std::free(at);
}
void operator delete(void* at, size_t) noexcept { operator delete(at); }

int main(int argc, char** argv) {
  using namespace strata;
  // Looked up by the host alone.
  ::testing::GTEST_FLAG(filter) = "-EmbedOp.*:GatherOp.*";
  ::testing::InitGoogleTest(&argc, argv);
  try {
    device::n_gpus(device::gpu::kApi);
  } catch (const Error& e) {
    std::printf("skipped: %s\n", e.what());
    return 77;
  }
  void* memory = nullptr;
  device::gpu::require("allocate",
                       device::gpu::host_allocate(&memory, kernels::testing::kArenaBytes, true),
                       DeviceId(1));
  auto* const begin = static_cast<std::byte*>(memory);
  arena.open(begin, kernels::testing::kArenaBytes);
  // The stack lies at the front.
  static_cast<void>(arena.take(kernels::testing::kStackBytes - 64));
  kernels::testing::test_card(device::gpu::kApi);
  const int code = kernels::testing::on_a_stack_of_the_arena();
  // What static destructors free lies in it: the system takes it back.
  std::fflush(nullptr);
  std::_Exit(code);
}
