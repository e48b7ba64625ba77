#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "strata/supervise/engine_client.h"
#include "strata/wire/messages.h"

namespace strata::server {

// What /metrics tells, in the text format of Prometheus. Counts the front's own since the server
// began; what concerns the engine comes from its last pulse, and its counters begin anew with each
// engine process. Any thread.
class Metrics {
 public:
  Metrics();
  ~Metrics();

  // An HTTP request that was answered or whose client left (499). `path` comes from a fixed list,
  // or clients could make as many rows as they like.
  void request(std::string_view path, int status);
  // An answer that ended, and one that failed.
  void finished(const wire::Finished& end);
  void failed();

  // All rows: those counted here and those of `status`.
  std::string text(const supervise::Status& status) const;

 private:
  struct Counts;
  std::unique_ptr<Counts> counts_;
};

}  // namespace strata::server
