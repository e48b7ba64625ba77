#pragma once

namespace strata::os {

// Names the calling thread for debuggers and top; cut to 15 characters, failures are ignored.
void set_thread_name(const char* name);

}  // namespace strata::os
