// A call costs more than most of these functions, and arrays of vectors live in registers only once
// everything around them is inlined and unrolled.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STRATA_INLINE inline  // instrumented code of this size would take minutes to compile
#else
#define STRATA_INLINE __attribute__((always_inline)) inline
#endif

// A block of as many weight rows as a vector has lanes, at a common distance. Rows are as many
// streams, which the hardware does not foresee, so each load also asks for a few lines of what is
// read ahead_bytes later; asked for all at once, they would hold the computation up.
struct RowsAt {
  const uint8_t* base;  // the block of row 0
  size_t stride;
  const uint8_t* ahead;  // the block of row 0 to ask for
  int n_ahead;           // lines to ask for in all: first line of each row, then the second, ...
  int a_load;            // lines to ask for with each load of 16 bytes
  mutable int asked;
};

// A block of the rows of a tile: byte i of the block of lane r is words[16 * (i - i % 4) + 4 * r +
// i % 4]. Reading runs through one stream of words and one of scales.
struct TileAt {
  const uint8_t* words;
  const uint8_t* last_half;  // the block's last f16, all rows
};

// How far ahead along the stream of a tile to ask for lines, on into the next tile, and behind the
// last one perhaps for nothing. bench/kernels/matmul_bench.cpp, one row of Q6_K, Zen 5: 54 % of the
// read bandwidth without, 62 % with 2048, 80 % with 4096, 88 % with 8192.
constexpr int kTileAhead = 8192;

// How far ahead along a row, and on into the same row of the next panel. Far enough for the memory;
// twice this for 16 rows fits the first-level cache of 48 KiB. Small blocks reach further since
// their scales are read before the rest. bench/kernels/matmul_bench.cpp, one row, Zen 5.
constexpr int ahead_bytes(int block_bytes) { return block_bytes <= 32 ? 1536 : 1280; }
