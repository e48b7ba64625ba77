#include "strata/device/stream.h"

#include <gtest/gtest.h>

#include "strata/device/device.h"
#include "strata/device/registry.h"

namespace strata::device {
namespace {

TEST(Stream, RunsABody) {
  ThreadPool pool(2);
  const auto devices = make_devices("host", {.pool = &pool});
  const auto stream = devices[0]->make_stream("compute");
  Allocation memory = value(devices[0]->allocate(PlanLineId(1), 400, Mem::kDevice));
  const View<float> x = memory.as<float>({100});
  stream->run({.op = "fill"}, [x](ThreadPool& on) {
    on.parallel_for(x.size(), 10, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) x[i] = static_cast<float>(i);
    });
  });
  EXPECT_EQ(x[99], 99.0F);
  EXPECT_EQ(stream->counters().launches.get(), 1U);
}

}  // namespace
}  // namespace strata::device
