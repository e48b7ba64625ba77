#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>

#include "strata/base/format.h"
#include "strata/device/sim/sim_faults.h"
#include "strata/model/test_model.h"

// A step is a transaction: what is not kept never happened, wherever the cut falls.
namespace strata::model {
namespace {

using model::testing::Loaded;
using Part = Loaded::Part;

constexpr int kWindow = 16;

class State : public ::testing::TestWithParam<const char*> {
 protected:
  State() : m_(GetParam(), {.chunk = 64, .slots = 3, .window = kWindow, .threads = 2}) {
    // Made once a model.
    static std::map<std::string, Undisturbed> known;
    Undisturbed& u = known[GetParam()];
    if (u.ids.empty()) {
      u.ids = model::testing::text_of(GetParam());
      const auto session = m_.session();
      for (int32_t id : u.ids) {
        u.logits.push_back(m_.step(*session, std::span(&id, 1)));
        u.hashes.push_back(m_.hash(*session));
      }
    }
    undisturbed_ = &u;
  }

  std::vector<int32_t> part(size_t from, size_t n) const {
    return {ids().begin() + static_cast<std::ptrdiff_t>(from),
            ids().begin() + static_cast<std::ptrdiff_t>(from + n)};
  }
  // The next n tokens, of which only the first `right` are those of the text.
  std::vector<int32_t> guess(size_t from, size_t n, size_t right) const {
    std::vector<int32_t> ids = part(from, n);
    for (size_t i = right; i < n; ++i) ids[i] = (ids[i] + 17) % static_cast<int32_t>(300);
    return ids;
  }
  // The session goes on to token `end` and is all the way what it would have been.
  void expect_undisturbed(SessionState& session, size_t end, const std::string& what) {
    size_t at = static_cast<size_t>(session.n_committed());
    EXPECT_EQ(m_.hash(session), hash_after(at)) << what;
    end = std::min(end, ids().size());
    for (; at < end; ++at) {
      const std::vector<float> logits = m_.step(session, std::span(&ids()[at], 1));
      ASSERT_EQ(std::memcmp(logits.data(), this->logits(at).data(), logits.size() * sizeof(float)),
                0)
          << what << ": logits of token " << at << " differ by "
          << model::testing::max_difference(logits, this->logits(at));
      ASSERT_EQ(m_.hash(session), hash_after(at + 1)) << what << ": state after token " << at;
    }
  }
  bool large() const { return std::string(GetParam()) == "strata-demo"; }

  const std::vector<int32_t>& ids() const { return undisturbed_->ids; }
  const std::vector<float>& logits(size_t token) const { return undisturbed_->logits[token]; }
  uint64_t hash_after(size_t n) const { return undisturbed_->hashes[n - 1]; }

  Loaded m_;

 private:
  // The text token by token: the logits of each, and the state after it.
  struct Undisturbed {
    std::vector<int32_t> ids;
    std::vector<std::vector<float>> logits;
    std::vector<uint64_t> hashes;
  };
  const Undisturbed* undisturbed_ = nullptr;
};

TEST_P(State, AFailedStepNeverHappened) {
  for (size_t n : {1, 2, 16, 17, 40}) {
    const auto session = m_.session();
    m_.run(*session, part(0, 21), 64);
    for (int round = 0; round < 2; ++round) {
      const std::vector<Part> wrong = {{session.get(), guess(21, n, 0)}};
      m_.forward(wrong);
      m_.commit(wrong, std::vector<int>{0});
    }
    // Begun, but never computed.
    session->begin(guess(21, n, 0));
    session->commit(0);
    expect_undisturbed(*session, 21 + (large() ? 5 : 14), format("{} rows failed", n));
  }
}

TEST_P(State, TheFirstStepMayFail) {
  const auto session = m_.session();
  const std::vector<Part> wrong = {{session.get(), guess(0, 9, 0)}};
  m_.forward(wrong);
  m_.commit(wrong, std::vector<int>{0});
  const std::vector<float> logits = m_.step(*session, std::span(ids()).first(1));
  EXPECT_EQ(logits, this->logits(0));
  expect_undisturbed(*session, 14, "first step failed");
}

// Every depth of every window. Fourteen tokens on: longer than any tail looks back.
TEST_P(State, EveryDepthOfAWindow) {
  for (size_t n : {2, 3, 5, kWindow}) {
    for (size_t kept = 0; kept <= n; kept += large() ? 3 : 1) {
      const auto session = m_.session();
      const size_t start = 18 + kept % 5;
      m_.run(*session, part(0, start), 64);
      const std::vector<Part> window = {{session.get(), guess(start, n, kept)}};
      m_.forward(window);
      m_.commit(window, std::vector<int>{static_cast<int>(kept)});
      expect_undisturbed(*session, start + kept + (large() ? 4 : 14),
                         format("{} of {} kept", kept, n));
    }
  }
}

// Windows from the very start, where the tails are not full yet.
TEST_P(State, WindowsAtTheStart) {
  for (size_t kept = 1; kept <= 6; ++kept) {
    const auto session = m_.session();
    const std::vector<Part> window = {{session.get(), guess(0, 6, kept)}};
    m_.forward(window);
    m_.commit(window, std::vector<int>{static_cast<int>(kept)});
    expect_undisturbed(*session, kept + 14, format("{} of 6 kept", kept));
  }
}

// Two sessions with windows of their own in the same steps, kept to different depths, to the end.
TEST_P(State, RandomWindowsOfTwoSessions) {
  for (uint32_t seed = 1; seed <= (large() ? 1U : 5U); ++seed) {
    std::mt19937 rng(seed);
    const auto a = m_.session(), b = m_.session();
    SessionState* sessions[] = {a.get(), b.get()};
    for (;;) {
      std::vector<Part> parts;
      std::vector<int> kept;
      for (SessionState* session : sessions) {
        const auto at = static_cast<size_t>(session->n_committed());
        const size_t left = ids().size() - at;
        if (left == 0) continue;
        const size_t n = std::min<size_t>(1 + rng() % kWindow, left);
        const size_t right = rng() % (n + 1);
        parts.push_back({session, guess(at, n, right)});
        kept.push_back(static_cast<int>(right));
      }
      if (parts.empty()) break;
      if (rng() % 2 == 0) {
        std::reverse(parts.begin(), parts.end());
        std::reverse(kept.begin(), kept.end());
      }
      const std::vector<float> logits = m_.forward(parts);
      m_.commit(parts, kept);
      const auto n_vocab = static_cast<size_t>(m_.n_vocab());
      size_t row = 0;
      for (size_t i = 0; i < parts.size(); ++i) {
        const auto at =
            static_cast<size_t>(parts[i].session->n_committed()) - static_cast<size_t>(kept[i]);
        for (size_t j = 0; j < static_cast<size_t>(kept[i]); ++j) {
          ASSERT_EQ(std::memcmp(&logits[(row + j) * n_vocab], this->logits(at + j).data(),
                                n_vocab * sizeof(float)),
                    0)
              << "seed " << seed << " token " << at + j;
        }
        row += parts[i].ids.size();
        const size_t end = at + static_cast<size_t>(kept[i]);
        if (end == 0) continue;
        ASSERT_EQ(m_.hash(*parts[i].session), hash_after(end)) << "seed " << seed;
      }
    }
  }
}

TEST_P(State, ACheckpointBringsBackItsToken) {
  for (size_t n : {1, 13, 20}) {
    const auto session = m_.session();
    m_.run(*session, part(0, n), 7);
    const Checkpoint checkpoint = session->checkpoint();
    EXPECT_EQ(checkpoint.ids.size(), n);
    for (size_t more : {1, 9}) {
      // Other tokens, an odd and an even number of steps: the sides differ.
      m_.run(*session, guess(n, more, 0), more == 1 ? 1 : 5);
      session->restore(checkpoint);
      EXPECT_EQ(session->n_committed(), static_cast<int64_t>(n));
      EXPECT_EQ(m_.hash(*session), hash_after(n));
    }
    expect_undisturbed(*session, n + (large() ? 4 : 14), format("restored to {}", n));
  }
}

// An older checkpoint while the cells before it are as they were.
TEST_P(State, CheckpointsOfSeveralTokens) {
  const auto session = m_.session();
  std::vector<Checkpoint> checkpoints;
  for (size_t n : {5, 10, 15}) {
    m_.run(*session, part(n - 5, 5), 3);
    checkpoints.push_back(session->checkpoint());
  }
  for (size_t i : {2, 1, 0}) {
    session->restore(checkpoints[i]);
    expect_undisturbed(*session, 5 * (i + 1) + 3, format("checkpoint {}", i));
  }
}

TEST_P(State, ASessionTakesNoMoreThanItsTokens) {
  SessionState small(m_.model().states(), 3);
  m_.run(small, part(0, 2), 2);
  EXPECT_THROW(small.begin(part(2, 2)), Error);
  EXPECT_EQ(small.n_pending(), 0);
  m_.run(small, part(2, 1), 1);
}

TEST_P(State, SlotsAndPagesRunOutAndComeBack) {
  StatePools& pools = m_.model().states();
  const int pages = pools.n_free_pages();
  for (int round = 0; round < 2; ++round) {
    const auto a = m_.session(), b = m_.session(), c = m_.session();
    EXPECT_NE(a->slot(), b->slot());
    try {
      m_.session();
      ADD_FAILURE() << "a fourth session of three";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kResourceExhausted);
    }
  }
  EXPECT_EQ(pools.n_free_slots(), 3);
  EXPECT_EQ(pools.n_free_pages(), pages);
}

TEST(SessionFailures, TheSlotOfASessionThatCannotBeginComesBack) {
  Loaded m("tiny", {.slots = 2, .devices = "sim:1GiB"});
  StatePools& pools = m.model().states();
  const int pages = pools.n_free_pages();
  device::faults_of(m.stream().device()).add({.point = device::FaultPoint::kLaunch, .times = 3});
  for (int i = 0; i < 3; ++i) {
    const auto try_it = [&] {
      const auto session = m.session();
      session->begin(std::vector<int32_t>{1, 2});
    };
    EXPECT_THROW(try_it(), Error);
    EXPECT_EQ(pools.n_free_slots(), 2);
    EXPECT_EQ(pools.n_free_pages(), pages);
  }
}

// Whatever of the first step fails, the zeroing of a slot that was used before included.
TEST(SessionFailures, AFailedFirstStepIsRunAgain) {
  Loaded m("tiny", {.slots = 1, .devices = "sim:1GiB"});
  const std::vector<int32_t> ids = {7, 19, 301};
  const std::vector<float> wanted = m.step(*m.session(), ids);
  const auto use_the_slot = [&] { m.step(*m.session(), std::vector<int32_t>{90, 91, 92, 93}); };
  device::SimFaults& faults = device::faults_of(m.stream().device());
  for (uint64_t nth = 1; nth <= 40; nth += 3) {
    use_the_slot();
    use_the_slot();
    const auto session = m.session();
    faults.add({.point = device::FaultPoint::kRun, .nth = nth});
    EXPECT_THROW(m.step(*session, ids), Error) << nth;
    faults.clear();
    session->commit(0);
    EXPECT_EQ(m.step(*session, ids), wanted) << nth;
  }
}

TEST(SessionFailures, ACheckpointThatDoesNotFitIsRefused) {
  Loaded m("tiny", {.slots = 2});
  const auto session = m.session();
  m.step(*session, std::vector<int32_t>{1, 2, 3});
  const Checkpoint good = session->checkpoint();
  SessionState small(m.model().states(), 2);
  Checkpoint fewer = good, shorter = good, none = good;
  fewer.recurrent.pop_back();
  shorter.recurrent.back().pop_back();
  none.recurrent.clear();
  const auto refused = [&](SessionState& into, const Checkpoint& checkpoint) {
    try {
      into.restore(checkpoint);
      ADD_FAILURE() << "restored";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kInvalidArgument) << e.what();
    }
  };
  refused(small, good);
  for (const Checkpoint* each : {&fewer, &shorter, &none}) refused(*session, *each);
  EXPECT_EQ(session->n_committed(), 3);
  // Nothing computed yet is a state, too.
  const Checkpoint empty = small.checkpoint();
  const uint64_t fresh = m.hash(small);
  m.step(small, std::vector<int32_t>{5, 6});
  small.restore(empty);
  EXPECT_EQ(m.hash(small), fresh);
}

// Copies of state fail like everything else, and the session stays what it was.
TEST(SessionFailures, ARestoreThatFailsChangesNothing) {
  Loaded m("tiny", {.slots = 1, .devices = "sim:1GiB"});
  const auto session = m.session();
  m.step(*session, std::vector<int32_t>{1, 2, 3});
  const uint64_t early = m.hash(*session);
  const Checkpoint checkpoint = session->checkpoint();
  m.step(*session, std::vector<int32_t>{4, 5});
  const uint64_t late = m.hash(*session);
  EXPECT_NE(early, late);
  device::SimFaults& faults = device::faults_of(m.stream().device());
  for (const device::FaultPoint point : {device::FaultPoint::kCopy, device::FaultPoint::kRun}) {
    for (uint64_t nth = 1; nth <= checkpoint.recurrent.size(); ++nth) {
      faults.add({.point = point, .nth = nth});
      EXPECT_THROW(session->restore(checkpoint), Error) << nth;
      faults.clear();
      ASSERT_EQ(m.hash(*session), late) << nth;
    }
  }
  session->restore(checkpoint);
  EXPECT_EQ(m.hash(*session), early);
}

TEST(StateDeath, MoreThanTheWindowIsKeptWholeOrNotAtAll) {
  Loaded m("tiny-nople", {.chunk = 64, .window = 4});
  const auto session = m.session();
  session->begin(std::vector<int32_t>(5, 1));
  EXPECT_DEATH(session->commit(3), "");
  session->commit(0);
}

INSTANTIATE_TEST_SUITE_P(Qwen4Exp, State,
                         ::testing::Values("tiny", "tiny-yarn", "tiny-nople", "strata-demo"),
                         [](const auto& instance) {
                           std::string text = instance.param;
                           std::replace(text.begin(), text.end(), '-', '_');
                           return text;
                         });

}  // namespace
}  // namespace strata::model
