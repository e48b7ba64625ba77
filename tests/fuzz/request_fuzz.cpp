// Bodies of requests: the first byte chooses the endpoint, the rest is its body. Each ends in a
// request for the engine or in an Error, and what is accepted keeps to the limits.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "strata/base/error.h"
#include "strata/server/api/chat.h"
#include "strata/server/api/completions.h"
#include "strata/server/api/messages.h"
#include "strata/server/api/props.h"
#include "strata/server/api/responses.h"
#include "strata/server/api/tokenize.h"
#include "strata/server/error_reply.h"
#include "strata/server/testing/fake_engine.h"
#include "strata/server/testing/fake_frontend.h"

namespace {

using namespace strata;

struct World {
  server::Config config;
  server::testing::FakeFrontend frontend;
  server::testing::FakeEngine engine;
  server::Workers workers{1, 1};
  std::atomic<bool> draining = false;
  server::Metrics metrics;
  server::RunningTable running;
  server::Services services{config, frontend, engine, workers, metrics, running, draining, 0};
};

void check(const World& world, const server::Generation& generation) {
  const wire::Submit& submit = generation.submit;
  const auto n_prompt = static_cast<int64_t>(submit.ids.size());
  const bool good = n_prompt + submit.max_tokens <= world.engine.status().limits.n_context &&
                    submit.max_tokens >= 1 && n_prompt >= 1 && submit.sampling.top_p > 0 &&
                    submit.sampling.temperature >= 0 && generation.shape != nullptr;
  if (!good) std::abort();
  for (const std::string& stop : submit.stops)
    if (stop.empty()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static World world;
  if (size == 0) return 0;
  const std::string body(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    switch (data[0] % 8) {
      case 0:
        check(world, server::read_chat(body, "id", world.services));
        break;
      case 1:
        check(world, server::read_completion(body, "id", world.services));
        break;
      case 2:
        server::tokenize(body, world.services);
        break;
      case 3:
        check(world, server::read_message(body, "id", world.services));
        break;
      case 4:
        check(world, server::read_response(body, "id", world.services));
        break;
      case 5:
        server::count_tokens(body, world.services);
        break;
      case 6:
        server::apply_template(body, world.services);
        break;
      default:
        server::detokenize(body, world.services);
        break;
    }
  } catch (const Error& e) {
    const int status = server::http_status(e.code());
    if (status != 400 && status != 503) std::abort();
    server::error_response(e, "id", world.config.private_folders);
  }
  return 0;
}
