#pragma once

#include "strata/cli/arguments.h"

namespace strata::cli {

// Each returns the exit code; errors are thrown.
int run_serve(const Invocation& invocation);
int run_run(const Invocation& invocation);
int run_inspect(const Invocation& invocation);
int run_bench(const Invocation& invocation);
int run_eval(const Invocation& invocation);
int run_synth(const Invocation& invocation);
int run_plan(const Invocation& invocation);
int run_profile(const Invocation& invocation);
// The process that holds the model: started by serve, joined to it by the socket --fd.
int run_engine(const Invocation& invocation);

// Whether serve is part of this build.
bool has_server();

// Log level and processor level, for all commands.
void apply_process_settings(const Invocation& invocation);

// To stderr, as all that is not a result.
void warn(std::string_view text);

}  // namespace strata::cli
