#pragma once

namespace strata::io {

// A page of a mapped file that cannot be read, mostly because the file has become shorter since, is
// a signal, SIGBUS, and no error that could be caught. After this call the process then writes one
// line to stderr that says so, and leaves with the status. For programs that have nobody around
// them to tell it.
void exit_on_mapping_fault(int status);

}  // namespace strata::io
