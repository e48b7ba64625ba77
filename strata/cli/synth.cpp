#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/base/os/terminal.h"
#include "strata/cli/commands.h"
#include "strata/cli/model_setup.h"
#include "strata/cli/synth_model.h"

namespace strata::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// A signal has nothing else to talk to.
std::atomic<bool> g_interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void on_synth_interrupt(int number) {
  if (g_interrupted.exchange(true)) std::_Exit(128 + number);
}

struct Interrupted {};

std::string gigabytes(Bytes bytes) { return format("{:.3f} GB", static_cast<double>(bytes) / 1e9); }

quant::Type type_of(std::string_view option, const std::string& name) {
  const quant::TypeTraits* traits = quant::find_type(name);
  if (traits == nullptr || traits->type_class == quant::TypeClass::kPlain) {
    std::string known;
    for (const quant::TypeTraits& each : quant::all_types()) {
      if (each.type_class == quant::TypeClass::kPlain) continue;
      known += format("{}{}", known.empty() ? "" : " ", each.name);
    }
    throw Error(ErrorCode::kInvalidArgument,
                format("--{} {}: no type of weights; there are {}", option, name, known));
  }
  return traits->type;
}

// A row of the tensors that the option is about has to be whole blocks.
quant::Type type_for_rows(std::string_view option, const std::string& name, int64_t row) {
  const quant::Type type = type_of(option, name);
  if (!quant::find_row_bytes(type, static_cast<uint64_t>(row))) {
    throw Error(ErrorCode::kInvalidArgument,
                format("--{} {}: its blocks have {} values, and the rows {}", option, name,
                       quant::traits(type).block_values, row));
  }
  return type;
}

SynthShape shape_of(const Settings& s) {
  SynthShape shape;
  shape.layers = static_cast<int>(s.synth_layers);
  shape.experts = static_cast<int>(s.synth_experts);
  shape.top_k = static_cast<int>(s.synth_top);
  shape.vocab = static_cast<int>(s.synth_vocab);
  shape.ple_base = s.synth_ple_base;
  shape.draft = s.synth_mtp;
  shape.seed = static_cast<uint64_t>(s.synth_seed);
  shape.header_only = s.synth_header_only;
  if (shape.top_k > shape.experts) {
    throw Error(ErrorCode::kInvalidArgument,
                format("--top {}: a token cannot use more experts than the --experts {} of a layer",
                       shape.top_k, shape.experts));
  }
  shape.gate = type_for_rows("gate", s.synth_gate, shape.width);
  shape.down = type_for_rows("down", s.synth_down, shape.ff);
  shape.dense = type_for_rows("dense", s.synth_dense, shape.width);
  shape.hyper = type_for_rows("hc", s.synth_hc, int64_t{shape.streams} * shape.width);
  shape.ple = type_for_rows("ple", s.synth_ple, shape.width / (2 * shape.ple_heads));
  shape.embedding = type_for_rows("emb", s.synth_emb, shape.width);
  return shape;
}

// Before hours of writing rather than after. An older file of the name counts as occupied: it stays
// until the new one is complete. It may be a model that took a night to download.
void require_room(const fs::path& path, Bytes bytes, bool replace) {
  std::error_code error;
  if (fs::exists(path, error) && !fs::is_regular_file(path, error)) {
    throw Error(ErrorCode::kInvalidArgument, format("{} is there and is no file", path.string()));
  }
  if (!replace && fs::exists(path, error)) {
    throw Error(ErrorCode::kInvalidArgument,
                format("{} is there already; --force replaces it", path.string()));
  }
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const fs::space_info space = fs::space(folder, error);
  if (error) {
    throw Error(ErrorCode::kNotFound, format("{}: {}", folder.string(), error.message()));
  }
  if (space.available < bytes) {
    throw Error(ErrorCode::kResourceExhausted,
                format("{} takes {}, and {} has {} free", path.string(), gigabytes(bytes),
                       folder.string(), gigabytes(space.available)));
  }
}

class Bar {
 public:
  explicit Bar(bool wanted) : wanted_(wanted), begun_(Clock::now()) {}
  ~Bar() {
    if (shown_) std::fprintf(stderr, "\r\033[K");
  }
  Bar(const Bar&) = delete;
  Bar& operator=(const Bar&) = delete;

  void show(Bytes done, Bytes total) {
    constexpr int kWidth = 40;
    const double share = static_cast<double>(done) / static_cast<double>(total);
    if (!wanted_ || static_cast<int>(share * 1000) == last_) return;
    last_ = static_cast<int>(share * 1000);
    shown_ = true;
    const int full = static_cast<int>(share * kWidth);
    const std::string bar = std::string(static_cast<size_t>(full), '#') +
                            std::string(static_cast<size_t>(kWidth - full), '.');
    const std::string what =
        done < total ? format("{:.0f} MB/s", static_cast<double>(done) / 1e6 / seconds())
                     : std::string("waiting for the disk");
    std::fprintf(stderr, "\r[%s] %3.0f %%  %s\033[K", bar.c_str(), share * 100, what.c_str());
  }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begun_).count(); }

 private:
  bool wanted_, shown_ = false;
  int last_ = -1;
  Clock::time_point begun_;
};

}  // namespace

int run_synth(const Invocation& invocation) {
  const Settings& s = invocation.settings;
  SynthModel model(shape_of(s));
  // Keys, table and padding are small beside the tensors: a megabyte or two.
  const Bytes bytes = (s.synth_header_only ? 0 : model.tensor_bytes()) + (Bytes{4} << 20);
  require_room(s.model, bytes, s.force);
  std::cout << format("{}: {} tensors, {}, of it experts {}\n", s.model, model.n_tensors(),
                      gigabytes(model.tensor_bytes()), gigabytes(model.expert_bytes()))
            << std::flush;

  ThreadPool pool(thread_count(s));
  g_interrupted = false;
  std::signal(SIGINT, on_synth_interrupt);
  double seconds = 0;
  try {
    Bar bar(s.progress || os::is_terminal(os::kStderr));
    io::write_atomically(s.model, [&](io::Output& out) {
      model.write(out, pool, [&](Bytes done, Bytes total) {
        bar.show(done, total);
        if (g_interrupted) throw Interrupted{};
      });
    });
    seconds = bar.seconds();
  } catch (const Interrupted&) {
    std::fprintf(stderr, "strata: interrupted, nothing was written\n");
    return 128 + SIGINT;
  }
  std::signal(SIGINT, SIG_DFL);
  if (s.synth_header_only) {
    std::cout << "written: the header alone\n";
    return 0;
  }
  std::cout << format("written in {:.1f} s, {:.0f} MB/s\n", seconds,
                      static_cast<double>(model.tensor_bytes()) / 1e6 / seconds);
  return 0;
}

}  // namespace strata::cli
