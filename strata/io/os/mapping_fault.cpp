#include "strata/io/mapping_fault.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

namespace strata::io {
namespace {

std::atomic<int> g_status = 0;
static_assert(std::atomic<int>::is_always_lock_free);

// Nothing but calls that are allowed in a handler.
extern "C" void on_bus_error(int number, siginfo_t* info, void*) {
  if (info->si_code != BUS_ADRERR) {
    // Not of a mapping: as if there were no handler.
    ::signal(number, SIG_DFL);
    ::raise(number);
    return;
  }
  constexpr char kLine[] =
      "strata: a mapped file has become shorter or cannot be read any more, while it was in use\n";
  static_cast<void>(!::write(STDERR_FILENO, kLine, sizeof(kLine) - 1));
  ::_exit(g_status);
}

}  // namespace

void exit_on_mapping_fault(int status) {
  g_status = status;
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace strata::io
