#pragma once

#include <memory>
#include <string>

#include "strata/device/stream.h"

namespace strata::device {

// Runs everything at once.
std::unique_ptr<Stream> make_host_stream(Device& device, std::string name);

}  // namespace strata::device
