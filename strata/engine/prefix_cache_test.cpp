#include "strata/engine/prefix_cache.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "strata/base/format.h"
#include "strata/engine/keep_points.h"
#include "strata/engine/test_engine.h"

// A prompt that begins as one before goes on from its state, and nobody can tell by the answer.
namespace strata::engine {
namespace {

using testing::prompt;
using testing::TinyEngine;
using testing::TinyOptions;
using Ids = std::vector<int32_t>;

constexpr Bytes kRoom = Bytes{64} << 20;

TinyOptions cached(int slots = 2) {
  TinyOptions options;
  options.slots = slots;
  options.context = 256;
  options.cache.bytes = kRoom;
  return options;
}

TinyOptions plain() {
  TinyOptions options;
  options.slots = 1;
  options.context = 256;
  return options;
}

Ids alone(const Ids& ids, int max_tokens, const std::function<void(wire::Submit&)>& edit = {}) {
  TinyEngine engine(plain());
  engine.submit(1, ids, max_tokens, edit);
  engine.run_all();
  return engine[1].ids;
}

Ids operator+(Ids a, const Ids& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Asks and compares with a fresh engine; returns how many tokens came from the cache.
class Asked {
 public:
  explicit Asked(const TinyOptions& options = cached()) : engine_(options) {}
  int operator()(const Ids& ids, int max_tokens = 6) {
    engine_.submit(++id_, ids, max_tokens);
    engine_.run_all();
    EXPECT_TRUE(engine_[id_].finished);
    EXPECT_EQ(engine_[id_].ids, alone(ids, max_tokens)) << ids.size() << " tokens";
    if (!engine_[id_].finished) return -1;
    EXPECT_EQ(engine_[id_].finished->usage.prompt_tokens, static_cast<int>(ids.size()));
    return engine_[id_].finished->usage.cached_tokens;
  }
  const Ids& answer() { return engine_[id_].ids; }
  TinyEngine& engine() { return engine_; }

 private:
  TinyEngine engine_;
  wire::RequestId id_ = 0;
};

TEST(PrefixCache, F051_TurnsGoOnAndEditsReuseUpToTheEdit) {
  Asked ask;
  const Ids first = prompt(120, 1);
  EXPECT_EQ(ask(first), 0);
  const Ids second = first + ask.answer() + prompt(20, 2);
  // All that was computed: the last token of an answer never is.
  EXPECT_EQ(ask(second), 120 + 5);
  Ids edited = second;
  for (size_t i = edited.size() - 5; i < edited.size(); ++i) edited[i] = 3;
  EXPECT_EQ(ask(edited), 120 + 5);
  // Where the two part was kept while the edited one was read.
  Ids again = second;
  again.back() = 9;
  EXPECT_GE(ask(again), 120 + 5);
}

TEST(PrefixCache, F052_PromptsOfEverySize) {
  for (const int n : {1, 5, 30, 31, 32, 63, 64, 65, 128}) {
    Asked ask;
    const Ids ids = prompt(n, n);
    EXPECT_EQ(ask(ids), 0);
    const Ids extended = ids + ask.answer() + prompt(3, 5);
    const int n_cached = ask(extended);
    EXPECT_EQ(n_cached, n + 5 >= static_cast<int>(PrefixCache::kLeastTokens) ? n + 5 : 0) << n;
    Ids edited = ids;
    edited.back() = edited.back() % 400 + 1;
    ask(edited);
    ask(ids);
  }
}

// Room for four states: the root of two questions survives a chat in between.
TEST(PrefixCache, F053_TheSharedBeginningSurvives) {
  TinyOptions options = cached();
  options.chunk = 64;
  {
    TinyEngine engine(options);
    const Bytes each = engine.instance().model().states().recurrent_bytes();
    options.cache.bytes = 4 * each;
  }
  Asked ask(options);
  const Ids document = prompt(160, 7);
  EXPECT_EQ(ask(document + prompt(20, 1)), 0);
  EXPECT_EQ(ask(document + prompt(21, 2)), 0) << "the answer's end is no beginning of it";
  EXPECT_EQ(ask(prompt(40, 3)), 0);
  EXPECT_EQ(ask(document + prompt(22, 4)), 160);
  EXPECT_EQ(ask(prompt(50, 5)), 0);
  EXPECT_EQ(ask(document + prompt(9, 6)), 160);
}

TEST(PrefixCache, F054_WhatWasCancelledIsReusedAsFarAsItWasRead) {
  Asked ask;
  TinyEngine& engine = ask.engine();
  const Ids ids = prompt(120, 4);
  engine.submit(100, ids, 10);
  for (int i = 0; i < 4; ++i) engine.engine().step();
  engine.engine().command(100, wire::Cancel{});
  engine.run_all();
  EXPECT_EQ(engine[100].finished->reason, wire::Reason::kCancelled);
  EXPECT_EQ(ask(ids + prompt(10, 1)), 64);
  // In its answer.
  engine.submit(101, prompt(40, 9), 100);
  for (int i = 0; i < 9; ++i) engine.engine().step();
  engine.engine().command(101, wire::Cancel{});
  engine.run_all();
  EXPECT_GT(ask(prompt(40, 9) + engine[101].ids), 40);
}

TEST(PrefixCache, F057_ALongAnswerDoesNotLeakIntoTheNextChat) {
  Asked ask;
  const Ids system = prompt(48, 1);
  for (int i = 0; i < 6; ++i) {
    ask(system + prompt(10 + i, 20 + i), i % 2 == 0 ? 100 : 5);
  }
}

TEST(PrefixCache, CellsAreSharedAndLeaveRoomForWhoeverNeedsIt) {
  TinyOptions options = cached(2);
  Asked ask(options);
  const model::StatePools& pools = ask.engine().instance().model().states();
  for (int i = 0; i < 30; ++i) {
    ask(prompt(100 + i, i), 4);
    EXPECT_EQ(pools.n_free_slots(), 2);
    EXPECT_EQ(pools.n_unreserved_pages(), pools.n_pages());
  }
  // Two that need all pages there are.
  ask.engine().submit(500, prompt(100, 77), 156);
  ask.engine().submit(501, prompt(101, 78), 155);
  ask.engine().run_all();
  EXPECT_EQ(ask.engine()[500].ids, alone(prompt(100, 77), 156));
  EXPECT_EQ(ask.engine()[501].ids, alone(prompt(101, 78), 155));
}

TEST(PrefixCache, SessionsThatGoOnFromOneStateDoNotMeet) {
  Asked ask(cached(3));
  const Ids common = prompt(90, 3);  // ends inside a page
  ask(common);
  TinyEngine& engine = ask.engine();
  std::vector<Ids> ids;
  for (int i = 0; i < 3; ++i) {
    ids.push_back(common + ask.answer() + prompt(5 + i, 40 + i));
    engine.submit(static_cast<wire::RequestId>(200 + i), ids.back(), 40);
  }
  engine.run_all();
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(engine[200 + i].finished->usage.cached_tokens, 95);
    EXPECT_EQ(engine[200 + i].ids, alone(ids[i], 40)) << i;
  }
}

TEST(PrefixCache, WithTheDraftLayerAndOnASimulatedCard) {
  for (const char* device : {"host", "sim:1GiB"}) {
    TinyOptions options = cached();
    options.mtp = true;
    options.drafts.most = 3;
    options.device = device;
    Asked ask(options);
    const Ids first = prompt(70, 1);
    ask(first, 20);
    EXPECT_EQ(ask(first + ask.answer() + prompt(7, 2), 30), 70 + 19) << device;
  }
}

class Folder {
 public:
  Folder()
      : path_(std::filesystem::temp_directory_path() / format("strata-states-{}", ::getpid())) {
    std::filesystem::remove_all(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string path() const { return path_.string(); }
  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> all;
    for (const auto& each : std::filesystem::directory_iterator(path_)) all.push_back(each.path());
    return all;
  }

 private:
  std::filesystem::path path_;
};

TEST(StateFiles, F056_ConversationsSurviveTheEngine) {
  const Folder folder;
  TinyOptions options = cached();
  options.mtp = true;
  options.drafts.most = 2;
  options.cache.folder = folder.path();
  options.cache.fingerprint = 7;
  const Ids a = prompt(100, 1), b = prompt(80, 2);
  Ids second_a, second_b;
  {
    Asked ask(options);
    ask(a);
    second_a = a + ask.answer() + prompt(9, 3);
    ask(b);
    second_b = b + ask.answer() + prompt(9, 4);
  }
  EXPECT_EQ(folder.files().size(), 2u);
  {
    Asked ask(options);
    EXPECT_EQ(ask(second_b), 85);
    EXPECT_EQ(ask(second_a), 105);
  }
  // Without the draft layer it is another layout, and another model has another fingerprint.
  for (const bool other_model : {false, true}) {
    TinyOptions other = options;
    other.mtp = other_model;
    other.cache.fingerprint = other_model ? 8 : 7;
    EXPECT_EQ(Asked(other)(second_b), 0) << other_model;
  }
}

// A template may show an answer otherwise than it was written: then the next turn parts from this
// one where the answer's message begins.
TEST(StateFiles, F056_TheLastMessageSurvivesAsWell) {
  const Folder folder;
  TinyOptions options = cached();
  options.cache.folder = folder.path();
  const Ids first = prompt(100, 1);
  {
    TinyEngine engine(options);
    engine.submit(1, first, 6, [](wire::Submit& s) { s.boundaries = {40, 90}; });
    engine.run_all();
  }
  EXPECT_EQ(folder.files().size(), 2u);
  const Ids begun(first.begin(), first.begin() + 90);
  EXPECT_EQ(Asked(options)(begun + prompt(20, 5)), 90);
}

TEST(StateFiles, F056_DamagedFilesAreLeftAlone) {
  const Folder folder;
  TinyOptions options = cached();
  options.cache.folder = folder.path();
  const Ids ids = prompt(100, 1);
  Ids second;
  {
    Asked ask(options);
    ask(ids);
    second = ids + ask.answer() + prompt(9, 3);
  }
  ASSERT_EQ(folder.files().size(), 1u);
  const std::filesystem::path file = folder.files().front();
  const auto size = std::filesystem::file_size(file);
  std::string bytes(size, '\0');
  std::ifstream(file, std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(size));
  const auto with = [&](const std::string& content) {
    for (const auto& each : folder.files()) std::filesystem::remove(each);
    std::ofstream(file, std::ios::binary) << content;
    return Asked(options)(second);
  };
  EXPECT_EQ(with(bytes), 105) << "whole";
  for (const size_t at :
       {size_t{0}, size_t{9}, size_t{20}, size_t{30}, size_t{100}, size / 2, size - 1}) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    EXPECT_EQ(with(damaged), 0) << "byte " << at;
  }
  for (const size_t n : {size_t{0}, size_t{40}, size / 2, size - 1}) {
    EXPECT_EQ(with(bytes.substr(0, n)), 0) << n << " bytes";
  }
  EXPECT_EQ(with(bytes + "x"), 0);
}

// An answer that another engine began, from every one of its tokens.
TEST(Resume, AnAnswerGoesOnWithTheBytesItWouldHaveHad) {
  const auto edit = [](wire::Submit& s) {
    s.sampling.temperature = 1.1F;
    s.sampling.seed = 5;
    s.sampling.presence_penalty = 0.5F;
    s.sampling.repetition_penalty = 1.2F;
  };
  TinyEngine whole(plain());
  whole.submit(1, prompt(30, 2), 24, edit);
  whole.run_all();
  const std::string bytes = whole[1].bytes;
  ASSERT_GE(bytes.size(), 20u);
  // Ends at a stop string, which may lie across the cut.
  const std::string stop = bytes.substr(bytes.size() - 4, 3);
  const auto with_stop = [&](wire::Submit& s) {
    edit(s);
    s.stops = {stop};
  };
  TinyEngine stopped(plain());
  stopped.submit(1, prompt(30, 2), 24, with_stop);
  stopped.run_all();
  const Ids ids = stopped[1].ids;
  TinyOptions options = cached();
  options.drafts.most = 3;
  TinyEngine engine(options);
  for (size_t cut = 1; cut <= ids.size(); ++cut) {
    // What the first engine had sent by then.
    StopMatcher matcher({stop});
    std::string sent;
    for (size_t i = 0; i < cut; ++i) {
      const int32_t id = ids[i];
      if (engine.tokenizer().contains(id) && !engine.tokenizer().is_control(id)) {
        sent += matcher.push(engine.tokenizer().piece(id));
      }
    }
    engine.submit(cut, prompt(30, 2), 24, [&](wire::Submit& s) {
      with_stop(s);
      s.sent.assign(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(cut));
    });
    engine.run_all();
    ASSERT_TRUE(engine[cut].finished) << cut;
    EXPECT_EQ(sent + engine[cut].bytes, stopped[1].bytes) << cut;
    EXPECT_EQ(engine[cut].ids, Ids(ids.begin() + static_cast<std::ptrdiff_t>(cut), ids.end()));
    EXPECT_EQ(engine[cut].finished->reason, stopped[1].finished->reason);
    EXPECT_EQ(engine[cut].finished->usage.completion_tokens, static_cast<int>(ids.size()));
  }
}

TEST(KeepPoints, WhereConversationsPartAndMessagesBegin) {
  TinyEngine engine(plain());
  const text::Tokenizer& tokenizer = engine.tokenizer();
  const Ids text = prompt(2000, 1);
  using Points = std::vector<size_t>;
  EXPECT_EQ(keep_points(text, {}, 0, 700, 64, tokenizer), (Points{512, 700, 1024, 1536}));
  EXPECT_EQ(keep_points(text, Ids{10, 1900}, 1500, 1500, 64, tokenizer), (Points{1900}));
  EXPECT_EQ(keep_points(text, Ids{300, 800, 1900}, 0, 0, 512, tokenizer),
            (Points{300, 512, 1024, 1536, 1900}));
  EXPECT_EQ(keep_points(text, Ids{1990}, 1980, 1985, 64, tokenizer), Points());
  EXPECT_EQ(keep_points(prompt(20, 1), {}, 0, 5, 64, tokenizer), Points());
  int32_t control = 0;
  while (control < 512 && !(tokenizer.contains(control) && tokenizer.is_control(control))) {
    ++control;
  }
  ASSERT_LT(control, 512) << "the vocabulary has control tokens";
  Ids chat = prompt(200, 2);
  std::ranges::replace_if(
      chat, [&](int32_t id) { return tokenizer.is_control(id); }, 7);
  chat[60] = chat[150] = chat[151] = control;
  EXPECT_EQ(keep_points(chat, {}, 0, 0, 64, tokenizer), (Points{150}));
}

}  // namespace
}  // namespace strata::engine
