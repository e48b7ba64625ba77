#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "strata/io/source.h"

namespace strata::io {

// Another source with faults, for tests of everything that reads. Reads are counted from 0 over the
// life of the source; a read_at that comes back short and goes on counts once for each piece.
class FaultySource final : public ByteSource {
 public:
  enum class Fault {
    kFail,   // the system reports an error
    kShort,  // one byte comes back, more can be read: read_at has to go on
    kEnd,    // nothing comes back, as if the file had been cut
  };
  struct Rule {
    uint64_t nth_read;  // the first read it applies to
    Fault fault;
    bool lasting = false;  // also to all later reads
  };

  // mapped() is that of the inner source only if keep_mapping is set: a mapping hides read faults.
  FaultySource(std::unique_ptr<ByteSource> inner, std::vector<Rule> rules,
               bool keep_mapping = false);

  std::span<const std::byte> mapped() const override;
  uint64_t n_reads() const { return n_reads_.load(); }

 private:
  size_t read_some(uint64_t offset, std::span<std::byte> out) const override;

  std::unique_ptr<ByteSource> inner_;
  std::vector<Rule> rules_;
  bool keep_mapping_;
  mutable std::atomic<uint64_t> n_reads_ = 0;
};

}  // namespace strata::io
