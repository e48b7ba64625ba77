// One line a type, by the id that GGUF stores (quant/types.h).
constexpr DotTable make_table(const char* name) {
  DotTable table{};
  table.name = name;
  table.quantize = quantize;
  table.matmul[0] = multiply_float<F32>;
  table.matmul[1] = multiply_float<F16>;
  add<Q4_0>(table, 2);
  add<Q4_1>(table, 3);
  add<Q5_0>(table, 6);
  add<Q5_1>(table, 7);
  add<Q8_0>(table, 8);
  add<Q2_K>(table, 10);
  add<Q3_K>(table, 11);
  add<Q4_K>(table, 12);
  add<Q5_K>(table, 13);
  add<Q6_K>(table, 14);
  add<LookedUp<IQ2_XXS>>(table, 16);
  add<LookedUp<IQ2_XS>>(table, 17);
  add<LookedUp<IQ3_XXS>>(table, 18);
  add<IQ4_NL>(table, 20);
  add<LookedUp<IQ3_S>>(table, 21);
  add<LookedUp<IQ2_S>>(table, 22);
  add<IQ4_XS>(table, 23);
  table.matmul[30] = multiply_float<BF16>;
  add<Q2_0>(table, 42);
  return table;
}
