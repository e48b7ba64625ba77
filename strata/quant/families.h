#pragma once

#include <cstddef>
#include <cstdint>

#include "strata/quant/term.h"

// What each family gives the table in types.cpp: how one block of a type is taken apart, and how
// it is made. Layouts: offsets in bytes, little-endian; see the file of the family.
namespace strata::quant {

// floats.cpp: n values from and to their stored form.
void decode_f32(const std::byte* in, size_t n, float* out);
void decode_f16(const std::byte* in, size_t n, float* out);
void decode_bf16(const std::byte* in, size_t n, float* out);
void encode_f32(const float* x, std::byte* out);
void encode_f16(const float* x, std::byte* out);
void encode_bf16(const float* x, std::byte* out);

// blocks32.cpp
void unpack_q4_0(const std::byte* block, int i, Term& out);
void unpack_q4_1(const std::byte* block, int i, Term& out);
void unpack_q5_0(const std::byte* block, int i, Term& out);
void unpack_q5_1(const std::byte* block, int i, Term& out);
void unpack_q8_0(const std::byte* block, int i, Term& out);
void unpack_iq4_nl(const std::byte* block, int i, Term& out);
void encode_q4_0(const float* x, std::byte* block);
void encode_q8_0(const float* x, std::byte* block);
void encode_iq4_nl(const float* x, std::byte* block);

// fp4.cpp and low_bits.cpp
void unpack_mxfp4(const std::byte* block, int i, Term& out);
void unpack_nvfp4(const std::byte* block, int i, Term& out);
void unpack_q1_0(const std::byte* block, int i, Term& out);
void unpack_q2_0(const std::byte* block, int i, Term& out);

// k_quants.cpp and k_encode.cpp
void unpack_q2_k(const std::byte* block, int i, Term& out);
void unpack_q3_k(const std::byte* block, int i, Term& out);
void unpack_q4_k(const std::byte* block, int i, Term& out);
void unpack_q5_k(const std::byte* block, int i, Term& out);
void unpack_q6_k(const std::byte* block, int i, Term& out);
void encode_q4_k(const float* x, std::byte* block);
void encode_q6_k(const float* x, std::byte* block);

// iq_grids.cpp
void unpack_iq1_s(const std::byte* block, int i, Term& out);
void unpack_iq1_m(const std::byte* block, int i, Term& out);
void unpack_iq2_xxs(const std::byte* block, int i, Term& out);
void unpack_iq2_xs(const std::byte* block, int i, Term& out);
void unpack_iq2_s(const std::byte* block, int i, Term& out);
void unpack_iq3_xxs(const std::byte* block, int i, Term& out);
void unpack_iq3_s(const std::byte* block, int i, Term& out);
void unpack_iq4_xs(const std::byte* block, int i, Term& out);

}  // namespace strata::quant
