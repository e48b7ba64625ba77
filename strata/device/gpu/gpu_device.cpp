#include "strata/device/gpu/gpu_device.h"

#include <new>
#include <string_view>

#include "strata/base/format.h"
#include "strata/device/gpu/api.h"
#include "strata/device/gpu/gpu_stream.h"

namespace strata::device {
namespace {

using gpu::Status;

constexpr std::align_val_t kAlign{256};

void require_api(std::string_view api) {
  if (api == gpu::kApi) return;
  throw Error(ErrorCode::kUnsupported,
              format("this build has cards of {}, not of {}", gpu::kApi, api));
}

DeviceOptions on_card(DeviceOptions options) {
  options.backend = Backend::kGpu;
  return options;
}

std::string card_name(DeviceId id, int ordinal) {
  gpu::Properties properties;
  STRATA_GPU_CALL(id, GetDeviceProperties, &properties, ordinal);
  return format("{} {} ({}, {} MiB)", gpu::kApi, ordinal, properties.name,
                properties.totalGlobalMem >> 20);
}

class GpuDevice final : public Device {
 public:
  GpuDevice(DeviceId id, int ordinal, const DeviceOptions& options)
      : Device(id, Kind::kGpu, card_name(id, ordinal), on_card(options)), ordinal_(ordinal) {
    use();
    // The first call makes the context; a card that is broken or taken says so here.
    STRATA_GPU_CALL(id, Free, nullptr);
    void* probe = nullptr;
    const Status status = gpu::host_allocate(&probe, 4096, false);
    can_pin_ = status == STRATA_GPU(Success);
    if (can_pin_) {
      static_cast<void>(gpu::host_free(probe));
    } else {
      static_cast<void>(gpu::fault_of("", status, id));
    }
  }

  ~GpuDevice() override { drop_ring(); }

  int ordinal() const { return ordinal_; }

  Capacity capacity() const override {
    size_t free = 0, total = 0;
    use();
    STRATA_GPU_CALL(id(), MemGetInfo, &free, &total);
    return {.total = total, .free = free};
  }
  Pinning pinning() const override { return {.possible = can_pin_, .limit = 0}; }
  bool reaches(const Device& other) const override {
    if (other.kind() != Kind::kGpu) return false;
    int can = 0;
    const int from = static_cast<const GpuDevice&>(other).ordinal_;
    const Status status = STRATA_GPU(DeviceCanAccessPeer)(&can, ordinal_, from);
    return status == STRATA_GPU(Success) && can != 0;
  }

  std::unique_ptr<Stream> make_stream(std::string stream_name) override {
    return std::make_unique<gpu::GpuStream>(*this, ordinal_, std::move(stream_name));
  }
  std::unique_ptr<Event> make_event() override {
    return std::make_unique<gpu::GpuEvent>(*this, ordinal_);
  }

 private:
  void use() const { STRATA_GPU_CALL(id(), SetDevice, ordinal_); }

  Try<std::byte*> do_allocate(Bytes bytes, Mem mem) override {
    void* at = nullptr;
    const size_t n = bytes == 0 ? 1 : bytes;
    Fault fault{.code = ErrorCode::kResourceExhausted, .call = "allocate", .device = id()};
    if (mem == Mem::kPageable) {
      at = ::operator new(n, kAlign, std::nothrow);
      if (at != nullptr) return static_cast<std::byte*>(at);
    } else {
      use();
      const bool own = mem == Mem::kDevice;
      const Status status =
          own ? STRATA_GPU(Malloc)(&at, n) : gpu::host_allocate(&at, n, mem == Mem::kPinnedMapped);
      if (status == STRATA_GPU(Success)) return static_cast<std::byte*>(at);
      fault =
          gpu::fault_of(own ? STRATA_GPU_TEXT "Malloc" : STRATA_GPU_TEXT "HostAlloc", status, id());
      if (own && fault.code == ErrorCode::kResourceExhausted) fault.free = capacity().free;
    }
    fault.asked = bytes;
    return fault;
  }

  // A failure to free is not ours to mend, and the next call tells it.
  void do_free(const MemView& view) noexcept override {
    if (view.mem == Mem::kPageable) return ::operator delete(view.data, kAlign);
    static_cast<void>(STRATA_GPU(SetDevice)(ordinal_));
    static_cast<void>(view.mem == Mem::kDevice ? STRATA_GPU(Free)(view.data)
                                               : gpu::host_free(view.data));
  }

  int ordinal_;
  bool can_pin_ = false;
};

}  // namespace

int n_gpus(const char* api) {
  require_api(api);
  int n = 0;
  const Status status = STRATA_GPU(GetDeviceCount)(&n);
  if (status == STRATA_GPU(Success) && n > 0) return n;
  static_cast<void>(STRATA_GPU(GetLastError)());
  throw Error(ErrorCode::kUnsupported,
              format("no card can be used here: {}", status == STRATA_GPU(Success)
                                                         ? "the driver shows none"
                                                         : STRATA_GPU(GetErrorString)(status)));
}

std::unique_ptr<Device> make_gpu_device(const char* api, DeviceId id, int ordinal,
                                        const DeviceOptions& options) {
  const int n = n_gpus(api);
  if (ordinal < 0 || ordinal >= n) {
    throw Error(ErrorCode::kInvalidArgument,
                format("card {}: there are {}, counted from 0", ordinal, n));
  }
  return std::make_unique<GpuDevice>(id, ordinal, options);
}

void link_gpus(const std::vector<std::unique_ptr<Device>>& devices) {
  for (const auto& a : devices) {
    for (const auto& b : devices) {
      if (a == b || a->kind() != Kind::kGpu || b->kind() != Kind::kGpu) continue;
      const int from = static_cast<GpuDevice&>(*a).ordinal();
      const int to = static_cast<GpuDevice&>(*b).ordinal();
      int can = 0;
      if (from == to || STRATA_GPU(DeviceCanAccessPeer)(&can, from, to) != STRATA_GPU(Success) ||
          can == 0) {
        continue;
      }
      static_cast<void>(STRATA_GPU(SetDevice)(from));
      // One that is linked already says so, and one that will not copies through the host.
      static_cast<void>(STRATA_GPU(DeviceEnablePeerAccess)(to, 0));
      static_cast<void>(STRATA_GPU(GetLastError)());
    }
  }
}

}  // namespace strata::device
