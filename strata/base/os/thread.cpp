#include "strata/base/os/thread.h"

#include <pthread.h>

#include <cstdio>

namespace strata::os {

void set_thread_name(const char* name) {
  char cut[16];
  std::snprintf(cut, sizeof(cut), "%s", name);
  pthread_setname_np(pthread_self(), cut);
}

}  // namespace strata::os
