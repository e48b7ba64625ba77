#include "strata/text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <string>
#include <utility>

#include "strata/base/error.h"

namespace strata::text {
namespace {

using ::testing::HasSubstr;

std::vector<RenderedSegment> segments(std::string_view source, Value::Members variables = {},
                                      const TemplateLimits& limits = {}) {
  return ChatTemplate(source, "<s>", "</s>", limits).render(Value::map(std::move(variables)));
}

std::string text(std::string_view source, Value::Members variables = {},
                 const TemplateLimits& limits = {}) {
  return joined(segments(source, std::move(variables), limits));
}

// What is content in [brackets], the rest as it is.
std::string marked(std::string_view source, Value::Members variables = {}) {
  std::string out;
  for (const RenderedSegment& s : segments(source, std::move(variables))) {
    out += s.content ? "[" + s.text + "]" : s.text;
  }
  return out;
}

// The message of the error that rendering ends in.
std::string failure(std::string_view source, Value::Members variables = {},
                    const TemplateLimits& limits = {}) {
  try {
    return "rendered: " + text(source, std::move(variables), limits);
  } catch (const Error& e) {
    return e.what();
  }
}

Value::Members with(std::string_view name, Value value) {
  return {{std::string(name), std::move(value)}};
}

Value words() { return Value::list({Value::content("ab"), Value::content("cd")}); }

TEST(Marks, go_with_the_bytes_through_every_operation) {
  const auto x = [] { return with("x", Value::content("AbC dEf")); };
  EXPECT_EQ(marked("<{{ x }}>", x()), "<[AbC dEf]>");
  EXPECT_EQ(marked("{{ '<' + x + '>' }}", x()), "<[AbC dEf]>");
  EXPECT_EQ(marked("{{ '<' ~ x ~ 1 }}", x()), "<[AbC dEf]1");
  EXPECT_EQ(marked("{{ ('<' + x + '>')[1:-1] }}", x()), "[AbC dEf]");
  EXPECT_EQ(marked("{{ ('<' + x + '>')[::-1] }}", x()), ">[fEd CbA]<");
  EXPECT_EQ(marked("{{ ('<' + x)[0] }}{{ ('<' + x)[1] }}", x()), "<[A]");
  EXPECT_EQ(marked("{{ ('<' ~ x ~ '>')|upper }}", x()), "<[ABC DEF]>");
  EXPECT_EQ(marked("{{ ('<a' ~ x)|lower }}", x()), "<a[abc def]");
  EXPECT_EQ(marked("{{ ('a' ~ x)|capitalize }}|{{ x|title }}", x()), "A[abc def]|[Abc Def]");
  EXPECT_EQ(marked("{{ (' ' ~ x ~ ' ')|trim }}{{ x.strip('A') }}", x()), "[AbC dEfbC dEf]");
  EXPECT_EQ(marked("{{ x.split(' ')|join('|') }}", x()), "[AbC]|[dEf]");
  EXPECT_EQ(marked("{{ x.split()[1] }}", x()), "[dEf]");
  EXPECT_EQ(marked("{{ x|replace(' ', '|') }}", x()), "[AbC]|[dEf]");
  EXPECT_EQ(marked("{{ 'a b'|replace('a', x) }}", x()), "[AbC dEf] b");
  EXPECT_EQ(marked("{{ x|reverse }}{{ x|first }}{{ x|last }}", x()), "[fEd CbAAf]");
  EXPECT_EQ(marked("{{ [x, 'y']|join(', ') }}", x()), "[AbC dEf], y");
  EXPECT_EQ(marked("{{ '%s|%5s' % (x, 'y') }}", x()), "[AbC dEf]|[    ]y");
  EXPECT_EQ(marked("{{ '{}|{a}'.format(x, a=x) }}", x()), "[AbC dEf]|[AbC dEf]");
  EXPECT_EQ(marked("{{ ('a\\n' ~ x)|indent(2) }}", x()), "a\n  [AbC dEf]");
  EXPECT_EQ(marked("{{ x|e }}{{ x|safe }}{{ x|string }}", x()), "[AbC dEfAbC dEfAbC dEf]");
  EXPECT_EQ(marked("{{ x * 2 }}{{ x|default('d') }}", x()), "[AbC dEfAbC dEfAbC dEf]");
  EXPECT_EQ(marked("{% for c in x %}{{ c }}.{% endfor %}", with("x", Value::content("ab"))),
            "[a].[b].");
  EXPECT_EQ(marked("{% set y %}<{{ x }}>{% endset %}{{ y }}", x()), "<[AbC dEf]>");
  EXPECT_EQ(marked("{% filter upper %}a{{ x }}{% endfilter %}", x()), "A[ABC DEF]");
  EXPECT_EQ(marked("{% macro f(a) %}<{{ a }}{{ caller() }}{% endmacro %}"
                   "{% call f(x) %}|{{ x }}{% endcall %}",
                   x()),
            "<[AbC dEf]|[AbC dEf]");
  EXPECT_EQ(marked("{% set n = namespace(v='') %}{% set n.v = n.v ~ x ~ '!' %}{{ n.v }}", x()),
            "[AbC dEf]!");
  EXPECT_EQ(marked("{{ 'abc'.replace('b', x).partition('C')[1] }}", x()), "[C]");
}

TEST(Marks, keys_of_the_request_are_content) {
  const Value map = Value::map(Value::Members{{"<k>", Value::integer(1)}});
  EXPECT_EQ(marked("{% for k, v in x.items() %}{{ k }}={{ v }}{% endfor %}", with("x", map)),
            "[<k>]=1");
  EXPECT_EQ(marked("{% for k in x %}{{ k }}{% endfor %}", with("x", map)), "[<k>]");
  EXPECT_EQ(marked("{{ x|tojson }}", with("x", map)), "{[\"<k>\": 1}]");
}

TEST(Marks, json_and_repr_follow_their_strings) {
  EXPECT_EQ(marked("{{ ['a', x]|tojson }}.", with("x", Value::content("b\""))),
            "[\"a\", [\"b\\\"\"]].");
  EXPECT_EQ(marked("{{ ['a', 'b', 1]|tojson }}"), "[\"a\", \"b\", 1]");
  EXPECT_EQ(marked("{{ [x, 'a'] }}", with("x", Value::content("it's"))), "[[\"it's\", ]'a']");
}

TEST(Marks, trusted_strings_are_scaffolding) {
  EXPECT_EQ(marked("{{ '<|' + role + '|>' }}{{ bos_token }}{{ eos_token }}",
                   with("role", Value::scaffold("user"))),
            "<|user|><s></s>");
}

TEST(Marks, numbers_are_scaffolding_and_comparisons_see_the_text_alone) {
  EXPECT_EQ(marked("{{ x|length }}{{ x == 'ab' }}{{ 'a' in x }}", with("x", Value::content("ab"))),
            "2TrueTrue");
}

TEST(ChatTemplate, the_caller_may_ask_which_variables_it_has) {
  const ChatTemplate t("{{ a.b }}{% if enable_thinking %}{% endif %}", "", "");
  EXPECT_TRUE(t.mentions("a"));
  EXPECT_TRUE(t.mentions("enable_thinking"));
  EXPECT_FALSE(t.mentions("b"));
  EXPECT_FALSE(t.mentions("loop"));
  EXPECT_FALSE(t.mentions("enable_thinkin"));
}

TEST(ChatTemplate, the_clock_is_an_option) {
  std::tm now{};
  now.tm_year = 130;
  now.tm_mon = 1;
  now.tm_mday = 3;
  const ChatTemplate t("{{ strftime_now('%Y-%m-%d') }}", "", "");
  EXPECT_EQ(joined(t.render(Value::map(Value::Members{}), {.now = now})), "2030-02-03");
  EXPECT_EQ(joined(t.render(Value::map(Value::Members{}))).size(), 10u);
}

TEST(ChatTemplate, variables_of_the_caller_hide_functions) {
  EXPECT_EQ(text("{{ range }}", with("range", Value::integer(4))), "4");
}

TEST(ChatTemplate, the_names_of_functions_are_known) {
  for (const char* name : {"namespace", "range", "dict", "raise_exception", "strftime_now"}) {
    EXPECT_TRUE(ChatTemplate::is_function(name)) << name;
  }
  EXPECT_FALSE(ChatTemplate::is_function("enable_thinking"));
}

TEST(ChatTemplate, renders_twice_the_same) {
  const ChatTemplate t(
      "{% set n = namespace(i=0) %}{% for x in l %}{% set n.i = n.i + 1 %}{{ n.i }}"
      "{% endfor %}",
      "", "");
  const Value context = Value::map(with("l", words()));
  EXPECT_EQ(joined(t.render(context)), "12");
  EXPECT_EQ(joined(t.render(context)), "12");
}

TEST(Errors, name_the_line_and_the_cause) {
  EXPECT_EQ(failure("a\nb\n{{ x.y }}"), "chat template: line 3: 'x' is undefined");
  EXPECT_EQ(failure("{#\n#}\n{{ 'a\nb' +\n 1 }}"),
            "chat template: line 4: + does not work between str and int");
  EXPECT_EQ(
      failure("a\n{% if x %}"),
      "chat template: line 2: the template ends, but 'endif' is missing for the block of line 2");
  EXPECT_EQ(failure("\n\n{{ 'abc }}"), "chat template: line 3: a string does not end");
  EXPECT_EQ(failure("{% macro f() %}\n{{ raise_exception('no ' ~ role) }}{% endmacro %}\n{{ f() }}",
                    with("role", Value::content("tools"))),
            "chat template: line 2: no tools");
  EXPECT_EQ(failure("\n{{ messages[0].content|nosuch }}",
                    with("messages", Value::list({Value::map(with("content", Value()))}))),
            "chat template: line 2: the filter 'nosuch' does not exist here");
  EXPECT_THAT(failure("x\r\n{{ 1 // 0 }}"), HasSubstr("line 2: division by zero"));
  EXPECT_THAT(failure("{{ 9223372036854775807 + 1 }}"), HasSubstr("does not fit in 64 bits"));
  EXPECT_THAT(failure("\n\xff"), HasSubstr("line 2: the template is not UTF-8"));
}

TEST(Errors, a_template_that_cannot_be_read_is_a_damaged_file) {
  try {
    ChatTemplate("{% if x %}", "", "");
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kCorruptFile);
  }
  // One that can be read and refuses its context is not.
  try {
    text("{{ raise_exception('no') }}");
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kInvalidArgument);
  }
}

TEST(Errors, statements_that_are_not_there_are_refused_by_name) {
  for (const char* tag : {"include", "import", "from", "extends", "block", "do", "autoescape"}) {
    try {
      ChatTemplate(std::string("\n{% ") + tag + " 'x' %}", "", "");
      ADD_FAILURE() << tag;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kUnsupported);
      EXPECT_THAT(e.what(), HasSubstr(std::string("line 2: the statement '") + tag + "'"));
    }
  }
}

TEST(Errors, lists_and_maps_do_not_change) {
  EXPECT_THAT(failure("{% set x = l.append(1) %}", with("l", words())), HasSubstr("changes it"));
  EXPECT_THAT(failure("{{ {}.update({}) }}"), HasSubstr("changes it"));
}

TEST(Errors, a_context_is_a_map) { EXPECT_THROW(ChatTemplate("", "", "").render(Value()), Error); }

TEST(Limits, steps) {
  TemplateLimits limits;
  limits.max_steps = 10'000;
  const std::string loops =
      "{% for a in range(1000) %}{% for b in range(1000) %}{% endfor %}{% endfor %}";
  EXPECT_THAT(failure(loops, {}, limits), HasSubstr("needs more than 10000 steps"));
  EXPECT_EQ(text("{% for a in range(1000) %}{% endfor %}ok", {}, limits), "ok");
}

TEST(Limits, text_made_on_the_way) {
  TemplateLimits limits;
  limits.max_made_bytes = 1 << 20;
  EXPECT_THAT(failure("{% set x = 'a' * 9223372036854775807 %}", {}, limits),
              HasSubstr("bytes of text"));
  EXPECT_THAT(failure("{% set x = [1] * 9223372036854775807 %}", {}, limits),
              HasSubstr("bytes of text"));
  EXPECT_THAT(failure("{% set n = namespace(s='ab') %}{% for i in range(90) %}"
                      "{% set n.s = n.s ~ n.s %}{% endfor %}",
                      {}, limits),
              HasSubstr("bytes of text"));
  EXPECT_THAT(failure("{{ ('a' * 9000)|replace('', 'b' * 9000) }}", {}, limits),
              HasSubstr("bytes of text"));
  EXPECT_THAT(failure("{{ 'x'.center(99999999999) }}", {}, limits), HasSubstr("bytes of text"));
  EXPECT_THAT(failure("{{ '%99999d' % 1 }}{{ '{:99999}'.format(1) }}", {}, limits),
              HasSubstr("width"));
  EXPECT_THAT(failure("{{ ''|indent(99999999999) }}", {}, limits), HasSubstr("bytes of text"));
  EXPECT_EQ(text("{{ ('' * 9223372036854775807)|length }}", {}, limits), "0");
}

// What each of these asks for is far beyond the limits: it must not be made before it is refused.
TEST(Limits, small_templates_that_ask_for_much) {
  const std::string grow = "{% set n = namespace(s='abcdefghij') %}{% for i in range(60) %}";
  for (const std::string& source : {
           grow + "{% set n.s = n.s + n.s %}{% endfor %}",
           grow + "{% set n.s = n.s ~ n.s %}{% endfor %}",
           grow + "{% set n.s = n.s|upper + n.s|lower %}{% endfor %}",
           grow + "{% set n.s = [n.s, n.s]|join %}{% endfor %}",
           grow + "{% set n.s = '%s%s' % (n.s, n.s) %}{% endfor %}",
           grow + "{% set n.s = n.s|tojson %}{% set n.s = n.s + n.s %}{% endfor %}",
           std::string("{% set n = namespace(l=[1]) %}{% for i in range(60) %}"
                       "{% set n.l = n.l + n.l %}{% endfor %}"),
           std::string("{{ ('a' * 1000000)|replace('a', 'b' * 1000000) }}"),
           std::string("{{ ('a' * 1000000)|replace('', 'b' * 1000000) }}"),
           std::string("{{ range(100000)|join('x' * 100000)|length }}"),
           std::string("{{ ('x' * 6000000).split('x')|length }}"),
           std::string("{{ ('x' * 6000000)|list|length }}"),
           std::string("{{ '%s' * 100000 % (('a' * 100000,) * 100000) }}"),
           std::string("{{ dict([['a' * 1000000, 1]] * 100000)|length }}"),
           std::string("{% for a in range(1000) %}{% for b in range(100000) %}{% endfor %}"
                       "{% endfor %}"),
       }) {
    const std::clock_t begin = std::clock();
    EXPECT_THAT(failure(source), HasSubstr("the template ")) << source;
    // Processor time, below one second each in a release build.
    EXPECT_LT(std::clock() - begin, 10 * CLOCKS_PER_SEC) << source;
  }
}

TEST(Limits, what_is_held_at_the_same_time_counts_not_what_was) {
  TemplateLimits limits;
  limits.max_held_bytes = 1 << 20;
  // 100 times 100 KB, one after the other.
  EXPECT_EQ(text("{% for i in range(100) %}{% set x = 'a' * 100000 %}{% endfor %}ok", {}, limits),
            "ok");
  EXPECT_EQ(text("{% for i in range(100) %}{% set x = [1] * 10000 %}{% endfor %}ok", {}, limits),
            "ok");
  EXPECT_EQ(text("{% set n = namespace(s='') %}{% for i in range(1000) %}"
                 "{% set n.s = n.s + 'abcdefgh' %}{% endfor %}{{ n.s|length }}",
                 {}, limits),
            "8000");
  // 20 of them at once.
  EXPECT_THAT(failure("{% set n = namespace(l=[]) %}{% for i in range(20) %}"
                      "{% set n.l = n.l + ['a' * 100000] %}{% endfor %}",
                      {}, limits),
              HasSubstr("bytes of text"));
  limits.max_made_bytes = 1 << 20;
  EXPECT_THAT(
      failure("{% for i in range(100) %}{% set x = 'a' * 100000 %}{% endfor %}", {}, limits),
      HasSubstr("bytes of text"));
}

TEST(Limits, output) {
  TemplateLimits limits;
  limits.max_output_bytes = 1000;
  EXPECT_THAT(failure("{% for i in range(2000) %}x{% endfor %}", {}, limits),
              HasSubstr("writes more than 1000 bytes"));
}

TEST(Limits, a_list_that_holds_itself_twice_at_each_level) {
  // 2^40 items when printed or compared; the parts are shared.
  const std::string doubled =
      "{% set a = namespace(v=[]) %}{% set b = namespace(v=[]) %}{% for i in range(40) %}"
      "{% set a.v = [a.v, a.v] %}{% set b.v = [b.v, b.v] %}{% endfor %}";
  TemplateLimits limits;
  limits.max_steps = 1'000'000;
  EXPECT_THAT(failure(doubled + "{{ a.v }}", {}, limits), HasSubstr("more than"));
  EXPECT_THAT(failure(doubled + "{{ a.v == b.v }}", {}, limits), HasSubstr("more than"));
  EXPECT_THAT(failure(doubled + "{{ a.v|tojson }}", {}, limits), HasSubstr("more than"));
  EXPECT_EQ(text(doubled + "{{ a.v|length }}", {}, limits), "2");
}

TEST(Limits, a_range_reaches_across_all_integers) {
  EXPECT_EQ(
      text("{{ range(-9223372036854775807, 9223372036854775807, 4611686018427387904)|list }}"),
      "[-9223372036854775807, -4611686018427387903, 1, 4611686018427387905]");
  EXPECT_EQ(
      text("{{ range(9223372036854775807, -9223372036854775807, -9223372036854775807)|list }}"),
      "[9223372036854775807, 0]");
}

TEST(Limits, a_value_nested_too_deep_is_refused_where_it_is_made) {
  EXPECT_THAT(failure("{% set n = namespace(v=[]) %}{% for i in range(200) %}\n"
                      "{% set n.v = [n.v] %}{% endfor %}"),
              HasSubstr("line 2: nested too deep"));
}

TEST(Limits, the_size_of_a_template) {
  TemplateLimits limits;
  limits.max_source_bytes = 10;
  EXPECT_THAT(failure("01234567890", {}, limits), HasSubstr("11 bytes"));
}

}  // namespace
}  // namespace strata::text
