#include "strata/device/host/host_stream.h"

#include "strata/base/check.h"
#include "strata/device/device.h"
#include "strata/device/recording.h"

namespace strata::device {
namespace {

class HostStream final : public Stream {
 public:
  HostStream(Device& device, std::string name) : Stream(device, std::move(name)) {}

 private:
  void do_launch(const Cost& cost, Call call, const void* body, size_t bytes) override {
    if (capturing()) return recording_.add_launch(cost, call, body, bytes);
    call(body, pool());
  }

  Try<Done> do_copy(const MemView& to, const MemView& from) override {
    if (capturing()) {
      recording_.add_copy(to, from);
    } else {
      copy_bytes(to, from, pool());
    }
    return Done{};
  }

  void do_record(Event&) override {}

  // Only a card's event can be open; the host can keep the order in no other way than to wait.
  void do_wait(const Event& event) override { wait_on_host(event); }

  Try<Done> do_begin_capture() override {
    recording_.clear();
    return Done{};
  }

  Try<Graph> do_end_capture(PlanLineId line, bool spoiled) override {
    if (spoiled) return Fault{.call = "end_capture of a spoiled capture", .device = device().id()};
    return recording_.finish(device(), line);
  }

  void do_replay(const Graph& graph) override {
    const auto& work = static_cast<const RecordedWork&>(*graph.work());
    STRATA_CHECK(&work.device() == &device());
    for (const RecordedNode* node = work.first(); node != nullptr; node = work.next(node)) {
      node->run(pool());
    }
  }

  void do_release_after(Lease&& lease) override { lease.release(); }

  Recording recording_;
};

}  // namespace

std::unique_ptr<Stream> make_host_stream(Device& device, std::string name) {
  return std::make_unique<HostStream>(device, std::move(name));
}

}  // namespace strata::device
