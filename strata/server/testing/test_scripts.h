#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace strata::server::testing {

inline std::string weather_call(const std::string& city) {
  return "<tool_call>\n<function=get_weather>\n<parameter=city>\n" + city +
         "\n</parameter>\n</function>\n</tool_call>";
}

// Outputs put together at random of what answers are made of, and of what breaks them.
inline std::vector<std::string> scripts() {
  const std::vector<std::string> pieces = {
      "<think>",
      "</think>",
      "\n",
      "\n\n",
      " ",
      "text",
      "caf\xC3\xA9 \xF0\x9F\x98\x80",
      "<",
      "</",
      "<tool_call>",
      "</tool_call>",
      "\n<function=get_weather>\n",
      "<function=mixed>",
      "<function=no>",
      "</function>",
      "<parameter=city>\n",
      "<parameter=n>",
      "\n</parameter>\n",
      "</parameter>",
      "12",
      "{\"a\": [1, \"\\n\"]}",
      "{\"name\": \"mixed\", \"arguments\": ",
      "{\"x\": \"<tool_call>\"}",
      "}",
      "null",
      weather_call("Paris"),
      weather_call("a\n</parameter>\nb"),
      "<tool_call>\n{\"name\": \"none\", \"arguments\": {\"k\": 1}}\n</tool_call>",
      "\xE4\xB8",
      "<|im_start|>",
      "```\n",
      "<tool_",
      "call>"};
  std::vector<std::string> result;
  std::mt19937 random(11);
  for (int i = 0; i < 220; ++i) {
    std::string text;
    for (uint32_t n = 1 + random() % 14; n > 0; --n) text += pieces[random() % pieces.size()];
    result.push_back(std::move(text));
  }
  return result;
}

}  // namespace strata::server::testing
