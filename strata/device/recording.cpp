#include "strata/device/recording.h"

#include <cstring>
#include <memory>
#include <utility>

#include "strata/base/check.h"
#include "strata/device/device.h"

namespace strata::device {
namespace {

constexpr size_t round_up(size_t n) {
  return (n + Stream::kMaxBodyAlign - 1) / Stream::kMaxBodyAlign * Stream::kMaxBodyAlign;
}
constexpr size_t kHeader = round_up(sizeof(RecordedNode));
static_assert(std::is_trivially_copyable_v<RecordedNode>);

}  // namespace

const void* RecordedNode::body() const {
  return reinterpret_cast<const std::byte*>(this) + kHeader;
}

void RecordedNode::run(ThreadPool& pool) const {
  if (call != nullptr) {
    call(body(), pool);
  } else {
    copy_bytes(to, from, pool);
  }
}

RecordedWork::~RecordedWork() { STRATA_CHECK(n_queued == 0); }

const RecordedNode* RecordedWork::at(size_t offset) const {
  if (offset >= nodes_.size()) return nullptr;
  return reinterpret_cast<const RecordedNode*>(nodes_.data() + offset);
}

const RecordedNode* RecordedWork::next(const RecordedNode* node) const {
  const auto offset = static_cast<size_t>(reinterpret_cast<const std::byte*>(node) - nodes_.data());
  return at(offset + kHeader + round_up(node->body_bytes));
}

void Recording::add_launch(const Cost& cost, Stream::Call call, const void* body,
                           size_t body_bytes) {
  add(RecordedNode{.cost = cost, .call = call, .body_bytes = body_bytes}, body);
}

void Recording::add_copy(const MemView& to, const MemView& from) {
  const Cost cost{.op = "copy", .read = from.bytes, .written = to.bytes};
  add(RecordedNode{.cost = cost, .to = to, .from = from}, nullptr);
}

void Recording::add(const RecordedNode& node, const void* body) {
  ++n_nodes_;
  const size_t at = bytes_.size();
  bytes_.resize(at + kHeader + round_up(node.body_bytes));
  std::memcpy(bytes_.data() + at, &node, sizeof(node));
  if (node.body_bytes > 0) std::memcpy(bytes_.data() + at + kHeader, body, node.body_bytes);
}

Try<Graph> Recording::finish(Device& device, PlanLineId line) {
  Try<Allocation> memory = device.allocate(line, device.graph_bytes(n_nodes_), Mem::kDevice);
  if (const Fault* f = fault(memory)) return *f;
  return Graph(std::make_unique<RecordedWork>(device, std::move(std::get<Allocation>(memory)),
                                              std::exchange(bytes_, {})));
}

void copy_bytes(const MemView& to, const MemView& from, ThreadPool& pool) {
  if (to.bytes == 0) return;
  // One core does not fill the memory bus; a grain is large against the cost of claiming it.
  constexpr int64_t kGrain = 256 << 10;
  constexpr double kNsPerByte = 0.1;
  const Loop loop{.n_items = static_cast<int64_t>(to.bytes),
                  .grain = kGrain,
                  .ns_per_item = kNsPerByte,
                  .share = Loop::Share::kOwnFirst};
  pool.parallel_for(loop, [&](int64_t begin, int64_t end) {
    std::memcpy(to.data + begin, from.data + begin, static_cast<size_t>(end - begin));
  });
}

}  // namespace strata::device
