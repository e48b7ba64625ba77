#include "strata/io/faulty_source.h"

#include <utility>

#include "strata/base/error.h"
#include "strata/base/format.h"

namespace strata::io {

FaultySource::FaultySource(std::unique_ptr<ByteSource> inner, std::vector<Rule> rules,
                           bool keep_mapping)
    : ByteSource(inner->name(), inner->size()),
      inner_(std::move(inner)),
      rules_(std::move(rules)),
      keep_mapping_(keep_mapping) {}

std::span<const std::byte> FaultySource::mapped() const {
  return keep_mapping_ ? inner_->mapped() : std::span<const std::byte>();
}

size_t FaultySource::read_some(uint64_t offset, std::span<std::byte> out) const {
  const uint64_t nth = n_reads_++;
  for (const Rule& rule : rules_) {
    if (nth < rule.nth_read || (nth > rule.nth_read && !rule.lasting)) continue;
    switch (rule.fault) {
      case Fault::kFail:
        throw Error(ErrorCode::kIo, format("{}: reading {} bytes at {}: injected fault", name(),
                                           out.size(), offset));
      case Fault::kShort:
        return inner_->read_some(offset, out.first(1));
      case Fault::kEnd:
        return 0;
    }
  }
  return inner_->read_some(offset, out);
}

}  // namespace strata::io
