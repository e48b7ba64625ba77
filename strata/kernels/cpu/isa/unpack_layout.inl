// What the kernels know of a type, beside a TermForm. A type's unpack takes one block of each of
// Vec::kLanes weight rows apart, one row a lane: put_code(k, ...) gets the codes that belong to
// word k of the activations, ascending, a group's scale before its codes. No load may leave the
// block: it can be the last of a mapped file.

// Where a type keeps its f16 scales. kDmin < 0: none.
template <int block_bytes, int block_values, int d, int dmin = -1>
struct Layout {
  static constexpr int kBlockBytes = block_bytes, kBlockValues = block_values, kD = d, kDmin = dmin;
  static constexpr int kHalves = dmin >= 0 ? 2 : 1;  // of a tile
  static constexpr bool kCrossed = false;            // takes crossed activations
  static constexpr int kFewRows = 8;  // up to here unpacking again is cheaper than to keep codes
  static constexpr float kDFactor = 1.0f, kDminFactor = 1.0f;
};

template <int group, bool min, int offset, int adds>
using Form256 = TermForm<256, group, true, min, offset, adds, false>;
