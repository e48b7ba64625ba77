#include "strata/server/api/metrics.h"

#include "strata/server/metrics.h"

namespace strata::server {

Response metrics(const Services& services) {
  return {200,
          {{"Content-Type", "text/plain; version=0.0.4; charset=utf-8"}},
          services.metrics.text(services.engine.status())};
}

}  // namespace strata::server
