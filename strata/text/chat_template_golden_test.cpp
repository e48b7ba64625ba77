#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "strata/base/error.h"
#include "strata/gguf/model.h"
#include "strata/text/chat_template.h"
#include "tests/support/template_cases.h"

namespace strata::text {
namespace {

using strata::testing::golden_template;
using strata::testing::golden_time;
using strata::testing::Json;
using strata::testing::to_value;

const Json& golden() {
  static const Json document =
      Json::parse(strata::testing::read_text_file(STRATA_GOLDEN_DIR "/template/cases.json"));
  return document;
}

std::string source_of(const Json& one) {
  if (one.contains("source")) return one["source"].get<std::string>();
  return golden_template(one["template"].get<std::string>());
}

const Json& context_of(const Json& one) {
  return one["context"].is_string() ? golden()["variables"] : one["context"];
}

std::vector<RenderedSegment> render(const std::string& source, const Value& context) {
  const ChatTemplate chat_template(source, golden()["bos_token"].get<std::string>(),
                                   golden()["eos_token"].get<std::string>());
  return chat_template.render(context, {.now = golden_time()});
}

TEST(ChatTemplateGolden, every_case_equals_jinja2) {
  int n_rendered = 0;
  for (const Json& one : golden()["cases"]) {
    SCOPED_TRACE(one["name"].get<std::string>());
    if (!one.contains("expected")) continue;
    try {
      EXPECT_EQ(joined(render(source_of(one), to_value(context_of(one)))),
                one["expected"].get<std::string>());
    } catch (const Error& e) {
      ADD_FAILURE() << e.what();
    }
    ++n_rendered;
  }
  EXPECT_GE(n_rendered, 60);
}

TEST(ChatTemplateGolden, what_jinja2_refuses_is_an_error_with_a_line) {
  int n_refused = 0;
  for (const Json& one : golden()["cases"]) {
    SCOPED_TRACE(one["name"].get<std::string>());
    if (one.contains("expected")) continue;
    ++n_refused;
    try {
      const std::string text = joined(render(source_of(one), to_value(context_of(one))));
      ADD_FAILURE() << "rendered: " << text;
    } catch (const Error& e) {
      EXPECT_THAT(e.what(), ::testing::HasSubstr("chat template: line "));
      EXPECT_TRUE(e.code() == ErrorCode::kInvalidArgument || e.code() == ErrorCode::kCorruptFile ||
                  e.code() == ErrorCode::kUnsupported);
      if (one.contains("raises")) {
        EXPECT_EQ(e.message(), one["raises"].get<std::string>());
      }
    }
  }
  EXPECT_GE(n_refused, 60);
}

// A letter that no template holds, at both ends of every text of the request.
constexpr std::string_view kMark = "\u2620";

TEST(ChatTemplateGolden, text_of_the_request_is_never_scaffolding) {
  int n_marked = 0;
  for (const Json& one : golden()["cases"]) {
    if (!one.contains("template")) continue;
    SCOPED_TRACE(one["name"].get<std::string>());
    const Value context = to_value(one["context"], [](std::string text) {
      // What templates compare with has to stay as it is.
      static const char* const kKept[] = {
          "system", "user",   "assistant", "tool",     "developer", "text",    "array",
          "object", "string", "number",    "function", "integer",   "boolean", "image_url"};
      const bool kept = std::find(std::begin(kKept), std::end(kKept), text) != std::end(kKept);
      return kept ? text : std::string(kMark) + text + std::string(kMark);
    });
    try {
      const auto segments = render(source_of(one), context);
      for (size_t i = 0; i < segments.size(); ++i) {
        const bool marked = segments[i].text.find(kMark) != std::string::npos;
        EXPECT_FALSE(marked && !segments[i].content) << segments[i].text;
        EXPECT_FALSE(segments[i].text.empty());
        if (i > 0) {
          EXPECT_NE(segments[i].content, segments[i - 1].content);
        }
        n_marked += marked ? 1 : 0;
      }
    } catch (const Error& e) {
      EXPECT_FALSE(one.contains("expected")) << e.what();
    }
  }
  EXPECT_GT(n_marked, 200);
}

TEST(ChatTemplateGolden, the_demo_template_is_that_of_the_model) {
  const auto model = gguf::Model::open(STRATA_SOURCE_DIR "/models/strata-demo.gguf");
  EXPECT_EQ(model.metadata().get_string("tokenizer.chat_template"), golden_template("demo.jinja"));
}

}  // namespace
}  // namespace strata::text
