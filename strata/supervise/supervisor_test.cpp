#include "strata/supervise/supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "strata/wire/codec.h"

namespace strata::supervise {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

// Collects the events of one request; the test waits for the last.
class Answer {
 public:
  EngineClient::Callbacks callbacks(bool whole = false) {
    EngineClient::Callbacks result;
    result.on_event = [this](wire::Event&& event) { take(std::move(event)); };
    if (whole)
      result.on_restart = [this] {
        text.clear();
        ++n_restarts;
      };
    return result;
  }
  bool wait() { return done_.get_future().wait_for(seconds(20)) == std::future_status::ready; }

  std::string text;
  int n_restarts = 0;
  int n_terminal = 0;
  std::optional<wire::Finished> finished;
  std::optional<wire::Failed> failed;

 private:
  void take(wire::Event&& event) {
    if (const auto* tokens = std::get_if<wire::Tokens>(&event)) text += tokens->bytes;
    if (const auto* end = std::get_if<wire::Finished>(&event)) finished = *end;
    if (const auto* end = std::get_if<wire::Failed>(&event)) failed = *end;
    if (!finished && !failed) return;
    if (++n_terminal == 1) done_.set_value();
  }
  std::promise<void> done_;
};

Settings quick() {
  Settings settings;
  settings.restart.first_delay = milliseconds(1);
  settings.restart.longest_delay = milliseconds(5);
  settings.shutdown_limit = milliseconds(200);
  return settings;
}

std::unique_ptr<Supervisor> start(const std::string& script, const Settings& settings = quick()) {
  return std::make_unique<Supervisor>(
      process_launcher({STRATA_SCRIPTED_ENGINE, "--script", script}), settings);
}

wire::Submit prompt() {
  wire::Submit submit;
  submit.ids = {1, 2, 3};
  submit.max_tokens = 4;
  return submit;
}

template <class Condition>
bool eventually(Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + seconds(20);
  while (std::chrono::steady_clock::now() < deadline) {
    if (condition()) return true;
    std::this_thread::yield();
  }
  return false;
}

bool reaches(const Supervisor& engine, State state) {
  return eventually([&] { return engine.status().state == state; });
}

TEST(Supervisor, AnswersAndStops) {
  auto engine = start("ok");
  Answer answer;
  engine->submit(prompt(), answer.callbacks());
  ASSERT_TRUE(answer.wait());
  EXPECT_EQ(answer.text, "one two");
  ASSERT_TRUE(answer.finished);
  EXPECT_EQ(answer.finished->usage.prompt_tokens, 3);
  EXPECT_EQ(engine->status().state, State::kReady);
  EXPECT_EQ(engine->status().limits.n_context, 512);
  engine->stop();

  Answer late;
  engine->submit(prompt(), late.callbacks());
  ASSERT_TRUE(late.failed);
  EXPECT_EQ(late.failed->code, ErrorCode::kResourceExhausted);
}

TEST(Supervisor, F048_RequestWithoutTokensIsAnsweredByTheNextEngine) {
  auto engine = start("abort,ok");
  Answer answer;
  engine->submit(prompt(), answer.callbacks());
  ASSERT_TRUE(answer.wait());
  EXPECT_TRUE(answer.finished);
  EXPECT_EQ(answer.text, "one two");
  EXPECT_EQ(engine->status().n_restarts, 1);
}

TEST(Supervisor, F048_AStreamGoesOnBehindWhatWasSent) {
  auto engine = start("half,ok");
  Answer answer;
  engine->submit(prompt(), answer.callbacks());
  ASSERT_TRUE(answer.wait());
  EXPECT_EQ(answer.text, "one two");
  EXPECT_TRUE(answer.finished);
  EXPECT_EQ(answer.n_restarts, 0);
  Answer next;
  engine->submit(prompt(), next.callbacks());
  ASSERT_TRUE(next.wait());
  EXPECT_EQ(next.text, "one two");
  EXPECT_EQ(answer.n_terminal, 1);
}

TEST(Supervisor, F048_AStreamThatTwoEnginesDieOfEndsWithAnError) {
  auto engine = start("half,half,ok");
  Answer answer;
  engine->submit(prompt(), answer.callbacks());
  ASSERT_TRUE(answer.wait());
  EXPECT_EQ(answer.text, "one one ") << "of the script, which sends it whatever was sent before";
  ASSERT_TRUE(answer.failed);
  EXPECT_THAT(answer.failed->message, HasSubstr("killed by signal 9"));
}

TEST(Supervisor, UnsentAnswerIsMadeAgainFromTheStart) {
  auto engine = start("half,ok");
  Answer answer;
  engine->submit(prompt(), answer.callbacks(true));
  ASSERT_TRUE(answer.wait());
  EXPECT_TRUE(answer.finished);
  EXPECT_EQ(answer.n_restarts, 1);
  EXPECT_EQ(answer.text, "one two");
}

TEST(Supervisor, ARequestThatKillsTwoEnginesIsNotRunAThirdTime) {
  auto engine = start("abort,abort,ok");
  Answer poison;
  engine->submit(prompt(), poison.callbacks());
  ASSERT_TRUE(poison.wait());
  ASSERT_TRUE(poison.failed);
  Answer next;
  engine->submit(prompt(), next.callbacks());
  ASSERT_TRUE(next.wait());
  EXPECT_TRUE(next.finished);
}

TEST(Supervisor, F123_TheSameDeathThreeTimesIsTheLast) {
  auto engine = start("exit:70");
  Answer answer;
  engine->submit(prompt(), answer.callbacks());
  ASSERT_TRUE(answer.wait());
  ASSERT_TRUE(answer.failed);
  EXPECT_THAT(answer.failed->message, HasSubstr("internal error"));
  const Status status = engine->status();
  EXPECT_EQ(status.state, State::kFailed);
  EXPECT_EQ(status.exit_code, 70);
  EXPECT_EQ(status.n_restarts, 2);
  EXPECT_THAT(status.reasons.at(0), HasSubstr("3 times in a row"));
  Answer refused;
  engine->submit(prompt(), refused.callbacks());
  EXPECT_TRUE(refused.failed);
}

TEST(Supervisor, ACodeThatWouldComeBackIsNotTriedAgain) {
  auto engine = start("exit:65");
  ASSERT_TRUE(reaches(*engine, State::kFailed));
  EXPECT_EQ(engine->status().exit_code, 65);
  EXPECT_EQ(engine->status().n_restarts, 0);
}

TEST(Supervisor, AProgramThatIsNotThereIsAFailure) {
  Supervisor engine(process_launcher({"/no/such/program"}), quick());
  ASSERT_TRUE(reaches(engine, State::kFailed));
  EXPECT_EQ(engine.status().exit_code, 74);
  EXPECT_THAT(engine.status().reasons.at(0), HasSubstr("/no/such/program"));
}

TEST(Supervisor, AnIdleEngineKilledFromOutsideIsAlwaysReplaced) {
  auto engine = start("kill-idle,kill-idle,kill-idle,kill-idle,ok");
  Answer answer;
  ASSERT_TRUE(eventually([&] { return engine->status().n_restarts >= 4; }));
  engine->submit(prompt(), answer.callbacks());
  ASSERT_TRUE(answer.wait());
  EXPECT_TRUE(answer.finished);
}

TEST(Supervisor, F122_ASilentEngineIsReplaced) {
  Settings settings = quick();
  settings.silence_limit = milliseconds(2000);  // a busy machine starts slowly
  auto engine = start("deaf,ok", settings);
  Answer answer;
  engine->submit(prompt(), answer.callbacks());
  ASSERT_TRUE(answer.wait());
  EXPECT_TRUE(answer.finished);
  EXPECT_EQ(engine->status().n_restarts, 1);
}

TEST(Supervisor, F122_AHungStepIsEndedAndTheLimitGrowsWithItsRows) {
  Settings settings = quick();
  settings.step_limit = milliseconds(1000);
  settings.step_limit_per_row = milliseconds(1000);  // 4 rows: 5 s, the script says 1000 s
  auto engine = start("hung,ok", settings);
  Answer answer;
  engine->submit(prompt(), answer.callbacks());
  ASSERT_TRUE(answer.wait());
  EXPECT_TRUE(answer.finished);

  settings.step_limit_per_row = seconds(1000);
  auto patient = start("hung", settings);
  ASSERT_TRUE(reaches(*patient, State::kReady));
  // Far more pulses than the watch can take in between two of its looks.
  ASSERT_TRUE(eventually([&] { return patient->status().pulse.work.steps >= 60; }));
  EXPECT_EQ(patient->status().n_restarts, 0);
}

TEST(Supervisor, F122_AHungStepIsToldWithWhatItWaitsFor) {
  Settings settings = quick();
  settings.step_limit = settings.step_limit_per_row = milliseconds(0);
  settings.restart.first_delay = settings.restart.longest_delay = seconds(100);
  auto engine = start("hung", settings);
  ASSERT_TRUE(reaches(*engine, State::kRestarting));
  EXPECT_THAT(engine->status().reasons.at(0),
              HasSubstr("hung in a step of 4 rows for 1000000 ms, waiting for the step"));
}

wire::Submit prompt_of(size_t n) {
  wire::Submit submit = prompt();
  submit.ids.assign(n, 1);
  return submit;
}

// The request that hangs ends after two engines; the others are answered, by an engine with less.
TEST(Supervisor, F089_AfterTwoHangsTheEngineIsStartedWithLess) {
  auto engine = start("stuck");
  Answer first, other;
  engine->submit(prompt_of(2), first.callbacks());
  engine->submit(prompt_of(3), other.callbacks());
  ASSERT_TRUE(first.wait());
  ASSERT_TRUE(first.failed);
  EXPECT_THAT(first.failed->message, HasSubstr("twice on this request"));
  ASSERT_TRUE(other.wait());
  EXPECT_TRUE(other.finished);
  Answer again;
  engine->submit(prompt_of(2), again.callbacks());
  ASSERT_TRUE(again.wait());
  EXPECT_TRUE(again.finished) << "with less it does not hang";
  EXPECT_EQ(engine->status().n_restarts, 2);
}

TEST(Supervisor, F089_TheThirdHangIsTheLast) {
  auto engine = start("stuck-ever");
  for (int i = 0; i < 2; ++i) {
    Answer answer;
    engine->submit(prompt_of(2), answer.callbacks());
    ASSERT_TRUE(answer.wait());
    ASSERT_TRUE(answer.failed);
  }
  ASSERT_TRUE(reaches(*engine, State::kFailed));
  EXPECT_THAT(engine->status().reasons.at(0), HasSubstr("hung 3 times in a row"));
}

TEST(Supervisor, TheLastWordsOfAnEngineAreTheReason) {
  auto engine = start("lost");
  Answer answer;
  engine->submit(prompt(), answer.callbacks());
  ASSERT_TRUE(answer.wait());
  ASSERT_TRUE(answer.failed);
  EXPECT_THAT(answer.failed->message,
              HasSubstr("left with code 70 (a device was lost: bus error), while answering"));
}

TEST(Supervisor, StepsThatFailedLatelyAreADegradedState) {
  Settings settings = quick();
  settings.degraded_after_failure = milliseconds(200);
  auto engine = start("failing", settings);
  ASSERT_TRUE(reaches(*engine, State::kDegraded));
  EXPECT_THAT(engine->status().reasons.at(0), HasSubstr("steps have failed"));
  ASSERT_TRUE(reaches(*engine, State::kReady));
  EXPECT_TRUE(engine->status().reasons.empty());
  EXPECT_EQ(engine->status().pulse.work.failed_steps, 3u);
}

TEST(Supervisor, AnswersThatFailOneAfterTheOtherAreADegradedStateUntilOneIsGood) {
  auto engine = start("sick");
  for (int i = 0; i < 3; ++i) {
    EXPECT_NE(engine->status().state, State::kDegraded) << i;
    Answer answer;
    engine->submit(prompt(), answer.callbacks());
    ASSERT_TRUE(answer.wait());
    ASSERT_TRUE(answer.failed);
  }
  ASSERT_TRUE(reaches(*engine, State::kDegraded));
  EXPECT_THAT(engine->status().reasons.at(0),
              HasSubstr("the last 3 answers have failed: no logit is finite"));
  Answer good;
  engine->submit(prompt(), good.callbacks());
  ASSERT_TRUE(good.wait());
  EXPECT_TRUE(good.finished);
  EXPECT_TRUE(reaches(*engine, State::kReady));
}

// Between two starts, and while the next engine reads its model.
TEST(Supervisor, ARequestWaitsForTheNextEngineOnlySoLong) {
  for (const char* script : {"abort,ok", "abort,loading"}) {
    Settings settings = quick();
    settings.restart_patience = milliseconds(50);
    if (script == std::string("abort,ok")) {
      settings.restart.first_delay = settings.restart.longest_delay = seconds(100);
    }
    auto engine = start(script, settings);
    ASSERT_TRUE(reaches(*engine, State::kReady));
    Answer answer;
    engine->submit(prompt(), answer.callbacks());
    ASSERT_TRUE(answer.wait()) << script;
    ASSERT_TRUE(answer.failed) << script;
    EXPECT_EQ(answer.failed->code, ErrorCode::kResourceExhausted);
    EXPECT_THAT(answer.failed->message, HasSubstr("being started again (killed by signal 6"));
    EXPECT_EQ(engine->status().n_requests, 0);
    Answer late;
    engine->submit(prompt(), late.callbacks());
    ASSERT_TRUE(late.wait()) << script;
    EXPECT_TRUE(late.failed);
  }
}

TEST(Supervisor, ALateRequestHasAFailedEngineStartedOnceMore) {
  for (const bool late : {false, true}) {
    Settings settings = quick();
    if (late) settings.second_chance_after = milliseconds(0);
    auto engine = start("abort,exit:65,ok", settings);
    ASSERT_TRUE(reaches(*engine, State::kReady));
    Answer first;
    engine->submit(prompt(), first.callbacks());
    ASSERT_TRUE(first.wait());
    ASSERT_TRUE(first.failed);
    EXPECT_EQ(first.failed->code, ErrorCode::kResourceExhausted);
    EXPECT_THAT(first.failed->message, HasSubstr("left with code 65"));
    ASSERT_TRUE(reaches(*engine, State::kFailed));
    // The thread has to come to its rest first.
    const auto answered = [&] {
      Answer next;
      engine->submit(prompt(), next.callbacks());
      return next.wait() && next.finished;
    };
    EXPECT_EQ(late ? eventually(answered) : answered(), late);
    EXPECT_EQ(engine->status().state, late ? State::kReady : State::kFailed);
    EXPECT_EQ(engine->status().n_restarts, late ? 2 : 1);
  }
}

// As when a terminal is closed, or `strata serve 2>&1 | head` has seen enough.
TEST(Supervisor, AnEngineOutlivesTheReaderOfItsLog) {
  const char* without_reader = "exec 4> >(exec true); wait $!; exec \"$0\" \"$@\" 2>&4";
  Supervisor engine(process_launcher({"/bin/bash", "-c", without_reader, STRATA_SCRIPTED_ENGINE,
                                      "--script", "talking"}),
                    quick());
  Answer answer;
  engine.submit(prompt(), answer.callbacks());
  ASSERT_TRUE(answer.wait());
  EXPECT_TRUE(answer.finished);
  EXPECT_EQ(engine.status().n_restarts, 0);
}

// Whatever a callback throws, nobody may reach the link of the engine that went with it.
TEST(Supervisor, AThrowingCallbackEndsTheWatchAndLeavesNothingDangling) {
  auto engine = start("ok");
  EngineClient::Callbacks callbacks;
  callbacks.on_event = [](wire::Event&&) { throw std::runtime_error("no room for the answer"); };
  const wire::RequestId id = engine->submit(prompt(), std::move(callbacks));
  ASSERT_TRUE(reaches(*engine, State::kFailed));
  EXPECT_EQ(engine->status().exit_code, 70);
  EXPECT_THAT(engine->status().reasons.at(0), HasSubstr("no room for the answer"));
  engine->cancel(id);
  engine->cancel(id + 1);
  Answer refused;
  engine->submit(prompt(), refused.callbacks());
  EXPECT_TRUE(refused.failed);
  engine->stop();
}

TEST(Supervisor, F122_ABrokenMessageReplacesTheEngine) {
  auto engine = start("garbage,ok");
  Answer answer;
  engine->submit(prompt(), answer.callbacks());
  ASSERT_TRUE(answer.wait());
  EXPECT_TRUE(answer.finished);
}

TEST(Supervisor, F122_ALostRequestEndsWithAnError) {
  Settings settings = quick();
  settings.lost_after_pulses = 3;
  auto engine = start("forget", settings);
  Answer answer;
  engine->submit(prompt(), answer.callbacks());
  ASSERT_TRUE(answer.wait());
  ASSERT_TRUE(answer.failed);
}

TEST(Supervisor, CancelBeforeAnEngineIsThereEndsTheRequest) {
  Settings settings = quick();
  settings.restart.first_delay = settings.restart.longest_delay = seconds(100);
  auto engine = start("exit:70", settings);
  ASSERT_TRUE(eventually([&] { return engine->status().n_restarts == 1; }));
  Answer answer;
  engine->cancel(engine->submit(prompt(), answer.callbacks()));
  ASSERT_TRUE(answer.wait());
  ASSERT_TRUE(answer.finished);
  EXPECT_EQ(answer.finished->reason, wire::Reason::kCancelled);
  engine->cancel(12345);  // nobody's
}

// What no frame holds ends alone.
TEST(Supervisor, ARequestThatCannotBeSentEndsAndTheOthersGoOn) {
  Settings settings = quick();
  // Reading so much takes as long as many of the test's pulses, which then say what was before.
  settings.lost_after_pulses = 100'000;
  auto engine = start("ok", settings);
  Answer large, small;
  wire::Submit submit = prompt();
  submit.grammar.assign(wire::kMaxPayloadBytes, 'a');
  engine->submit(std::move(submit), large.callbacks());
  ASSERT_TRUE(large.wait());
  ASSERT_TRUE(large.failed);
  EXPECT_EQ(large.failed->code, ErrorCode::kUnsupported);
  engine->submit(prompt(), small.callbacks());
  ASSERT_TRUE(small.wait());
  EXPECT_TRUE(small.finished) << small.failed->message;
}

TEST(Supervisor, MoreThanTheLimitIsRefused) {
  Settings settings = quick();
  settings.max_requests = 2;
  auto engine = start("forget", settings);
  Answer first, second, third;
  engine->submit(prompt(), first.callbacks());
  engine->submit(prompt(), second.callbacks());
  engine->submit(prompt(), third.callbacks());
  ASSERT_TRUE(third.failed);
  EXPECT_EQ(third.failed->code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(engine->status().n_requests, 2);
  engine->stop();
  EXPECT_TRUE(first.failed);
  EXPECT_TRUE(second.failed);
}

// What the launcher promises: nothing is left behind, however the engine takes it.
TEST(Supervisor, F120_StopLeavesNoProcess) {
  struct Spy : Launcher {
    explicit Spy(std::unique_ptr<Launcher> inner, int64_t& id)
        : inner_(std::move(inner)), id_(id) {}
    std::unique_ptr<EngineProcess> launch(uint32_t incarnation, bool step_down) override {
      auto process = inner_->launch(incarnation, step_down);
      id_ = process->id();
      return process;
    }
    std::unique_ptr<Launcher> inner_;
    int64_t& id_;
  };
  for (const char* script : {"ok", "stay", "deaf", "forget"}) {
    int64_t id = 0;
    Supervisor engine(
        std::make_unique<Spy>(process_launcher({STRATA_SCRIPTED_ENGINE, "--script", script}), id),
        quick());
    ASSERT_TRUE(reaches(engine, State::kReady));
    engine.stop();
    EXPECT_NE(::kill(static_cast<pid_t>(id), 0), 0) << script;
  }
}

}  // namespace
}  // namespace strata::supervise
