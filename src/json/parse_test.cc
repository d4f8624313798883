#include "json/parse.h"

#include <gmock/gmock.h>

#include <cmath>

#include "json/go_parser.h"
#include "json/random_value.h"

namespace dibs::json {
namespace {

using testing::ElementsAre;

std::string nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

std::string error_of(std::string_view text, const ParseOptions& options = {}) {
  auto parsed = parse(text, options);
  return parsed.ok() ? "ok: " + write(*parsed).substr(0, 100) : parsed.error().message();
}

TEST(Parse, reads_and_writes_back) {
  struct Case {
    std::string text;
    std::string written;
  };
  const Case cases[] = {
      {"null", "null"},
      {" \n\ttrue\r ", "true"},
      {"[ ]", "[]"},
      {"{ }", "{}"},
      {R"({"b":1,"a":[{},[],"x",false]})", R"({"b":1,"a":[{},[],"x",false]})"},
      {"9223372036854775807", "9223372036854775807"},
      {"-9223372036854775808", "-9223372036854775808"},
      {"9223372036854775808", "9223372036854776000"},
      {"18446744073709551616", "18446744073709552000"},
      {"123456789012345678901234567890", "1.2345678901234568e+29"},
      {"-0", "0"},
      {"-0.0", "-0"},
      {"1.0", "1"},
      {"1e2", "100"},
      {"1E+2", "100"},
      {"0.1", "0.1"},
      {"1e-400", "0"},
      {"-1e-400", "-0"},
      {R"("\u00e9\n\ud83d\ude00é")", "\"é\\n😀é\""},
      {R"("\u0000\u0001\b\f\/")", R"("\u0000\u0001\b\f/")"},
      {R"("\ud800")", "\"\uFFFD\""},
      {R"("\ud800\u0041")", "\"\uFFFDA\""},
      {R"("\udc00\ud83d\ude00")", "\"\uFFFD😀\""},
      {"\"a\xff\xc3z\"", "\"a\uFFFD\uFFFDz\""},
      {"\"\xed\xa0\x80\"", "\"\uFFFD\uFFFD\uFFFD\""},
      {"{\"\xff\":1}", "{\"\uFFFD\":1}"},
  };
  for (const Case& c : cases) {
    auto parsed = parse(c.text);
    ASSERT_TRUE(parsed.ok()) << c.text << ": " << parsed.error().message();
    EXPECT_EQ(write(*parsed), c.written) << c.text;
    auto slowly = parse_as_go(c.text, {});
    ASSERT_TRUE(slowly.ok()) << c.text << ": " << slowly.error().message();
    EXPECT_EQ(write(*slowly), c.written) << c.text;
  }
}

TEST(Parse, takes_a_view_of_nothing_for_an_empty_text) {
  auto nothing = parse(std::string_view());

  ASSERT_FALSE(nothing.ok());
  EXPECT_EQ(nothing.error().message(), "unexpected end of JSON input");
}

TEST(Parse, says_what_go_says) {
  struct Case {
    std::string text;
    std::string message;
  };
  const Case cases[] = {
      {"", "unexpected end of JSON input"},
      {"  ", "unexpected end of JSON input"},
      {"{", "unexpected end of JSON input"},
      {"[", "unexpected end of JSON input"},
      {"[1", "unexpected end of JSON input"},
      {"[1,", "unexpected end of JSON input"},
      {R"({"a)", "unexpected end of JSON input"},
      {R"({"a")", "unexpected end of JSON input"},
      {R"({"a":)", "unexpected end of JSON input"},
      {R"({"a":1)", "unexpected end of JSON input"},
      {R"({"a":1,)", "unexpected end of JSON input"},
      {"\"\\", "unexpected end of JSON input"},
      {"\"\\u12", "unexpected end of JSON input"},
      {"-", "unexpected end of JSON input"},
      {"1.", "unexpected end of JSON input"},
      {"1e", "unexpected end of JSON input"},
      {"1e+", "unexpected end of JSON input"},
      {"tru", "unexpected end of JSON input"},
      {"}", "invalid character '}' looking for beginning of value"},
      {"[,", "invalid character ',' looking for beginning of value"},
      {"[1,]", "invalid character ']' looking for beginning of value"},
      {"apiVersion: v1", "invalid character 'a' looking for beginning of value"},
      {"'", "invalid character '\\'' looking for beginning of value"},
      {"[\\", "invalid character '\\\\' looking for beginning of value"},
      {"\xef\xbb\xbf{}", "invalid character 'ï' looking for beginning of value"},
      {R"({"a":{"b":1}}})", "invalid character '}' after top-level value"},
      {"1 2", "invalid character '2' after top-level value"},
      {"01", "invalid character '1' after top-level value"},
      {"{}\"", "invalid character '\"' after top-level value"},
      {R"({"a":1,})", "invalid character '}' looking for beginning of object key string"},
      {"{a:1}", "invalid character 'a' looking for beginning of object key string"},
      {"{\"a\" 1}", "invalid character '1' after object key"},
      {R"({"a":1/**/})", "invalid character '/' after object key:value pair"},
      {"[1 2]", "invalid character '2' after array element"},
      {"{\"k\":\"\x01\"}", "invalid character '\\x01' in string literal"},
      {"\"\n\"", "invalid character '\\n' in string literal"},
      {"\"\\x\"", "invalid character 'x' in string escape code"},
      {"\"\\u12g4\"", "invalid character 'g' in \\u hexadecimal character escape"},
      {"-x", "invalid character 'x' in numeric literal"},
      {"1.x", "invalid character 'x' after decimal point in numeric literal"},
      {"1ex", "invalid character 'x' in exponent of numeric literal"},
      {"[1.5.5]", "invalid character '.' after array element"},
      {"trye", "invalid character 'y' in literal true (expecting 'u')"},
      {"nul]", "invalid character ']' in literal null (expecting 'l')"},
      {"fals\"", "invalid character '\"' in literal false (expecting 'e')"},
      {"+1", "invalid character '+' looking for beginning of value"},
      {"NaN", "invalid character 'N' looking for beginning of value"},
      {"\x7f", "invalid character '\\x7f' looking for beginning of value"},
      {"\x80", "invalid character '\\u0080' looking for beginning of value"},
      {"1e400", "json: cannot unmarshal number 1e400 into Go value of type float64"},
      {"[1e400,-1e999,x]", "invalid character 'x' looking for beginning of value"},
      {std::string("\0", 1), "invalid character '\\x00' looking for beginning of value"},
  };
  for (const Case& c : cases) EXPECT_EQ(error_of(c.text), c.message) << c.text;
}

TEST(Parse, bounds_the_depth) {
  EXPECT_TRUE(parse(nested(10000)).ok());
  EXPECT_EQ(error_of(nested(10001)), "exceeded max depth");
  EXPECT_EQ(error_of(std::string(1000000, '[')), "exceeded max depth");
  EXPECT_EQ(error_of(nested(4), {.max_depth = 3}), "exceeded max depth");
  EXPECT_TRUE(parse(nested(3), {.max_depth = 3}).ok());
  EXPECT_TRUE(parse("1", {.max_depth = 0}).ok());
  std::string objects;
  for (int i = 0; i < 10000; ++i) objects += "{\"a\":";
  EXPECT_TRUE(parse(objects + "1" + std::string(10000, '}')).ok());
  EXPECT_EQ(error_of(objects + "{}" + std::string(10000, '}')), "exceeded max depth");
}

TEST(Parse, collects_keys_that_occur_twice) {
  std::vector<std::string> duplicates;
  std::vector<std::size_t> places;
  const char* text =
      R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","name":"a","lables":{"a":"b"}},)"
      R"("data":{"k":"1","k":"2"},"extra":1,"data":{"z":"9"}})";

  auto parsed = parse(text, {.duplicates = &duplicates, .duplicate_places = &places});

  ASSERT_TRUE(parsed.ok());
  EXPECT_THAT(duplicates, ElementsAre("metadata.name", "data.k", "data"));
  EXPECT_THAT(places, ElementsAre(4, 8, 9));
  EXPECT_EQ(write(*parsed),
            R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","lables":{"a":"b"}},)"
            R"("data":{"k":"2","z":"9"},"extra":1})");
}

TEST(Parse, merges_what_occurs_twice) {
  struct Case {
    const char* text;
    const char* written;
    std::vector<std::string> duplicates;
  };
  const Case cases[] = {
      {R"({"a":1,"a":2})", R"({"a":2})", {"a"}},
      {R"({"a":[1,2],"a":[3]})", R"({"a":[3]})", {"a"}},
      {R"({"a":{"x":{"p":1}},"a":{"x":{"q":2},"y":3}})",
       R"({"a":{"x":{"p":1,"q":2},"y":3}})",
       {"a"}},
      {R"({"a":{"x":1},"a":null})", R"({"a":null})", {"a"}},
      {R"({"a":{"x":1},"a":5,"a":{"y":2}})", R"({"a":{"y":2}})", {"a"}},
      {R"([{"a":1},{"b":[{"c":1,"c":2}]}])", R"([{"a":1},{"b":[{"c":2}]}])", {"[1].b[0].c"}},
      {R"({"l":[{"n":1,"n":1},{"n":1,"n":1}]})",
       R"({"l":[{"n":1},{"n":1}]})",
       {"l[0].n", "l[1].n"}},
  };
  for (const Case& c : cases) {
    std::vector<std::string> duplicates;
    auto parsed = parse(c.text, {.duplicates = &duplicates});
    ASSERT_TRUE(parsed.ok()) << c.text;
    EXPECT_EQ(write(*parsed), c.written);
    EXPECT_EQ(duplicates, c.duplicates) << c.text;
    EXPECT_EQ(*parse(c.text), *parsed);
  }
}

TEST(Parse, tells_at_most_a_hundred_duplicates) {
  std::string text = "{";
  for (int i = 0; i < 300; ++i) text += "\"k" + std::to_string(i % 150) + "\":1,";
  text += "\"k0\":0}";
  std::vector<std::string> duplicates;
  ASSERT_TRUE(parse(text, {.duplicates = &duplicates}).ok());
  EXPECT_EQ(duplicates.size(), 100u);
}

TEST(Parse, hostile_objects_take_linear_time) {
  std::string text = "{";
  for (int i = 0; i < 500000; ++i) text += "\"" + std::to_string(i) + "\":0,";
  const std::string distinct = text + "\"x\":0}";
  auto parsed = parse(distinct);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->size(), 500001u);
  EXPECT_TRUE((*parsed)["499999"].is_integer());
  const std::string twice = text + "\"7\":1}";
  parsed = parse(twice);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ((*parsed)["7"].as_int(), 1);
}

TEST(Write, numbers_as_go_writes_them) {
  struct Case {
    double number;
    const char* written;
  };
  const Case cases[] = {
      {0, "0"},
      {-0.0, "-0"},
      {1, "1"},
      {1.5, "1.5"},
      {-2.25, "-2.25"},
      {100, "100"},
      {1e20, "100000000000000000000"},
      {123456789012345680000.0, "123456789012345680000"},
      {1e21, "1e+21"},
      {1.5e300, "1.5e+300"},
      {1e-6, "0.000001"},
      {1.25e-6, "0.00000125"},
      {1e-7, "1e-7"},
      {9.5e-9, "9.5e-9"},
      {1e-10, "1e-10"},
      {1.7976931348623157e308, "1.7976931348623157e+308"},
      {5e-324, "5e-324"},
      {0.1 + 0.2, "0.30000000000000004"},
      {3.141592653589793, "3.141592653589793"},
      {INFINITY, "null"},
      {NAN, "null"},
  };
  for (const Case& c : cases) EXPECT_EQ(write(Value(c.number)), c.written);
}

TEST(Write, strings_as_go_writes_them) {
  struct Case {
    std::string text;
    const char* plain;
    const char* html;
  };
  const Case cases[] = {
      {"", R"("")", R"("")"},
      {"a\"\\/", R"("a\"\\/")", R"("a\"\\/")"},
      {"\b\f\n\r\t\x01\x1f\x7f", "\"\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\"",
       "\"\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\""},
      {"<a href='x'>&", R"("<a href='x'>&")", R"("\u003ca href='x'\u003e\u0026")"},
      {"\u2028\u2029\u2027", "\"\\u2028\\u2029\u2027\"", "\"\\u2028\\u2029\u2027\""},
      {"a\xff\xe2\x80", R"("a\ufffd\ufffd\ufffd")", R"("a\ufffd\ufffd\ufffd")"},
      {"héé😀", "\"héé😀\"", "\"héé😀\""},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(write(Value(c.text)), c.plain);
    EXPECT_EQ(write(Value(c.text), true), c.html);
    EXPECT_EQ(write(Value::object({{c.text, 1}}), true), std::string("{") + c.html + ":1}");
  }
}

// Long strings are written eight characters at a time where none of them is special.
TEST(Write, finds_special_characters_at_any_place) {
  for (const bool html : {false, true}) {
    for (int c = 1; c < 128; ++c) {
      const std::string one(1, static_cast<char>(c));
      const std::string alone = write(Value(one), html);
      const std::string escaped = alone.substr(1, alone.size() - 2);
      for (std::size_t place = 0; place < 18; ++place) {
        const std::string before(place, 'x');
        const std::string after(17 - place, 'y');
        EXPECT_EQ(write(Value(before + one + after), html), "\"" + before + escaped + after + "\"");
      }
    }
  }
}

TEST(Write, pretty_indents_by_two) {
  const Value value = *parse(R"({"a":[1,{"b":{}}],"c":[],"d":{"e":"<"}})");
  EXPECT_EQ(write_pretty(value), R"({
  "a": [
    1,
    {
      "b": {}
    }
  ],
  "c": [],
  "d": {
    "e": "<"
  }
})");
  EXPECT_EQ(write_pretty(Value(1)), "1");
}

TEST(Parse, what_is_written_reads_back_the_same) {
  RandomValues random(7);
  for (int i = 0; i < 2000; ++i) {
    const Value value = random.value(5);
    for (const std::string& text : {write(value), write(value, true), write_pretty(value)}) {
      auto fast = parse(text);
      ASSERT_TRUE(fast.ok()) << text << fast.error().message();
      ASSERT_EQ(*fast, value) << text;
      auto slow = parse_as_go(text, {});
      ASSERT_TRUE(slow.ok()) << text << slow.error().message();
      ASSERT_EQ(write(*slow), write(*fast)) << text;
    }
  }
}

// The two parsers agree on texts that are damaged at random.
TEST(Parse, damaged_texts_are_refused_or_read_the_same) {
  RandomValues random(11);
  for (int i = 0; i < 3000; ++i) {
    std::string text = write(random.value(4));
    for (unsigned n = random.below(3); n > 0 && !text.empty(); --n) {
      const std::size_t at = random.below(static_cast<unsigned>(text.size()));
      if (random.below(2) == 0)
        text.erase(at, 1);
      else
        text[at] = "{}[],:\"\\0-.eE x\xff"[random.below(17)];
    }
    auto one = parse(text);
    auto two = parse_as_go(text, {});
    ASSERT_EQ(one.ok(), two.ok()) << text;
    if (one.ok())
      ASSERT_EQ(write(*one), write(*two)) << text;
    else
      ASSERT_EQ(one.error().message(), two.error().message());
  }
}

}  // namespace
}  // namespace dibs::json
