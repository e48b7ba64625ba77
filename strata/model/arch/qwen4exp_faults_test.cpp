#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/device/sim/sim_faults.h"
#include "strata/model/test_model.h"

// One failure anywhere, on cards that hold some experts, swap between all steps, and read others
// from storage: the step that it met is run again, and nothing else changes.
namespace strata::model {
namespace {

using device::FaultPoint;
using model::testing::Loaded;
using model::testing::LoadOptions;

constexpr size_t kSites = 6;  // of each kind and card, besides first, second and last
const char* name_of(FaultPoint point) {
  return point == FaultPoint::kCopy ? "copy" : point == FaultPoint::kLaunch ? "launch" : "run";
}

class OneFault : public ::testing::Test {
 protected:
  OneFault()
      : ids_(model::testing::text_of("tiny")),
        m_("tiny", {.chunk = 16,
                    .slots = 3,
                    .devices = "sim,sim",
                    .expert_slots = 2,
                    .expert_ram = Bytes{300} << 10,
                    .swap_margin = -1}) {}

  device::SimFaults& faults(int card) { return device::faults_of(m_.device(card)); }

  // Three requests in company: prompts in pieces of 7, then some tokens each. A step that fails is
  // withdrawn and run again.
  std::vector<float> requests() {
    std::vector<std::unique_ptr<SessionState>> sessions;
    for (int i = 0; i < 3; ++i) sessions.push_back(m_.session());
    std::vector<float> all;
    for (const auto& [from, n] : {std::pair<size_t, size_t>{0, 5}, {5, 1}, {6, 1}, {7, 1}}) {
      std::vector<Loaded::Part> parts;
      for (size_t i = 0; i < sessions.size(); ++i) {
        const auto first = ids_.begin() + static_cast<std::ptrdiff_t>(from + 9 * i);
        parts.push_back({sessions[i].get(), {first, first + static_cast<std::ptrdiff_t>(n)}});
      }
      const std::vector<float> logits = step(parts);
      all.insert(all.end(), logits.begin(), logits.end());
    }
    return all;
  }

  std::vector<float> step(std::span<const Loaded::Part> parts) {
    for (int attempt = 0; attempt < 3; ++attempt) {
      try {
        std::vector<float> logits = m_.forward(parts);
        for (const Loaded::Part& part : parts) {
          part.session->commit(static_cast<int>(part.ids.size()));
        }
        return logits;
      } catch (const Error& e) {
        ++n_failed_;
        expect_injected(e);
        settle();
        for (const Loaded::Part& part : parts) part.session->commit(0);
      }
    }
    ADD_FAILURE() << "a step failed three times";
    return {};
  }

  static void expect_injected(const Error& e) {
    EXPECT_NE(std::string(e.what()).find("injected"), std::string::npos) << e.what();
  }

  // What is queued still runs; each wait may tell what failed.
  void settle() {
    for (int i = 0; i < 20; ++i) {
      try {
        m_.wait();
        return;
      } catch (const Error&) {
      }
    }
    ADD_FAILURE() << "the streams never end";
  }

  std::vector<int32_t> ids_;
  Loaded m_;
  int n_failed_ = 0;
};

TEST_F(OneFault, IsOneStepRunAgain) {
  const std::vector<float> expected = requests();
  ASSERT_EQ(n_failed_, 0);
  std::mt19937 random(5);
  for (const FaultPoint point : {FaultPoint::kCopy, FaultPoint::kLaunch, FaultPoint::kRun}) {
    for (const int card : {1, 2}) {
      const uint64_t before = faults(card).n_passed(point);
      EXPECT_EQ(requests(), expected);
      const uint64_t n = faults(card).n_passed(point) - before;
      ASSERT_GT(n, 10U);
      std::set<uint64_t> sites = {1, 2, n};
      while (sites.size() < 3 + kSites) sites.insert(1 + random() % n);
      for (const uint64_t nth : sites) {
        n_failed_ = 0;
        faults(card).add({.point = point, .nth = nth});
        const std::vector<float> got = requests();
        EXPECT_EQ(got.size(), expected.size());
        EXPECT_EQ(std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)), 0)
            << name_of(point) << " " << nth << " of card " << card;
        // Which work there is depends on what is where, so the last one may not come.
        EXPECT_LE(n_failed_, 1);
        if (nth < n / 2) {
          EXPECT_EQ(n_failed_, 1) << name_of(point) << " " << nth;
        }
        faults(card).clear();
      }
    }
  }
  EXPECT_GT(m_.model().slot_counters().swapped, 10U);
  EXPECT_GT(m_.model().pool_counters().misses, 10U);
}

}  // namespace
}  // namespace strata::model
