#include "strata/wire/codec.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>
#include <utility>

#include "strata/base/error.h"

namespace strata::wire {
namespace {

Submit sample_submit() {
  Submit s;
  s.ids = {0, 1, 4095, std::numeric_limits<int32_t>::max(), -1};
  s.sampling = {.temperature = 0.7f,
                .top_k = 40,
                .top_p = 0.9f,
                .min_p = 0.05f,
                .presence_penalty = 0.5f,
                .frequency_penalty = -0.25f,
                .repetition_penalty = 1.1f,
                .repetition_window = -1,
                .seed = std::numeric_limits<uint64_t>::max(),
                .logit_bias = {{7, -100}, {9, 2.5f}}};
  s.stops = {"\n", std::string("nul\0inside", 10), "\xF0\x9F\x98\x80"};
  s.stop_ids = {2, 3};
  s.max_tokens = 17;
  s.sent = {4, 5};
  s.boundaries = {1, 3};
  s.grammar = "root ::= \"a\"";
  s.reasoning = {true, "<think>", "</think>", 8, {6, 7}};
  s.n_top_logprobs = 3;
  return s;
}

std::vector<Command> all_commands() { return {sample_submit(), Submit{}, Cancel{}, Shutdown{}}; }

std::vector<Event> all_events() {
  return {
      Progress{3, 100, 2},
      Tokens{{1, 2, 3}, "half \xE2\x82"},
      Tokens{{1, 2}, "", {{-0.5f, {{1, -0.5f}, {2, -1.5f}}}, {-3, {}}}},
      Tokens{},
      Finished{Reason::kStopString, {5, 6, 1, 2}, {0.5, 1.25, 1e9, 3}, {4, {3, 2}, {2, 1}}, "END"},
      Failed{ErrorCode::kCancelled, "too late"},
      Ready{{512, 511, 4, 4096},
            {{{"RAM", 1ull << 40, 2, 3, 4, 0, {{"state", "pages", "2 x 3 B", 6, "always", true}}},
              {"card", 5, 6, 7, 8, 9, {}}},
             10}},
      Pulse{"reading 3 %",
            "a step on device 0",
            12,
            512,
            3,
            4,
            9,
            1ull << 40,
            5,
            {1, 2, 1ull << 33, 4, 6, {7, {8}, {9}}, 10, 11, {12, 13, 14, 15, 16, 17, 18}},
            {{"graphs", 1}, {"drafting", 0}},
            {"graphs are off"}},
      Leaving{ErrorCode::kDeviceLost, "the card is gone", "copy at layer 3"},
  };
}

// The one frame that `bytes` consists of.
std::pair<Frame, std::string> cut(const std::string& bytes) {
  FrameReader reader;
  reader.append(bytes);
  std::string_view payload;
  const auto frame = reader.next(payload);
  EXPECT_TRUE(frame.has_value());
  std::string copy(payload);
  EXPECT_FALSE(reader.next(payload).has_value());
  return {frame.value_or(Frame{}), copy};
}

TEST(Codec, CommandsComeBackAsTheyWere) {
  for (const Command& command : all_commands()) {
    std::string bytes;
    encode(7, 1ull << 40, command, bytes);
    const auto [frame, payload] = cut(bytes);
    EXPECT_EQ(frame.engine, 7u);
    EXPECT_EQ(frame.request, 1ull << 40);
    EXPECT_EQ(frame.version, kVersion);
    EXPECT_TRUE(decode_command(frame, payload) == command);
  }
}

// What a request says can come to more than a frame holds: no reason to end the process.
TEST(Codec, WhatIsTooLongIsRefusedAndLeavesNothing) {
  Submit submit;
  submit.grammar.assign(kMaxPayloadBytes, 'a');
  std::string bytes = "before";
  try {
    encode(1, 2, Command(submit), bytes);
    ADD_FAILURE() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUnsupported);
  }
  EXPECT_EQ(bytes, "before");
}

TEST(Codec, EventsComeBackAsTheyWere) {
  for (const Event& event : all_events()) {
    std::string bytes;
    encode(1, 2, event, bytes);
    const auto [frame, payload] = cut(bytes);
    EXPECT_TRUE(decode_event(frame, payload) == event) << "type " << frame.type;
  }
}

TEST(Codec, BytesAreLittleEndianAndFixed) {
  std::string bytes;
  encode(0x01020304, 0x1112131415161718, Event(Progress{1, 2, -1}), bytes);
  const std::string expected(
      "\x0c\0\0\0\x06\0\x40\0\x04\x03\x02\x01\x18\x17\x16\x15\x14\x13\x12\x11"
      "\x01\0\0\0\x02\0\0\0\xff\xff\xff\xff",
      32);
  EXPECT_EQ(bytes, expected);
}

TEST(FrameReader, PiecesOfAnySizeGiveTheSameFrames) {
  std::string bytes;
  for (const Event& event : all_events()) encode(1, 2, event, bytes);
  for (size_t piece : {size_t{1}, size_t{3}, size_t{19}, size_t{20}, size_t{21}, bytes.size()}) {
    FrameReader reader;
    std::vector<Event> got;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      reader.append(std::string_view(bytes).substr(at, piece));
      std::string_view payload;
      while (const auto frame = reader.next(payload)) got.push_back(decode_event(*frame, payload));
    }
    EXPECT_TRUE(got == all_events()) << "pieces of " << piece;
  }
}

TEST(FrameReader, RefusesOtherVersionsAndHugeLengths) {
  std::string bytes;
  encode(1, 2, Command(Cancel{}), bytes);
  std::string_view payload;
  {
    std::string other = bytes;
    other[4] = static_cast<char>(kVersion + 1);
    FrameReader reader;
    reader.append(other);
    EXPECT_THROW(reader.next(payload), Error);
  }
  {
    std::string huge = bytes;
    huge[3] = '\x7f';
    FrameReader reader;
    reader.append(huge);
    EXPECT_THROW(reader.next(payload), Error);
  }
}

// F-122: every cut of every message is an error, never a message.
TEST(Codec, F122_TruncatedPayloadsAreRefused) {
  for (const Event& event : all_events()) {
    std::string bytes;
    encode(1, 2, event, bytes);
    const auto [frame, payload] = cut(bytes);
    for (size_t size = 0; size < payload.size(); ++size)
      EXPECT_THROW(decode_event(frame, std::string_view(payload).substr(0, size)), Error);
    EXPECT_THROW(decode_event(frame, payload + "x"), Error);
  }
}

TEST(Codec, RefusesUnknownTypesCodesAndCounts) {
  std::string bytes;
  encode(1, 2, Event(Finished{}), bytes);
  auto [frame, payload] = cut(bytes);
  EXPECT_THROW(decode_command(frame, payload), Error);
  payload[0] = 4;  // Reason has 0 to 3
  EXPECT_THROW(decode_event(frame, payload), Error);
  bytes.clear();
  encode(1, 2, Event(Failed{ErrorCode::kCancelled, ""}), bytes);
  auto [failed, code] = cut(bytes);
  ++code[0];
  EXPECT_THROW(decode_event(failed, code), Error);
  frame.type = 71;
  EXPECT_THROW(decode_event(frame, payload), Error);

  bytes.clear();
  encode(1, 2, Event(Tokens{}), bytes);
  auto [tokens, lying] = cut(bytes);
  lying.replace(0, 4, "\xff\xff\xff\xff");
  EXPECT_THROW(decode_event(tokens, lying), Error);
}

TEST(Codec, AnyBytesEndInAMessageOrAnError) {
  std::mt19937 random(1);
  std::string submit;
  encode(1, 2, Command(sample_submit()), submit);
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = submit;
    for (int k = 0; k < 3; ++k) bytes[random() % bytes.size()] = static_cast<char>(random());
    FrameReader reader;
    reader.append(bytes);
    std::string_view payload;
    try {
      while (const auto frame = reader.next(payload)) {
        const Command command = decode_command(*frame, payload);
        // What is accepted says the same again.
        std::string again;
        encode(frame->engine, frame->request, command, again);
        EXPECT_EQ(again, bytes.substr(0, again.size()));
      }
    } catch (const Error&) {
    }
  }
}

}  // namespace
}  // namespace strata::wire
