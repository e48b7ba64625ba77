#pragma once

#include <chrono>
#include <span>

namespace strata::os {

// Names the calling thread for debuggers and top; cut to 15 characters, failures are ignored.
void set_thread_name(const char* name);

// Keeps the calling thread on these CPUs. A failure is ignored: it then runs anywhere.
void run_on(std::span<const int> cpus);

// Asks the scheduler to give the calling thread its share of a busy core in turns of this length:
// shorter turns come sooner, the share and the priority stay as they are. What a system cannot do
// is ignored.
void ask_for_turns_of(std::chrono::nanoseconds length);

}  // namespace strata::os
