#include <liburing.h>

#include <cerrno>
#include <thread>

#include "strata/base/check.h"
#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/io/os/read_queue.h"

namespace strata::io::os {
namespace {

constexpr int kMaxTries = 2000;

class UringQueue final : public ReadQueue {
 public:
  explicit UringQueue(int depth) {
    error_ = -io_uring_queue_init(static_cast<unsigned>(depth), &ring_, 0);
  }
  ~UringQueue() override {
    if (error_ != 0) return;
    // The kernel writes into buffers of the caller until then.
    while (n_under_way_ > 0) {
      io_uring_cqe* entry = nullptr;
      const int result = io_uring_wait_cqe(&ring_, &entry);
      if (result == -EINTR) continue;
      if (result != 0) break;
      io_uring_cqe_seen(&ring_, entry);
      --n_under_way_;
    }
    io_uring_queue_exit(&ring_);
  }

  int error() const { return error_; }

  // Some systems let one make a ring and refuse to read with it.
  bool can_read() {
    io_uring_probe* const probe = io_uring_get_probe_ring(&ring_);
    const bool can = probe != nullptr && io_uring_opcode_supported(probe, IORING_OP_READ) != 0;
    io_uring_free_probe(probe);
    return can;
  }

  void submit(const strata::os::Descriptor& file, uint64_t offset, std::span<std::byte> out,
              uint64_t tag) override {
    io_uring_sqe* const entry = io_uring_get_sqe(&ring_);
    STRATA_CHECK(entry != nullptr);  // no more are under way than the ring was made for
    io_uring_prep_read(entry, file.get(), out.data(), static_cast<unsigned>(out.size()), offset);
    io_uring_sqe_set_data64(entry, tag);
    ++n_under_way_;
    int result = 0;
    // Out of memory for a moment, as a rule.
    for (int tries = 0; tries < kMaxTries; ++tries) {
      result = io_uring_submit(&ring_);
      if (result != -EINTR && result != -EAGAIN && result != -EBUSY) break;
      if (result != -EINTR) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (result >= 0) return;
    // The entry stays in the ring, and goes along with the next one that the system takes.
    throw Error(ErrorCode::kIo,
                format("the system takes no read: {}", strata::os::describe(-result)));
  }

  bool next(Result& result, std::chrono::milliseconds limit) override {
    __kernel_timespec time{.tv_sec = limit.count() / 1000,
                           .tv_nsec = limit.count() % 1000 * 1'000'000};
    io_uring_cqe* entry = nullptr;
    int got = io_uring_peek_cqe(&ring_, &entry);
    if (got != 0 && limit.count() > 0) {
      do {
        got = io_uring_wait_cqe_timeout(&ring_, &entry, &time);
      } while (got == -EINTR);
    }
    if (got != 0 || entry == nullptr) return false;
    result = {.tag = io_uring_cqe_get_data64(entry), .bytes = entry->res};
    io_uring_cqe_seen(&ring_, entry);
    --n_under_way_;
    return true;
  }

 private:
  io_uring ring_{};
  int error_ = 0;
  int n_under_way_ = 0;
};

}  // namespace

std::unique_ptr<ReadQueue> make_uring_queue(int depth, std::string& why) {
  auto queue = std::make_unique<UringQueue>(depth);
  if (queue->error() != 0) {
    why = strata::os::describe(queue->error());
    return nullptr;
  }
  if (!queue->can_read()) {
    why = "it cannot read";
    return nullptr;
  }
  return queue;
}

}  // namespace strata::io::os
