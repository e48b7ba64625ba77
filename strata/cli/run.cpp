#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/base/os/terminal.h"
#include "strata/cli/chat.h"
#include "strata/cli/commands.h"
#include "strata/cli/local_engine.h"
#include "strata/cli/sampling.h"
#include "strata/gguf/escape.h"
#include "strata/text/reasoning.h"
#include "strata/text/utf8_stream.h"

namespace strata::cli {
namespace {

// Signals have nothing else to talk to.
std::atomic<int> g_interrupts = 0;
static_assert(std::atomic<int>::is_always_lock_free);

extern "C" void on_interrupt(int number) {
  if (g_interrupts.fetch_add(1) > 0) std::_Exit(128 + number);
}

// While it lives Ctrl-C stops the answer, and the second one leaves; at other times it leaves.
class StopOnInterrupt {
 public:
  StopOnInterrupt() {
    g_interrupts = 0;
    std::signal(SIGINT, on_interrupt);
  }
  ~StopOnInterrupt() { std::signal(SIGINT, SIG_DFL); }
  StopOnInterrupt(const StopOnInterrupt&) = delete;
  StopOnInterrupt& operator=(const StopOnInterrupt&) = delete;
  static bool stopped() { return g_interrupts > 0; }
};

class Terminal {
 public:
  Terminal(const Settings& settings, LocalEngine& engine) : settings_(settings), engine_(engine) {}

  // Prints the answer as it comes and returns it. What the model thinks goes to stderr: who pipes
  // the answer on wants none of it.
  std::string answer(const text::Prompt& prompt) {
    text::ReasoningSplit split(prompt.in_reasoning);
    return answer(prompt.ids, &split);
  }
  // A null split: all of it is answer.
  std::string answer(std::vector<int32_t> ids, text::ReasoningSplit* split) {
    const int64_t n_prompt = static_cast<int64_t>(ids.size());
    const int64_t room = engine_.limits().n_context - n_prompt;
    if (room < 1 || settings_.max_tokens > room) {
      throw Error(
          ErrorCode::kInvalidArgument,
          format("the prompt has {} tokens, the answer is to have {}, the context holds {}: raise "
                 "--max-context, or begin anew (in a chat: /reset)",
                 n_prompt,
                 settings_.max_tokens > 0 ? format("{}", settings_.max_tokens) : "at least 1",
                 engine_.limits().n_context));
    }
    wire::Submit submit;
    submit.ids = std::move(ids);
    submit.sampling = sampling_of(settings_);
    const auto stops = engine_.tokenizer().stop_ids();
    submit.stop_ids = {stops.begin(), stops.end()};
    submit.max_tokens =
        static_cast<int32_t>(settings_.max_tokens > 0 ? settings_.max_tokens : room);
    std::string text;
    text::Utf8Stream utf8;
    bool thought = false;
    const auto show = [&](const text::ReasoningSplit::Part& part) {
      if (!part.reasoning.empty()) std::fprintf(stderr, "%s", part.reasoning.c_str());
      thought |= !part.reasoning.empty();
      if (part.content.empty()) return;
      if (thought) std::fprintf(stderr, "\n\n");
      thought = false;
      std::cout << part.content << std::flush;
    };
    const auto print = [&](const std::string& part) {
      text += part;
      show(split != nullptr ? split->append(part) : text::ReasoningSplit::Part{.content = part});
    };
    const StopOnInterrupt guard;
    const LocalEngine::Answer answer = engine_.ask(
        std::move(submit), [&](std::string_view bytes) { print(utf8.append(bytes)); },
        StopOnInterrupt::stopped);
    print(utf8.finish());
    if (split != nullptr) show(split->finish());
    std::cout << std::endl;
    if (answer.reason == wire::Reason::kLength) {
      std::fprintf(stderr, "[cut off: %d tokens are the limit]\n", answer.usage.completion_tokens);
    }
    if (settings_.verbose) summary(answer);
    return text;
  }

  static bool interrupted() { return g_interrupts > 0; }

 private:
  static void summary(const LocalEngine::Answer& a) {
    const double n = a.usage.completion_tokens - 1;
    std::fprintf(stderr,
                 "[prompt: %d tokens in %.0f ms, %.1f tokens/s; answer: %d tokens in %.0f ms, %.1f "
                 "tokens/s]\n",
                 a.usage.prompt_tokens, a.timings.prompt_ms,
                 a.usage.prompt_tokens * 1000.0 / a.timings.prompt_ms, a.usage.completion_tokens,
                 a.timings.decode_ms, n > 0 ? n * 1000.0 / a.timings.decode_ms : 0.0);
    const std::string drafts = drafts_text(a.drafts);
    if (!drafts.empty()) std::fprintf(stderr, "[guesses: %s]\n", drafts.c_str());
  }

  const Settings& settings_;
  LocalEngine& engine_;
};

int chat(Terminal& terminal, Chat& chat, double temperature) {
  std::fprintf(stderr, "Ctrl-C stops an answer, /reset begins anew, /exit leaves.%s\n",
               temperature > 0 ? " Answers are drawn; with --temp 0 the likeliest is taken." : "");
  std::string line;
  while (true) {
    std::fprintf(stderr, "> ");
    if (!std::getline(std::cin, line)) break;
    if (line == "/exit" || line == "/quit") break;
    if (line == "/reset") {
      chat.reset();
      continue;
    }
    if (line.empty()) continue;
    if (line[0] == '/' && line.find(' ') == std::string::npos) {
      std::fprintf(stderr, "%s: there are /reset and /exit (or /quit)\n", line.c_str());
      continue;
    }
    chat.add_user(line);
    try {
      check_utf8(line, "the line");
      const text::Prompt prompt = chat.prompt();
      chat.add_answer(terminal.answer(prompt), prompt.in_reasoning);
    } catch (const Error& e) {
      // The conversation goes on without what could not be answered.
      if (e.code() != ErrorCode::kInvalidArgument) throw;
      chat.drop_last();
      std::fprintf(stderr, "strata: %s\n", gguf::printable(e.what()).c_str());
    }
  }
  return 0;
}

}  // namespace

int run_run(const Invocation& invocation) {
  const Settings& s = invocation.settings;
  std::string prompt = s.prompt;
  bool one_shot = true;
  // Before the model is read: what is missing shows at once.
  if (!invocation.given.contains("prompt")) {
    if (!s.prompt_file.empty()) {
      prompt = read_text_file(s.prompt_file, "prompt");
    } else if (!os::is_terminal(os::kStdin)) {
      prompt = read_text_stream(stdin, "the prompt on stdin");
    } else {
      one_shot = false;
    }
  }
  if (one_shot && prompt.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "the prompt is empty");
  }
  check_utf8(prompt, "the prompt");
  check_utf8(s.system, "--system");
  if (!one_shot && s.raw) {
    throw Error(ErrorCode::kInvalidArgument, "--raw needs a prompt: -p TEXT or --prompt-file FILE");
  }
  LocalEngine engine(invocation);
  Terminal terminal(s, engine);
  if (s.raw) {
    terminal.answer(text::with_bos(engine.tokenizer(),
                                   engine.tokenizer().encode(prompt, text::SpecialParsing::kAllow)),
                    nullptr);
    return Terminal::interrupted() ? 130 : 0;
  }
  if (!engine.instance().file().metadata().find_string("tokenizer.chat_template")) {
    throw Error(ErrorCode::kUnsupported,
                "this model has no chat template: give the text it is to go on from, as it is, "
                "with --raw -p TEXT");
  }
  const auto chat_template = read_chat_template(engine.instance().file(), engine.tokenizer());
  if (s.think != "auto" && !chat_template->mentions("enable_thinking")) {
    warn("--think has no effect: the chat template of this model does not know enable_thinking");
  }
  Chat conversation(engine.tokenizer(), *chat_template, s.system, s.think);
  if (!one_shot) return chat(terminal, conversation, s.temp);
  conversation.add_user(prompt);
  terminal.answer(conversation.prompt());
  return Terminal::interrupted() ? 130 : 0;
}

}  // namespace strata::cli
