#pragma once

#include <atomic>
#include <cstdint>

namespace strata::os {

// Sleeps while word == expected. May return early without a reason: the caller looks at the word
// again.
void futex_wait(const std::atomic<uint32_t>& word, uint32_t expected);
// Wakes at most n sleepers on the word.
void futex_wake(const std::atomic<uint32_t>& word, int n);

}  // namespace strata::os
