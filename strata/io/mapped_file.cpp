#include "strata/io/mapped_file.h"

#include <algorithm>
#include <utility>

namespace strata::io {
namespace {

os::PageAdvice page_advice(MappedFile::Advice advice) {
  switch (advice) {
    case MappedFile::Advice::kNormal:
      break;
    case MappedFile::Advice::kSequential:
      return os::PageAdvice::kSequential;
    case MappedFile::Advice::kRandom:
      return os::PageAdvice::kRandom;
    case MappedFile::Advice::kWillNeed:
      return os::PageAdvice::kWillNeed;
  }
  return os::PageAdvice::kNormal;
}

}  // namespace

MappedFile MappedFile::open(const std::string& path) {
  File file = File::open(path);
  Mapping mapping(file.descriptor(), file.size(), path);
  return MappedFile(std::move(file), std::move(mapping));
}

MappedFile::MappedFile(File file, Mapping mapping)
    : ByteSource(file.name(), file.size()), file_(std::move(file)), mapping_(std::move(mapping)) {}

size_t MappedFile::read_some(uint64_t offset, std::span<std::byte> out) const {
  return os::read_some(file_.descriptor(), offset, out, name());
}

void MappedFile::advise(Advice advice, uint64_t offset, uint64_t n_bytes) const {
  if (offset >= size()) return;
  // Outward to whole pages: a hint for a neighbour does no harm.
  const uint64_t begin = offset / os::page_bytes() * os::page_bytes();
  const uint64_t end = offset + std::min(n_bytes, size() - offset);
  os::advise_pages(mapped().subspan(begin, end - begin), page_advice(advice));
}

void MappedFile::release(uint64_t offset, uint64_t n_bytes, bool from_cache) const {
  if (offset >= size()) return;
  // Inward: pages shared with a neighbour stay. The last page of the file counts as whole.
  const uint64_t page = os::page_bytes();
  const uint64_t begin = (offset + page - 1) / page * page;
  const uint64_t stop = offset + std::min(n_bytes, size() - offset);
  const uint64_t end = stop == size() ? stop : stop / page * page;
  if (begin >= end) return;
  os::advise_pages(mapped().subspan(begin, end - begin), os::PageAdvice::kDontNeed);
  if (from_cache) os::drop_from_cache(file_.descriptor(), begin, end - begin);
}

}  // namespace strata::io
