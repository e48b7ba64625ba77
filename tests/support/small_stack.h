#pragma once

#include <pthread.h>

#include <cstddef>
#include <exception>
#include <functional>
#include <stdexcept>

namespace strata::testing {

// Runs `work` on a thread with a stack of `n_bytes` and waits for it; rethrows what it throws.
// Shows that work on hostile input does not recurse: musl's threads, for one, have 128 KiB.
inline void run_on_stack(size_t n_bytes, const std::function<void()>& work) {
#ifdef __SANITIZE_ADDRESS__
  n_bytes *= 8;  // instrumented frames carry red zones and share no slots
#endif
  struct Call {
    const std::function<void()>& work;
    std::exception_ptr error;
  } call{work, nullptr};
  const auto entry = [](void* argument) -> void* {
    auto* self = static_cast<Call*>(argument);
    try {
      self->work();
    } catch (...) {
      self->error = std::current_exception();
    }
    return nullptr;
  };
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_t thread;
  const bool started = pthread_attr_setstacksize(&attributes, n_bytes) == 0 &&
                       pthread_create(&thread, &attributes, entry, &call) == 0;
  pthread_attr_destroy(&attributes);
  if (!started) throw std::runtime_error("no thread with a stack of this size");
  pthread_join(thread, nullptr);
  if (call.error) std::rethrow_exception(call.error);
}

}  // namespace strata::testing
