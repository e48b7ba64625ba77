// One line a type, by the id that GGUF stores (quant/types.h).
constexpr DotTable make_table(const char* name) {
  DotTable table{};
  table.name = name;
  table.quantize = quantize;
  table.matmul[0] = multiply_float<F32>;
  table.matmul[1] = multiply_float<F16>;
  table.matmul[2] = multiply<Q4_0>;
  table.matmul[3] = multiply<Q4_1>;
  table.matmul[6] = multiply<Q5_0>;
  table.matmul[7] = multiply<Q5_1>;
  table.matmul[8] = multiply<Q8_0>;
  table.matmul[10] = multiply<Q2_K>;
  table.matmul[11] = multiply<Q3_K>;
  table.matmul[12] = multiply<Q4_K>;
  table.matmul[13] = multiply<Q5_K>;
  table.matmul[14] = multiply<Q6_K>;
  table.matmul[16] = multiply<IQ2_XXS>;
  table.matmul[17] = multiply<IQ2_XS>;
  table.matmul[18] = multiply<IQ3_XXS>;
  table.matmul[20] = multiply<IQ4_NL>;
  table.matmul[21] = multiply<IQ3_S>;
  table.matmul[22] = multiply<IQ2_S>;
  table.matmul[23] = multiply<IQ4_XS>;
  table.matmul[30] = multiply_float<BF16>;
  table.matmul[42] = multiply<Q2_0>;
  return table;
}
