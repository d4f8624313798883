#include "json/yaml.h"

#include <gmock/gmock.h>

#include "base/test_data.h"
#include "json/parse.h"
#include "json/random_value.h"

namespace dibs::json {
namespace {

using testing::ElementsAre;

std::string read(std::string_view text) {
  auto parsed = parse_yaml(text);
  return parsed.ok() ? write(*parsed) : parsed.error().message();
}

TEST(YamlParse, reads_scalars_as_yaml_1_1) {
  struct Case {
    const char* text;
    const char* json;
  };
  const Case cases[] = {
      {"", "null"},
      {"~", "null"},
      {"null", "null"},
      {"Null", "null"},
      {"nULL", R"("nULL")"},
      {"yes", "true"},
      {"Yes", "true"},
      {"y", "true"},
      {"on", "true"},
      {"TRUE", "true"},
      {"tRue", R"("tRue")"},
      {"no", "false"},
      {"n", "false"},
      {"Off", "false"},
      {"false", "false"},
      {"'yes'", R"("yes")"},
      {"\"1\"", R"("1")"},
      {"!!str 5", R"("5")"},
      {"!!str yes", R"("yes")"},
      {"1", "1"},
      {"-1", "-1"},
      {"+1", "1"},
      {"1_000", "1000"},
      {"0x1f", "31"},
      {"-0x10", "-16"},
      {"0o17", "15"},
      {"017", "15"},
      {"08", "8"},
      {"0b101", "5"},
      {"-0b11", "-3"},
      {"0", "0"},
      {"-0", "0"},
      {"9223372036854775807", "9223372036854775807"},
      {"-9223372036854775808", "-9223372036854775808"},
      {"18446744073709551615", "18446744073709552000"},
      {"18446744073709551616", "18446744073709552000"},
      {"1.5", "1.5"},
      {".5", "0.5"},
      {"1.", "1"},
      {"1e3", "1000"},
      {"-1.5E-3", "-0.0015"},
      {"1e400", R"("1e400")"},
      {"1e-400", "0"},
      {"+.5", "0.5"},
      {"0x", R"("0x")"},
      {"-", R"([null])"},
      {"1:30", R"("1:30")"},
      {"2001-01-01", R"("2001-01-01")"},
      {"2001-01-01T00:00:00Z", R"("2001-01-01T00:00:00Z")"},
      {"!!float 1", "1"},
      {"!!int 7", "7"},
      {"!!binary aGk=", R"("hi")"},
      {"!custom x", R"("x")"},
      {"1Gi", R"("1Gi")"},
      {"500m", R"("500m")"},
      {"a: b", R"({"a":"b"})"},
      {"1.2.3", R"("1.2.3")"},
      {"- 1\n- [a, {b: c}]", R"([1,["a",{"b":"c"}]])"},
      {"b: 1\na: 2", R"({"a":2,"b":1})"},
      {"{1: x, true: z, 1.5: q, 1e6: w, yes2: v}",
       R"({"1":"x","1.5":"q","1e+06":"w","true":"z","yes2":"v"})"},
      {"a: |\n  x\n  y\nb: >-\n  x\n  y\n", R"({"a":"x\ny\n","b":"x y"})"},
      {R"({"a":{"b":[1,"é",null]}})", R"({"a":{"b":[1,"é",null]}})"},
      {"a:\nb:", R"({"a":null,"b":null})"},
      {"--- 1\n--- 2\n", "1"},
      {"# only a comment\n", "null"},
      {"a: &x {p: 1}\nb: *x\nc: [*x]", R"({"a":{"p":1},"b":{"p":1},"c":[{"p":1}]})"},
      {"a: &x 5\n*x : 6", R"({"5":6,"a":5})"},
      {"a: &x {p: 1, q: 1}\nb:\n  <<: *x\n  r: 2",
       R"({"a":{"p":1,"q":1},"b":{"p":1,"q":1,"r":2}})"},
      {"b:\n  <<: [{p: 1, s: 0}, {q: 2}]", R"({"b":{"p":1,"q":2,"s":0}})"},
      {"'<<': 1", R"({"<<":1})"},
  };
  for (const Case& c : cases) EXPECT_EQ(read(c.text), c.json) << c.text;
}

TEST(YamlParse, says_what_upstream_says) {
  struct Case {
    std::string text;
    std::string message;
  };
  const Case cases[] = {
      {"a: b\n  c: d\n", "yaml: line 2: mapping values are not allowed in this context"},
      {"\tx", "yaml: found character that cannot start any token"},
      {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: e}\ndata: {y: |\n    a\n    b\n",
       "yaml: line 4: found character that cannot start any token"},
      {"a: *nope", "yaml: unknown anchor 'nope' referenced"},
      {"&a [*a]", "yaml: anchor 'a' value contains itself"},
      {"!!int x", "yaml: cannot decode !!str `x` as a !!int"},
      {"!!binary \"*\"", "yaml: !!binary value contains invalid base64 data"},
      {"<<: 1", "yaml: map merge requires map or sequence of maps as the value"},
      {"{a: 1}: 2", R"(yaml: invalid map key: map[interface {}]interface {}{"a":1})"},
      {"[a, 1, null]: 2", R"(yaml: invalid map key: []interface {}{"a", 1, interface {}(nil)})"},
      {"a: .inf", "json: unsupported value: +Inf"},
      {"- .nan", "json: unsupported value: NaN"},
      {"a: \x01", "yaml: control characters are not allowed"},
      {"a: 'x\n", "yaml: line 2: found unexpected end of stream"},
      {"k: 1\nk: 2\nl: {m: 1,\n m: 2}",
       "yaml: unmarshal errors:\n  line 2: key \"k\" already set in map\n  line 4: key \"m\" "
       "already set in map"},
      {"1: a\n1: b", "yaml: unmarshal errors:\n  line 2: key 1 already set in map"},
      {"yes: a\non: b", "yaml: unmarshal errors:\n  line 2: key true already set in map"},
  };
  for (const Case& c : cases) EXPECT_EQ(read(c.text), c.message) << c.text;
}

TEST(YamlParse, collects_keys_that_occur_twice) {
  std::vector<std::string> duplicates;
  auto parsed = parse_yaml(
      "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  lables: {}\ndata:\n  k: '1'\n  k: "
      "'2'\nextra: 1\n",
      &duplicates);
  ASSERT_TRUE(parsed.ok());
  EXPECT_THAT(duplicates, ElementsAre(R"(line 8: key "k" already set in map)"));
  EXPECT_EQ((*parsed)["data"]["k"].as_string(), "2");
}

TEST(YamlParse, takes_a_view_of_nothing) {
  EXPECT_TRUE(parse_yaml(std::string_view())->is_null());
  EXPECT_TRUE(parse_yaml_stream(std::string_view())->empty());
}

TEST(YamlParse, reads_streams) {
  auto parsed = parse_yaml_stream("---\na: 1\n---\n---\n# none\n---\n- b\n...\n---\nc\n");
  ASSERT_TRUE(parsed.ok());
  ASSERT_EQ(parsed->size(), 3u);
  EXPECT_EQ(write((*parsed)[0]) + write((*parsed)[1]) + write((*parsed)[2]), R"({"a":1}["b"]"c")");
  EXPECT_TRUE(parse_yaml_stream("")->empty());
  EXPECT_FALSE(parse_yaml_stream("a: 1\n---\na: [").ok());
}

TEST(YamlParse, bounds_aliases_and_depth) {
  std::string bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int j = 0; j < 9; ++j) bomb += ", " + before;
    bomb += "]\n";
  }
  EXPECT_EQ(read(bomb), "yaml: document contains excessive aliasing");

  std::string text_bomb = "a: &a " + std::string(1000000, 'x') + "\nb: [";
  for (int i = 0; i < 90; ++i) text_bomb += "*a, ";
  EXPECT_EQ(read(text_bomb + "*a]"), "yaml: document contains excessive aliasing");

  EXPECT_EQ(read(std::string(3000000, '[')), "yaml: exceeded max depth of 500");
  std::string dashes;
  for (int i = 0; i < 100000; ++i) dashes += "- ";
  EXPECT_EQ(read(dashes), "yaml: exceeded max depth of 500");
  std::string tower = "a0: &a0 []\n";
  for (int i = 1; i < 12; ++i) {
    tower += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " " + std::string(50, '[') +
             "*a" + std::to_string(i - 1) + std::string(50, ']') + "\n";
  }
  EXPECT_EQ(read(tower), "yaml: exceeded max depth of 500");
}

TEST(YamlWrite, takes_the_form_of_upstream) {
  struct Case {
    const char* json;
    const char* yaml;
  };
  const Case cases[] = {
      {"null", "null\n"},
      {"{}", "{}\n"},
      {"[]", "[]\n"},
      {"\"x\"", "x\n"},
      {"\"\"", "\"\"\n"},
      {"\"a\\nb\"", "|-\n  a\n  b\n"},
      {R"({"a":[]})", "a: []\n"},
      {R"({"a":[1,[2,[]],{"b":1,"c":{}}],"d":{"e":[true,null]}})",
       "a:\n- 1\n- - 2\n  - []\n- b: 1\n  c: {}\nd:\n  e:\n  - true\n  - null\n"},
      {R"([[[1,2]],[{"a":[1]}]])", "- - - 1\n    - 2\n- - a:\n    - 1\n"},
      {R"({"k":"a\nb\n","l":"a\n\n","m":"\n","n":" a\nb","o":"a \nb","p":"a\n b"})",
       "k: |\n  a\n  b\nl: |+\n  a\n\nm: |2+\n\n\"n\": |2-\n   a\n  b\no: \"a \\nb\"\np: |-\n  a\n "
       "  b\n"},
      {R"(["1","1.5","0x1f","012","0o7","1e3","true","no","~","null","2001-01-01","1:30","-","- a","a: b","a:","a #b"])",
       "- \"1\"\n- \"1.5\"\n- \"0x1f\"\n- \"012\"\n- \"0o7\"\n- \"1e3\"\n- \"true\"\n- \"no\"\n- "
       "\"~\"\n- \"null\"\n"
       "- \"2001-01-01\"\n- \"1:30\"\n- '-'\n- '- a'\n- 'a: b'\n- 'a:'\n- 'a #b'\n"},
      {R"(["*a","it's: #x"," x","x ","a\tb","hé","😀","\u00a0","%","a,b","a[b","?x","? x","--- a","a\u2028b","\ufeff","\u0085"])",
       "- '*a'\n- 'it''s: #x'\n- ' x'\n- 'x '\n- \"a\\tb\"\n- hé\n- \"\\U0001F600\"\n- \u00a0\n- "
       "'%'\n- a,b\n- a[b\n"
       "- ?x\n- '? x'\n- '--- a'\n- 'a\u2028  b'\n- \"\\uFEFF\"\n- \"\\N\"\n"},
      {R"({"n":1,"y":2,"no":3,"on":4,"null":5,"1":6,"":7})",
       "\"\": 7\n\"1\": 6\n\"n\": 1\n\"no\": 3\n\"null\": 5\n\"on\": 4\n\"y\": 2\n"},
      {R"({"a10":1,"a2":2,"a":3,"B":4,"_":5,"a-b":6,"ab":7,".":8,"f:x":9})",
       ".: 8\n_: 5\nB: 4\na: 3\na-b: 6\na2: 2\na10: 1\nab: 7\nf:x: 9\n"},
      {"[1.5,1e21,1e6,1e-7,-0.0,100000000000000000000,9223372036854775808,1234567.5]",
       "- 1.5\n- 1e+21\n- 1000000\n- 1e-07\n- 0\n- 1e+20\n- 9223372036854776000\n- "
       "1.2345675e+06\n"},
      {R"({"a\nb":1})", "? |-\n  a\n  b\n: 1\n"},
  };
  for (const Case& c : cases) {
    const Value value = *parse(c.json);
    EXPECT_EQ(write_yaml(value), c.yaml);
    EXPECT_EQ(*parse_yaml(c.yaml), value) << c.yaml;
  }
}

TEST(YamlWrite, folds_long_lines) {
  const std::string words =
      "word word word word word word word word word word word word word word word word word word ";
  EXPECT_EQ(write_yaml(Value::object({{"long", words + words}})),
            "long: 'word word word word word word word word word word word word word word word\n"
            "  word word word word word word word word word word word word word word word word\n"
            "  word word word word word '\n");
  EXPECT_EQ(
      write_yaml(Value::object({{"message",
                                 "resourceVersion: Invalid value: \"x\": strconv.ParseUint: "
                                 "parsing \"x\": invalid syntax"}})),
      "message: 'resourceVersion: Invalid value: \"x\": strconv.ParseUint: parsing \"x\": invalid\n"
      "  syntax'\n");
  const std::string plain = words.substr(0, words.size() - 1);
  EXPECT_EQ(write_yaml(Value::array({Value(plain)})),
            "- word word word word word word word word word word word word word word word word\n"
            "  word word\n");
  EXPECT_EQ(write_yaml(Value("\t" + plain)),
            "\"\\tword word word word word word word word word word word word word word word word\n"
            "  word word\"\n");
  const std::string key(200, 'k');
  EXPECT_EQ(write_yaml(Value::object({{key, Value::array({1, Value::object({{"a", 1}})})}})),
            "? " + key + "\n: - 1\n  - a: 1\n");
  EXPECT_EQ(write_yaml(Value::object({{key, Value::object({{"a", 1}, {"b", "c"}})}})),
            "? " + key + "\n: a: 1\n  b: c\n");
}

TEST(YamlWrite, what_is_written_reads_back_the_same) {
  RandomValues random(5);
  for (int i = 0; i < 5000; ++i) {
    const Value value = Value::object({{"k", random.text()}, {random.text(), 1}});
    const std::string text = write_yaml(value);
    ASSERT_EQ(read(text), write(*parse_yaml(write(value)))) << text;
  }
  for (int i = 0; i < 2000; ++i) {
    const Value value = random.value(4);
    const std::string text = write_yaml(value);
    auto back = parse_yaml(text);
    ASSERT_TRUE(back.ok()) << text << back.error().message();
    ASSERT_EQ(*back, value) << text << write(value) << "\n" << write(*back);
  }
}

TEST(YamlWrite, writes_recorded_answers_as_they_were) {
  const auto root = dibs::test::conformance_data();
  if (root.empty()) GTEST_SKIP() << "no conformance recordings here";
  int answers = 0;
  for (const char* name : {"objects.json", "reading.json", "cluster.json", "resource.json"}) {
    auto recording = parse(dibs::test::read_file(root / "http" / name));
    ASSERT_TRUE(recording.ok()) << name << ": " << recording.error().message();
    for (const Value& session : (*recording)["sessions"].items()) {
      for (const Value& step : session["steps"].items()) {
        const Value& expect = step["expect"];
        const std::string type = expect["type"].str();
        std::string text = expect["text"].str();
        // The mark for a time would not need the quotes that a time needs.
        for (std::size_t at; (at = text.find("<time>")) != std::string::npos;) {
          text.replace(at, 6, "2026-01-01T00:00:00Z");
        }
        if (type.find("yaml") == std::string::npos || text.empty()) continue;
        ++answers;
        auto parsed = parse_yaml(text);
        ASSERT_TRUE(parsed.ok()) << text << parsed.error().message();
        EXPECT_EQ(write_yaml(*parsed), text);
      }
    }
  }
  EXPECT_GT(answers, 5);
}

TEST(YamlParse, tells_where_keys_and_items_stand) {
  YamlLines lines;
  const auto parsed = parse_yaml(
      "# a remark\nbind: x\nnodes:\n- count: 2\n  labels:\n    a.b/c: d\n-\n  - 1\n  - {k: v}\n",
      nullptr, &lines);
  ASSERT_TRUE(parsed.ok());
  const YamlLines expected = {
      {"bind", 2},           {"nodes", 3},           {"nodes[0]", 4},
      {"nodes[0].count", 4}, {"nodes[0].labels", 5}, {"nodes[0].labels.a.b/c", 6},
      {"nodes[1]", 8},       {"nodes[1][0]", 8},     {"nodes[1][1]", 9},
      {"nodes[1][1].k", 9}};
  EXPECT_EQ(lines, expected);
}

}  // namespace
}  // namespace dibs::json
