#include "api/merge/selectors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/merge/test_support.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

using test::from_text;
using ::testing::ElementsAre;

bool selects(std::string_view selector, std::string_view labels) {
  auto parsed = parse_label_selector(selector);
  EXPECT_TRUE(parsed.ok()) << selector;
  return parsed.ok() && parsed->matches(from_text(labels));
}

TEST(LabelSelectors, match_by_every_operator) {
  const char* web = "{'app':'web','n':'5'}";
  EXPECT_TRUE(selects("app=web", web));
  EXPECT_TRUE(selects("app==web", web));
  EXPECT_FALSE(selects("app!=web", web));
  EXPECT_TRUE(selects("app in (db,web)", web));
  EXPECT_FALSE(selects("app notin (db,web)", web));
  EXPECT_TRUE(selects("app", web));
  EXPECT_FALSE(selects("!app", web));
  EXPECT_TRUE(selects("n>4,n<6", web));
  EXPECT_FALSE(selects("n>5", web));
  EXPECT_TRUE(selects("none!=1,none notin (1),!none", web));
  EXPECT_FALSE(selects("app=web,app=db", web));
  EXPECT_TRUE(selects("", "null"));
  EXPECT_TRUE(selects("in in (in),notin", "{'in':'in','notin':''}"));
  EXPECT_TRUE(selects("a in (,x)", "{'a':''}"));
  EXPECT_FALSE(selects("n>4", "{'n':'many'}"));
}

TEST(LabelSelectors, have_one_spelling) {
  const auto spelled = [](std::string_view text) { return parse_label_selector(text)->str(); };
  EXPECT_EQ(spelled(" b = 2 , a in ( z , y ),!c"), "a in (y,z),b=2,!c");
  EXPECT_EQ(spelled("a==1,d notin ()"), "a==1,d notin ()");
  EXPECT_EQ(spelled("n<3,n>1,x!="), "n<3,n>1,x!=");
}

TEST(LabelSelectors, name_what_they_do_not_understand) {
  const std::pair<const char*, const char*> cases[] = {
      {"app in web", "unable to parse requirement: found 'web' expected: '('"},
      {"app in (a b)", "unable to parse requirement: found 'b', expected: ',' or ')'"},
      {"app in (=", "unable to parse requirement: found '=', expected: ',', ')' or identifier"},
      {"app in (a,=)", "unable to parse requirement: found '=', expected: ',', or identifier"},
      {"=web", "found '=', expected: !, identifier, or 'end of string'"},
      {"app=web,", "found '', expected: identifier after ','"},
      {"app>=5", "unable to parse requirement: found '=', expected: identifier"},
      {"!app=web", "found '=', expected: ',' or 'end of string'"},
      {"!", "unable to parse requirement: found '', expected: identifier"},
      {"app!web", "unable to parse requirement: found '!', expected: in, notin, =, ==, !=, gt, lt"},
      {"n>abc",
       "unable to parse requirement: values[0]: Invalid value: \"abc\": for 'Gt', 'Lt' "
       "operators, "
       "the value must be an integer"},
  };
  for (const auto& [text, message] : cases) {
    const auto parsed = parse_label_selector(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.error().message(), message) << text;
    EXPECT_EQ(parsed.error().code(), Code::bad_request);
  }
}

TEST(LabelSelectors, come_from_objects) {
  EXPECT_FALSE(to_label_selector(Value())->matches(from_text("{'a':'b'}")));
  EXPECT_TRUE(to_label_selector(from_text("{}"))->matches(Value()));
  const auto selector = to_label_selector(from_text(
      "{'matchLabels':{'a':'b'},'matchExpressions':[{'key':'c','operator':'In','values':['d','e']},"
      "{'key':'f','operator':'DoesNotExist'}]}"));
  ASSERT_TRUE(selector.ok());
  EXPECT_EQ(selector->str(), "a=b,c in (d,e),!f");
  EXPECT_TRUE(selector->matches(from_text("{'a':'b','c':'e'}")));
  EXPECT_FALSE(selector->matches(from_text("{'a':'b','c':'e','f':''}")));
  EXPECT_EQ(to_label_selector(from_text("{'matchExpressions':[{'key':'c','operator':'Like'}]}"))
                .error()
                .message(),
            "\"Like\" is not a valid label selector operator");
}

TEST(FieldSelectors, parse_and_match) {
  const auto selector = parse_field_selector("spec.nodeName!=n1,metadata.name==a\\,b,");
  ASSERT_TRUE(selector.ok());
  EXPECT_THAT(selector->requirements(),
              ElementsAre(FieldRequirement{"metadata.name", true, "a,b"},
                          FieldRequirement{"spec.nodeName", false, "n1"}));
  EXPECT_EQ(selector->exact("metadata.name"), "a,b");
  EXPECT_EQ(selector->exact("spec.nodeName"), std::nullopt);
  EXPECT_TRUE(selector->matches([](std::string_view field) -> std::string_view {
    return field == "metadata.name" ? "a,b" : "";
  }));
  EXPECT_TRUE(parse_field_selector("")->empty());
}

TEST(FieldSelectors, name_what_they_do_not_understand) {
  const std::pair<const char*, const char*> cases[] = {
      {"metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"},
      {"a=b,metadata.name>a",
       "invalid selector: 'a=b,metadata.name>a'; can't understand "
       "'metadata.name>a'"},
      {"a=b\\c", "invalid field selector: invalid escape sequence: \\c"},
      {"a=b\\", "invalid field selector: invalid escape sequence: \\"},
      {"a=b=c", "invalid field selector: unescaped character in value: 61"},
  };
  for (const auto& [text, message] : cases) {
    const auto parsed = parse_field_selector(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.error().message(), message) << text;
  }
}

TEST(Selectors, hold_together_on_any_text) {
  std::uint32_t state = 7;
  const std::string_view letters = "ab=!<>(), \\/.-_in1\n";
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    const auto next = [&] { return state = state * 1664525 + 1013904223, state >> 16; };
    for (std::uint32_t n = next() % 14; n > 0; --n)
      text.push_back(letters[next() % letters.size()]);
    if (round % 3 == 0) text.insert(0, "a in (");
    if (const auto selector = parse_label_selector(text); selector.ok()) {
      EXPECT_EQ(parse_label_selector(selector->str())->str(), selector->str()) << text;
    }
    if (const auto selector = parse_field_selector(text); selector.ok()) {
      (void)selector->matches([](std::string_view field) { return field; });
    }
  }
}

// The recorded lists: which objects a selector chose, or why it could not be read.
TEST(Selectors, choose_as_recorded) {
  if (test::conformance_folder().empty()) GTEST_SKIP() << "no recordings here";
  int checked = 0;
  for (const char* session :
       {"label-selectors", "label-selector-errors", "field-selectors-common"}) {
    std::vector<Value> objects;
    for (const Value& step : test::session_steps("reading", session).items()) {
      const Value& body = step["expect"]["body"];
      if (step["method"].as_string() == "POST") objects.push_back(body);
      const std::string_view path = step["path"].as_string();
      const auto question = path.find("Selector=");
      if (step["method"].as_string() != "GET" || question == std::string_view::npos) continue;
      std::string text;
      ASSERT_TRUE(percent_decode(path.substr(question + 9), true, text));
      const bool labels = path.find("labelSelector=") != std::string_view::npos;
      ++checked;

      std::vector<std::string> chosen;
      std::string message;
      if (labels) {
        auto selector = parse_label_selector(text);
        if (!selector.ok()) message = selector.error().message();
        for (const Value& object : objects) {
          if (selector.ok() && selector->matches(object["metadata"]["labels"])) {
            chosen.push_back(object["metadata"]["name"].str());
          }
        }
      } else {
        auto selector = parse_field_selector(text);
        if (!selector.ok()) message = selector.error().message();
        for (const Value& object : objects) {
          const auto value_of = [&](std::string_view field) {
            return object["metadata"][field.substr(field.find('.') + 1)].as_string();
          };
          if (selector.ok() && selector->matches(value_of)) {
            chosen.push_back(object["metadata"]["name"].str());
          }
        }
      }

      std::vector<std::string> expected;
      for (const Value& item : body["items"].items())
        expected.push_back(item["metadata"]["name"].str());
      EXPECT_EQ(message, body["message"].as_string()) << text;
      EXPECT_EQ(chosen, expected) << text;
    }
  }
  EXPECT_GT(checked, 50);
}

}  // namespace
}  // namespace dibs::api
