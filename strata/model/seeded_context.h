#pragma once

#include <cstdint>
#include <span>

#include "strata/model/state.h"

namespace strata::model {

// Makes a session look as if these tokens had been computed: cells, pooled keys and recurrent state
// get random values of the size that real ones have, the same for the same seed. For measuring at a
// long context without computing it; what is answered from there on means nothing.
// The session is new (nothing committed) and of these pools. Waits for the streams.
// Errors: kInvalidArgument if the tokens do not fit into the session; those of HostCopy.
void seed_context(StatePools& pools, SessionState& session, std::span<const int32_t> ids,
                  uint64_t seed);

}  // namespace strata::model
