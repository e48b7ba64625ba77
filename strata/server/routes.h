#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "strata/server/access.h"
#include "strata/server/exchange.h"
#include "strata/server/services.h"

namespace strata::server {

// Finds who answers a request and sees to what all endpoints share: access, methods, errors, the
// hand-over to a worker. On the transport's thread.
class Routes {
 public:
  // `services` outlives it. Errors: those of Access.
  Routes(const Config& config, const Services& services);
  void handle(const std::shared_ptr<Exchange>& exchange) const;
  // The path itself if something is there, "other" if not.
  std::string_view known(std::string_view path) const;

 private:
  void hand_over(const std::shared_ptr<Exchange>& exchange, const struct Route& route) const;

  const Services& services_;
  const Access access_;
};

}  // namespace strata::server
