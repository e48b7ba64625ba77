#include "strata/io/direct_reader.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "strata/base/check.h"
#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/base/log.h"
#include "strata/base/os/descriptor.h"
#include "strata/io/os/file_descriptor.h"

namespace strata::io {
namespace {

// Of one read; more would be a drive that never takes it.
constexpr int kMaxTries = 1000;

}  // namespace

DirectReader::DirectReader(int depth, Way way) : depth_(depth), way_(way) {
  STRATA_CHECK(depth >= 1);
  if (way == Way::kUring) {
    std::string why;
    queue_ = os::make_uring_queue(depth, why);
    if (queue_ == nullptr) {
      log_warning(format("io_uring is not to be had ({}): experts are read by threads", why));
      way_ = Way::kThreads;
    }
  }
  if (queue_ == nullptr) queue_ = os::make_thread_queue(depth);
  make_slots();
}

DirectReader::DirectReader(int depth, std::unique_ptr<os::ReadQueue> queue)
    : depth_(depth), way_(Way::kThreads), queue_(std::move(queue)) {
  make_slots();
}

void DirectReader::make_slots() {
  slots_.resize(static_cast<size_t>(depth_));
  for (int i = depth_ - 1; i >= 0; --i) free_.push_back(i);
}

// The queue waits for what it has been given.
DirectReader::~DirectReader() = default;

int DirectReader::add(const ByteSource& source) {
  bool direct = true;
  os::OpenedFile opened = os::open_direct(source.name(), direct);
  if (!source.identity().empty() && opened.identity != source.identity()) {
    throw Error(ErrorCode::kIo, format("{}: another file has taken its place", source.name()));
  }
  files_.push_back({.path = source.name(),
                    .descriptor = std::move(opened.descriptor),
                    .bytes = opened.size,
                    .direct = direct});
  return static_cast<int>(files_.size()) - 1;
}

void DirectReader::start(const Read& read) {
  STRATA_CHECK(!free_.empty() && read.bytes > 0);
  STRATA_CHECK(read.buffer.size() >= buffer_bytes(read.bytes));
  const int i = free_.back();
  free_.pop_back();
  ++n_under_way_;
  Slot& slot = slots_[static_cast<size_t>(i)];
  slot = {.read = read, .begin = read.offset / kBlock * kBlock};
  const uint64_t end = read.offset + read.bytes;
  slot.length = static_cast<size_t>((end + kBlock - 1) / kBlock * kBlock - slot.begin);
  submit(i);
}

void DirectReader::submit(int i) {
  const Slot& slot = slots_[static_cast<size_t>(i)];
  queue_->submit(files_[static_cast<size_t>(slot.read.file)].descriptor, slot.begin + slot.done,
                 slot.read.buffer.subspan(slot.done, slot.length - slot.done),
                 static_cast<uint64_t>(i));
}

// False: the rest of it has been asked for.
bool DirectReader::finish(int i, int64_t result, Done& done) {
  Slot& slot = slots_[static_cast<size_t>(i)];
  const File& file = files_[static_cast<size_t>(slot.read.file)];
  const size_t skipped = static_cast<size_t>(slot.read.offset - slot.begin);
  done.tag = slot.read.tag;
  if ((result == -EINTR || result == -EAGAIN) && ++slot.tries < kMaxTries) {
    submit(i);
    return false;
  }
  if (result > 0) {
    slot.done += static_cast<size_t>(result);
    // A short read ends at a block, or at the end of the file.
    if (slot.done < skipped + slot.read.bytes && static_cast<size_t>(result) % kBlock == 0) {
      submit(i);
      return false;
    }
  }
  if (slot.done >= skipped + slot.read.bytes) {
    done.bytes = slot.read.buffer.subspan(skipped, slot.read.bytes);
    ++counters_.reads;
    counters_.bytes += slot.read.bytes;
    counters_.device_bytes += slot.done;
    if (!file.direct) os::drop_from_cache(file.descriptor, slot.begin, slot.length);
  } else {
    done.error =
        format("{}: wanted {} bytes at {}: {}", file.path, slot.read.bytes, slot.read.offset,
               result < 0 ? strata::os::describe(static_cast<int>(-result))
                          : format("the file ends at {}", slot.begin + slot.done));
  }
  free_.push_back(i);
  --n_under_way_;
  return true;
}

std::vector<DirectReader::Done> DirectReader::collect(std::chrono::milliseconds limit) {
  std::vector<Done> all;
  while (n_under_way_ > 0) {
    os::ReadQueue::Result result;
    if (!queue_->next(result, all.empty() ? limit : std::chrono::milliseconds(0))) break;
    Done done;
    if (finish(static_cast<int>(result.tag), result.bytes, done)) all.push_back(std::move(done));
  }
  return all;
}

}  // namespace strata::io
