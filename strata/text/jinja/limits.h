#pragma once

#include <cstddef>
#include <cstdint>

namespace strata::text {

// Bounds of one template. Templates come from model files and contexts from requests; neither is
// trusted. What goes beyond a bound is an Error that names the line.
struct TemplateLimits {
  size_t max_source_bytes = 1 << 20;
  // Expressions and blocks inside each other.
  int max_nesting = 96;
  // Levels of evaluation in progress, macro calls and recursive loops included. Together with the
  // frame sizes this bounds the stack: see the test on a 512 KiB stack.
  int max_depth = 320;
  // Nodes evaluated, loop rounds, values compared.
  uint64_t max_steps = 10'000'000;
  // Text and lists made on the way, in all; bounds the time that copying takes.
  uint64_t max_made_bytes = uint64_t{512} << 20;
  // Of these, what is there at the same time; bounds memory.
  uint64_t max_held_bytes = uint64_t{64} << 20;
  size_t max_output_bytes = size_t{64} << 20;
};

}  // namespace strata::text
