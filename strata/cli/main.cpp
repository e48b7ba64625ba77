#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "strata/base/error.h"
#include "strata/cli/commands.h"
#include "strata/cli/effects.h"
#include "strata/gguf/escape.h"
#include "strata/io/mapping_fault.h"

namespace strata::cli {
namespace {

int dispatch(const Invocation& invocation) {
  switch (invocation.command) {
    case kServe:
      return run_serve(invocation);
    case kRun:
      return run_run(invocation);
    case kInspect:
      return run_inspect(invocation);
    case kBench:
      return run_bench(invocation);
    case kEval:
      return run_eval(invocation);
    case kSynth:
      return run_synth(invocation);
    case kPlan:
      return run_plan(invocation);
    case kProfile:
      return run_profile(invocation);
    case kEngine:
      return run_engine(invocation);
    case kOptions:
      std::cout << options_page();
      return 0;
  }
  return 64;
}

void check_output() {
  std::cout.flush();
  if (!std::cout) throw Error(ErrorCode::kIo, "the output could not be written");
}

int run_program(const std::vector<std::string>& arguments) {
  const Invocation invocation = parse_arguments(arguments, [](const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::optional<std::string>() : std::string(value);
  });
  if (!invocation.reply.empty()) {
    std::cout << invocation.reply;
    check_output();
    return arguments.empty() ? exit_code(ErrorCode::kInvalidArgument) : 0;
  }
  for (const std::string& text : invocation.warnings) warn(text);
  for (const std::string& text : without_effect(invocation)) warn(text);
  apply_process_settings(invocation);
  // The front of a server tells what became of its engine; here nobody else would.
  if (invocation.command != kServe && invocation.command != kEngine) {
    io::exit_on_mapping_fault(exit_code(ErrorCode::kIo));
  }
  const int code = dispatch(invocation);
  check_output();
  return code;
}

// A message for the terminal. Its own line ends stay; those of words of the command line, names of
// files above all, must not pass for some.
std::string told(std::string text, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word.find('\n') == std::string::npos) continue;
    std::string one_line = word;
    for (size_t at = 0; (at = one_line.find('\n', at)) != std::string::npos; at += 2) {
      one_line.replace(at, 1, "\\n");
    }
    for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += one_line.size()) {
      text.replace(at, word.size(), one_line);
    }
  }
  return gguf::printable(text);
}

}  // namespace
}  // namespace strata::cli

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  const auto fail = [&](const char* text, int code) {
    std::cout.flush();
    std::fprintf(stderr, "strata: %s\n", strata::cli::told(text, words).c_str());
    return code;
  };
  try {
    return strata::cli::run_program(words);
  } catch (const strata::Error& e) {
    return fail(e.what(), strata::exit_code(e.code()));
  } catch (const std::bad_alloc&) {
    return fail("out of memory", strata::exit_code(strata::ErrorCode::kResourceExhausted));
  } catch (const std::exception& e) {
    return fail(e.what(), strata::exit_code(strata::ErrorCode::kInternal));
  }
}
