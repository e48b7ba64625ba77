// What the canonical order of docs/numerics.md costs on a card: one-row and prompt products of Q4_K
// and IQ4_NL, once in the canonical order and once in a free one (each lane or sub-block adds to its
// own float, in whatever order suits). A prototype: it decides a rule, no program uses it.
//
//   nvcc -O3 -std=c++17 -arch=sm_90 bench/kernels/canonical_cuda.cu -o canonical_cuda
//
// Prints microseconds a launch (median of 31) and the ratio canonical / free; checks the canonical
// results bit for bit against a scalar loop on the host first.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#define CHECK(call)                                                                       \
  do {                                                                                    \
    cudaError_t code = (call);                                                            \
    if (code != cudaSuccess) {                                                            \
      std::printf("%s: %s\n", #call, cudaGetErrorString(code));                           \
      std::exit(1);                                                                       \
    }                                                                                     \
  } while (0)

namespace {

constexpr int kCols = 2560;
constexpr int kRows = 65536;  // of the one-row products: beyond the L2 cache
constexpr int kPromptRows = 5120, kTokens = 512;

// A type: how a 32-value group of a row is taken apart. kBlock values share the activation scale.
struct Q4K {
  static constexpr int kBlock = 256, kBytes = 144;
  static constexpr bool kMin = true;
  __host__ __device__ static void scales(const uint8_t* s, int g, int& sc, int& mn) {
    if (g < 4) {
      sc = s[g] & 63, mn = s[g + 4] & 63;
    } else {
      sc = (s[g + 4] & 15) | ((s[g - 4] >> 6) << 4);
      mn = (s[g + 4] >> 4) | ((s[g] >> 6) << 4);
    }
  }
  // 8 words of 4 codes: values 32 g .. 32 g + 31.
  __device__ static void codes(const uint8_t* block, int g, int* out) {
    const uint32_t* q = reinterpret_cast<const uint32_t*>(block + 16 + 32 * (g / 2));
    for (int i = 0; i < 8; ++i) out[i] = (q[i] >> (4 * (g % 2))) & 0x0f0f0f0f;
  }
  __host__ static int code(const uint8_t* block, int j) {
    return (block[16 + 32 * (j / 64) + j % 32] >> (4 * (j / 32 % 2))) & 15;
  }
};

constexpr int8_t kNl[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                1,    13,   25,  38,  53,  69,  89,  113};
struct Iq4Nl {
  static constexpr int kBlock = 32, kBytes = 18;
  static constexpr bool kMin = false;
  // Four table bytes by the low nibbles of four bytes.
  __device__ static int look_up(uint32_t nibbles) {
    const uint32_t sel = (nibbles & 7) | (nibbles >> 4 & 0x70) | (nibbles >> 8 & 0x700) |
                         (nibbles >> 12 & 0x7000);
    const uint32_t high = (nibbles >> 3 & 1) << 2 | (nibbles >> 11 & 1) << 6 |
                          (nibbles >> 19 & 1) << 10 | (nibbles >> 27 & 1) << 14;
    const uint32_t a = __byte_perm(0xbfad9881, 0xf6eaddcf, sel);  // entries 0..7
    const uint32_t b = __byte_perm(0x26190d01, 0x71594535, sel);  // entries 8..15
    return __byte_perm(a, b, 0x3210 + high);
  }
  __device__ static void codes(const uint8_t* block, int, int* out) {
    const uint16_t* q = reinterpret_cast<const uint16_t*>(block + 2);
    for (int i = 0; i < 4; ++i) {
      const uint32_t word = q[2 * i] | static_cast<uint32_t>(q[2 * i + 1]) << 16;
      out[i] = look_up(word & 0x0f0f0f0f);
      out[4 + i] = look_up(word >> 4 & 0x0f0f0f0f);
    }
  }
  __host__ static int code(const uint8_t* block, int j) {
    return kNl[(block[2 + j % 16] >> (4 * (j / 16))) & 15];
  }
};

struct X {
  const int8_t* q;     // [tokens, cols]
  const float* scale;  // [tokens, cols / block]
  const int* sums;     // [tokens, cols / 32]
};

__device__ int dot32(const int* w, const int8_t* x) {
  const int* xi = reinterpret_cast<const int*>(x);
  int sum = 0;
  for (int i = 0; i < 8; ++i) sum = __dp4a(w[i], xi[i], sum);
  return sum;
}
__device__ float f16(const uint8_t* at) { return __half2float(*reinterpret_cast<const __half*>(at)); }

// ---- one row ----

template <class T>
__device__ float ordered_sum(float segment) {
  float total = __shfl_sync(~0u, segment, 0);
  for (int s = 1; s < 8; ++s) total += __shfl_sync(~0u, segment, 4 * s);
  return total;
}

// A warp a row. Canonical: four lanes a segment, which share a block and add up their integers.
__global__ void one_row_q4k(const uint8_t* w, X x, float* y, bool canonical) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  constexpr int nb = kCols / 256;
  const uint8_t* base = w + static_cast<size_t>(row) * nb * Q4K::kBytes;
  float acc = 0;
  const int part = lane % 4;
  const auto quarter = [&](int b, int p, int& isum, int& imin) {
    const uint8_t* block = base + b * Q4K::kBytes;
    isum = imin = 0;
    for (int half = 0; half < 2; ++half) {
      const int g = 2 * p + half;
      int codes[8], sc, mn;
      Q4K::codes(block, g, codes);
      Q4K::scales(block + 4, g, sc, mn);
      isum += sc * dot32(codes, x.q + b * 256 + g * 32);
      imin += mn * x.sums[b * 8 + g];
    }
  };
  if (canonical) {
    const int s = lane / 4, first = s * nb / 8, end = (s + 1) * nb / 8;
    for (int i = 0; i < (nb + 7) / 8; ++i) {
      const int b = first + i;
      int isum = 0, imin = 0;
      if (b < end) quarter(b, part, isum, imin);
      isum += __shfl_xor_sync(~0u, isum, 1), imin += __shfl_xor_sync(~0u, imin, 1);
      isum += __shfl_xor_sync(~0u, isum, 2), imin += __shfl_xor_sync(~0u, imin, 2);
      if (b < end) {
        const uint8_t* block = base + b * Q4K::kBytes;
        acc = fmaf(static_cast<float>(isum), __fmul_rn(f16(block), x.scale[b]), acc);
        acc = fmaf(-static_cast<float>(imin), __fmul_rn(f16(block + 2), x.scale[b]), acc);
      }
    }
    acc = ordered_sum<Q4K>(acc);
  } else {
    for (int i = lane; i < nb * 4; i += 32) {
      int isum, imin;
      quarter(i / 4, i % 4, isum, imin);
      const uint8_t* block = base + i / 4 * Q4K::kBytes;
      acc += x.scale[i / 4] * (f16(block) * isum - f16(block + 2) * imin);
    }
    for (int d = 16; d > 0; d /= 2) acc += __shfl_xor_sync(~0u, acc, d);
  }
  if (lane == 0) y[row] = acc;
}

// Canonical: four lanes of a segment take a block each and hand their integers round in block order.
__global__ void one_row_iq4nl(const uint8_t* w, X x, float* y, bool canonical) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  constexpr int nb = kCols / 32;
  const uint8_t* base = w + static_cast<size_t>(row) * nb * Iq4Nl::kBytes;
  float acc = 0;
  if (canonical) {
    const int s = lane / 4, first = s * nb / 8, end = (s + 1) * nb / 8;
    for (int i = 0; i < (nb / 8 + 3) / 4; ++i) {
      const int b = first + 4 * i + lane % 4;
      float isum = 0, scale = 0;
      if (b < end) {
        int codes[8];
        Iq4Nl::codes(base + b * Iq4Nl::kBytes, 0, codes);
        isum = static_cast<float>(dot32(codes, x.q + b * 32));
        scale = __fmul_rn(f16(base + b * Iq4Nl::kBytes), x.scale[b]);
      }
      for (int j = 0; j < 4; ++j) {
        const float v = __shfl_sync(~0u, isum, lane / 4 * 4 + j);
        const float f = __shfl_sync(~0u, scale, lane / 4 * 4 + j);
        if (first + 4 * i + j < end) acc = fmaf(v, f, acc);
      }
    }
    acc = ordered_sum<Iq4Nl>(acc);
  } else {
    for (int b = lane; b < nb; b += 32) {
      int codes[8];
      Iq4Nl::codes(base + b * Iq4Nl::kBytes, 0, codes);
      acc += f16(base + b * Iq4Nl::kBytes) * x.scale[b] * dot32(codes, x.q + b * 32);
    }
    for (int d = 16; d > 0; d /= 2) acc += __shfl_xor_sync(~0u, acc, d);
  }
  if (lane == 0) y[row] = acc;
}

// ---- prompt: tensor cores, tiles of 64 weight rows and 64 tokens ----

__device__ void mma(int (&c)[4], const int (&a)[4], const int (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},"
      "{%0,%1,%2,%3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

template <class T, bool kCanonical>
__global__ void __launch_bounds__(128) prompt(const uint8_t* w, X x, float* y) {
  constexpr int kK = 256, kGroups = kK / 32, kPad = kK + 16;
  __shared__ __align__(16) int8_t ws[64][kPad];
  __shared__ __align__(16) int8_t xs[64][kPad];
  __shared__ int16_t wsc[64][kGroups], wmn[64][kGroups];
  __shared__ float wd[64][kGroups], wdm[64], xd[64][kGroups];
  __shared__ int xsum[64][kGroups];
  constexpr int nb = kCols / T::kBlock;
  const int row0 = blockIdx.x * 64, tok0 = blockIdx.y * 64;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int wr = warp / 2 * 32, wt = warp % 2 * 32;  // the warp's 32 x 32 part
  float total[2][4][4] = {}, acc[2][4][4] = {};
  for (int k0 = 0; k0 < kCols; k0 += kK) {
    __syncthreads();
    for (int i = threadIdx.x; i < 64 * kGroups; i += 128) {
      const int r = i / kGroups, g = i % kGroups;
      int codes[8];
      const size_t row_bytes = static_cast<size_t>(nb) * T::kBytes;
      if constexpr (T::kMin) {
        const uint8_t* block = w + (row0 + r) * row_bytes + k0 / 256 * T::kBytes;
        T::codes(block, g, codes);
        int sc, mn;
        T::scales(block + 4, g, sc, mn);
        wsc[r][g] = sc, wmn[r][g] = mn;
        if (g == 0) wd[r][0] = f16(block), wdm[r] = f16(block + 2);
        xsum[r][g] = x.sums[static_cast<size_t>(tok0 + r) * (kCols / 32) + k0 / 32 + g];
        if (g == 0) xd[r][0] = x.scale[static_cast<size_t>(tok0 + r) * nb + k0 / 256];
      } else {
        const uint8_t* block = w + (row0 + r) * row_bytes + (k0 / 32 + g) * T::kBytes;
        T::codes(block, 0, codes);
        wd[r][g] = f16(block);
        xd[r][g] = x.scale[static_cast<size_t>(tok0 + r) * nb + k0 / 32 + g];
      }
      for (int j = 0; j < 8; ++j) *reinterpret_cast<int*>(&ws[r][g * 32 + 4 * j]) = codes[j];
      const int4* from = reinterpret_cast<const int4*>(
          x.q + static_cast<size_t>(tok0 + r) * kCols + k0 + g * 32);
      *reinterpret_cast<int4*>(&xs[r][g * 32]) = from[0];
      *reinterpret_cast<int4*>(&xs[r][g * 32 + 16]) = from[1];
    }
    __syncthreads();
    int isum[2][4][4] = {}, imin[2][4][4] = {};
    for (int g = 0; g < kGroups; ++g) {
      if constexpr (kCanonical && !T::kMin) {
        // Does a segment begin here?
        const int b = k0 / 32 + g, s = (b * 8 + nb - 1) / nb;
        if (b > 0 && s * nb / 8 == b) {
#pragma unroll
          for (int i = 0; i < 32; ++i) {
            total[i / 16][i / 4 % 4][i % 4] += acc[i / 16][i / 4 % 4][i % 4];
            acc[i / 16][i / 4 % 4][i % 4] = 0;
          }
        }
      }
      for (int mi = 0; mi < 2; ++mi) {
        const int r = wr + mi * 16 + lane / 4, k = g * 32 + lane % 4 * 4;
        const int a[4] = {*reinterpret_cast<int*>(&ws[r][k]),
                          *reinterpret_cast<int*>(&ws[r + 8][k]),
                          *reinterpret_cast<int*>(&ws[r][k + 16]),
                          *reinterpret_cast<int*>(&ws[r + 8][k + 16])};
        for (int ni = 0; ni < 4; ++ni) {
          const int t = wt + ni * 8 + lane / 4;
          const int b[2] = {*reinterpret_cast<int*>(&xs[t][k]),
                            *reinterpret_cast<int*>(&xs[t][k + 16])};
          int c[4] = {};
          mma(c, a, b);
          for (int j = 0; j < 4; ++j) {
            const int rr = wr + mi * 16 + lane / 4 + j / 2 * 8;
            const int tt = wt + ni * 8 + lane % 4 * 2 + j % 2;
            if constexpr (T::kMin && kCanonical) {
              isum[mi][ni][j] += wsc[rr][g] * c[j];
              imin[mi][ni][j] += wmn[rr][g] * xsum[tt][g];
            } else if constexpr (T::kMin) {
              acc[mi][ni][j] += xd[tt][0] * (wd[rr][0] * wsc[rr][g] * c[j] -
                                             wdm[rr] * wmn[rr][g] * xsum[tt][g]);
            } else {
              acc[mi][ni][j] = fmaf(static_cast<float>(c[j]),
                                    __fmul_rn(wd[rr][g], xd[tt][g]), acc[mi][ni][j]);
            }
          }
        }
      }
    }
    if constexpr (T::kMin && kCanonical) {
      const int blk = k0 / 256, s = (blk * 8 + nb - 1) / nb;
      const bool begins = blk > 0 && s * nb / 8 == blk;
      for (int i = 0; i < 32; ++i) {
        const int mi = i / 16, ni = i / 4 % 4, j = i % 4;
        const int rr = wr + mi * 16 + lane / 4 + j / 2 * 8;
        const int tt = wt + ni * 8 + lane % 4 * 2 + j % 2;
        float& v = acc[mi][ni][j];
        if (begins) total[mi][ni][j] += v, v = 0;
        v = fmaf(static_cast<float>(isum[mi][ni][j]), __fmul_rn(wd[rr][0], xd[tt][0]), v);
        v = fmaf(-static_cast<float>(imin[mi][ni][j]), __fmul_rn(wdm[rr], xd[tt][0]), v);
      }
    }
  }
  for (int i = 0; i < 32; ++i) {
    const int mi = i / 16, ni = i / 4 % 4, j = i % 4;
    const int rr = row0 + wr + mi * 16 + lane / 4 + j / 2 * 8;
    const int tt = tok0 + wt + ni * 8 + lane % 4 * 2 + j % 2;
    y[static_cast<size_t>(tt) * kPromptRows + rr] =
        kCanonical ? total[mi][ni][j] + acc[mi][ni][j] : acc[mi][ni][j];
  }
}

// ---- host: truth, data, clock ----

template <class T>
float truth(const uint8_t* row, const int8_t* q, const float* scale) {
  constexpr int nb = kCols / T::kBlock;
  float total = 0;
  for (int s = 0; s < 8; ++s) {
    float acc = 0;
    for (int b = s * nb / 8; b < (s + 1) * nb / 8; ++b) {
      const uint8_t* block = row + b * T::kBytes;
      int isum = 0, imin = 0;
      for (int j = 0; j < T::kBlock; ++j) {
        int sc = 1, mn = 0;
        if constexpr (T::kMin) T::scales(block + 4, j / 32, sc, mn);
        isum += sc * T::code(block, j) * q[b * T::kBlock + j];
        imin += mn * q[b * T::kBlock + j];
      }
      __half d, m;
      std::memcpy(&d, block, 2);
      acc = std::fma(static_cast<float>(isum), __half2float(d) * scale[b], acc);
      if constexpr (T::kMin) {
        std::memcpy(&m, block + 2, 2);
        acc = std::fma(-static_cast<float>(imin), __half2float(m) * scale[b], acc);
      }
    }
    total = s == 0 ? acc : total + acc;
  }
  return total;
}

template <class F>
float median_us(F launch) {
  cudaEvent_t a, b;
  CHECK(cudaEventCreate(&a));
  CHECK(cudaEventCreate(&b));
  for (int i = 0; i < 5; ++i) launch();
  std::vector<float> times;
  for (int i = 0; i < 31; ++i) {
    CHECK(cudaEventRecord(a));
    launch();
    CHECK(cudaEventRecord(b));
    CHECK(cudaEventSynchronize(b));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, a, b));
    times.push_back(ms * 1000);
  }
  CHECK(cudaGetLastError());
  std::sort(times.begin(), times.end());
  return times[15];
}

template <class V>
V* upload(const std::vector<V>& v) {
  V* at;
  CHECK(cudaMalloc(&at, v.size() * sizeof(V)));
  CHECK(cudaMemcpy(at, v.data(), v.size() * sizeof(V), cudaMemcpyHostToDevice));
  return at;
}

template <class T>
void measure(const char* name, void (*one_row)(const uint8_t*, X, float*, bool)) {
  constexpr int nb = kCols / T::kBlock;
  const size_t row_bytes = static_cast<size_t>(nb) * T::kBytes;
  std::mt19937 rng(7);
  std::vector<uint8_t> w(kRows * row_bytes);
  for (size_t i = 0; i + 4 <= w.size(); i += 4) {
    const uint32_t v = rng();
    std::memcpy(&w[i], &v, 4);
  }
  std::uniform_real_distribution<float> scale(0.5f, 1.5f);
  for (size_t b = 0; b < w.size(); b += T::kBytes) {
    const __half d = __float2half(scale(rng) * 0.01f), m = __float2half(scale(rng) * 0.01f);
    std::memcpy(&w[b], &d, 2);
    if (T::kMin) std::memcpy(&w[b + 2], &m, 2);
  }
  std::vector<int8_t> q(static_cast<size_t>(kTokens) * kCols);
  for (auto& v : q) v = static_cast<int8_t>(static_cast<int>(rng() % 255) - 127);
  std::vector<float> xs(static_cast<size_t>(kTokens) * nb);
  for (auto& v : xs) v = scale(rng) * 0.01f;
  std::vector<int> sums(q.size() / 32);
  for (size_t i = 0; i < q.size(); ++i) sums[i / 32] += q[i];
  const uint8_t* dw = upload(w);
  const X x{upload(q), upload(xs), upload(sums)};
  float* y;
  CHECK(cudaMalloc(&y, sizeof(float) * static_cast<size_t>(kTokens) * kPromptRows));

  int wrong = 0;
  one_row<<<kRows / 8, 256>>>(dw, x, y, true);
  std::vector<float> got(kRows);
  CHECK(cudaMemcpy(got.data(), y, kRows * sizeof(float), cudaMemcpyDeviceToHost));
  for (int r = 0; r < kRows; r += 61) {
    wrong += got[r] != truth<T>(&w[r * row_bytes], q.data(), xs.data());
  }
  const dim3 grid(kPromptRows / 64, kTokens / 64);
  prompt<T, true><<<grid, 128>>>(dw, x, y);
  got.resize(static_cast<size_t>(kTokens) * kPromptRows);
  CHECK(cudaMemcpy(got.data(), y, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
  for (int i = 0; i < 3000; ++i) {
    const int t = static_cast<int>(rng() % kTokens), r = static_cast<int>(rng() % kPromptRows);
    wrong += got[static_cast<size_t>(t) * kPromptRows + r] !=
             truth<T>(&w[r * row_bytes], &q[static_cast<size_t>(t) * kCols],
                      &xs[static_cast<size_t>(t) * nb]);
  }

  for (int round = 0; round < 3; ++round) {
    const float c1 = median_us([&] { one_row<<<kRows / 8, 256>>>(dw, x, y, true); });
    const float f1 = median_us([&] { one_row<<<kRows / 8, 256>>>(dw, x, y, false); });
    const float cp = median_us([&] { prompt<T, true><<<grid, 128>>>(dw, x, y); });
    const float fp = median_us([&] { prompt<T, false><<<grid, 128>>>(dw, x, y); });
    std::printf("%-7s one row: canonical %8.1f us (%4.0f GB/s), free %8.1f, ratio %.3f   prompt: "
                "canonical %8.1f us, free %8.1f, ratio %.3f   wrong bits: %d\n",
                name, c1, w.size() / c1 * 1e-3, f1, c1 / f1, cp, fp, cp / fp, wrong);
  }
}

}  // namespace

int main() {
  cudaDeviceProp p;
  CHECK(cudaGetDeviceProperties(&p, 0));
  std::printf("%s, %d x %d one row, %d x %d x %d prompt\n", p.name, kRows, kCols, kPromptRows,
              kTokens, kCols);
  measure<Q4K>("Q4_K", one_row_q4k);
  measure<Iq4Nl>("IQ4_NL", one_row_iq4nl);
  return 0;
}
