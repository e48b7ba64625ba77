#pragma once

#include <span>

namespace strata::os {

// Names the calling thread for debuggers and top; cut to 15 characters, failures are ignored.
void set_thread_name(const char* name);

// Keeps the calling thread on these CPUs. A failure is ignored: it then runs anywhere.
void run_on(std::span<const int> cpus);

}  // namespace strata::os
