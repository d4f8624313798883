// Which requests policies and bindings are about.
#include "api/expressions/policy_match.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/strings.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

Value from_text(std::string text) {
  std::replace(text.begin(), text.end(), '\'', '"');
  auto parsed = json::parse(text);
  EXPECT_TRUE(parsed.ok()) << text;
  return parsed.ok() ? std::move(parsed).value() : Value();
}

/// An update of deployment shop/web by apps/v1, in a namespace with the label tier=front.
struct Asked {
  MatchQuestion question;
  Value object = from_text("{'metadata':{'labels':{'app':'new'}}}");
  Value old = from_text("{'metadata':{'labels':{'app':'old'}}}");
  Value labels = from_text("{'tier':'front'}");
  std::vector<ServedAs> equivalents;
  bool has_namespace = true;

  Asked() {
    question.operation = "UPDATE";
    question.served = {"apps", "v1", "deployments"};
    question.name_space = "shop";
    question.name = "web";
    question.object = &object;
    question.old = &old;
    question.namespace_labels = [this]() -> Result<Value> {
      if (!has_namespace) return Error::not_found("namespaces \"shop\" not found");
      return labels;
    };
    question.equivalents = [this]() -> const std::vector<ServedAs>& { return equivalents; };
  }

  /// "no", "yes", the version where it is another one, or the error.
  std::string match(const std::string& resources) const {
    auto outcome = MatchResources::parse(from_text(resources)).match(question);
    if (!outcome.ok()) return outcome.error().message();
    if (!outcome->matches) return "no";
    bool same = outcome->served.group == question.served.group &&
                outcome->served.version == question.served.version;
    return same ? "yes" : cat(outcome->served.group, "/", outcome->served.version);
  }

  std::string rule(const std::string& more) const {
    Value rule = from_text(
        "{'apiGroups':['apps'],'apiVersions':['v1'],'operations':['UPDATE'],"
        "'resources':['deployments']}");
    Value changes = from_text(more);
    for (const auto& [key, value] : changes.members()) rule.set(key, value);
    Value resources = Value::object({{"resourceRules", Value::array({rule})}});
    auto outcome = MatchResources::parse(resources).match(question);
    return outcome.ok() && outcome->matches ? "yes" : "no";
  }
};

TEST(MatchResources, matches_everything_when_there_is_none) {
  EXPECT_EQ(Asked().match("null"), "yes");
  EXPECT_EQ(Asked().match("{}"), "yes");
}

TEST(MatchResources, goes_by_operation_group_version_resource_and_name) {
  struct Case {
    const char* rule;
    const char* wanted;
  };
  for (const Case& c : std::initializer_list<Case>{{"{}", "yes"},
                                                   {"{'operations':['*']}", "yes"},
                                                   {"{'operations':['CREATE','DELETE']}", "no"},
                                                   {"{'apiGroups':['']}", "no"},
                                                   {"{'apiGroups':['*']}", "yes"},
                                                   {"{'apiVersions':['v2','*']}", "yes"},
                                                   {"{'apiVersions':['v1beta1']}", "no"},
                                                   {"{'resources':['*']}", "yes"},
                                                   {"{'resources':['*/*']}", "yes"},
                                                   {"{'resources':['deployments/*']}", "yes"},
                                                   {"{'resources':['deployments/scale']}", "no"},
                                                   {"{'resources':['pods']}", "no"},
                                                   {"{'resourceNames':['a','web']}", "yes"},
                                                   {"{'resourceNames':['a']}", "no"},
                                                   {"{'scope':'*'}", "yes"},
                                                   {"{'scope':'Namespaced'}", "yes"},
                                                   {"{'scope':'Cluster'}", "no"}}) {
    EXPECT_EQ(Asked().rule(c.rule), c.wanted) << c.rule;
  }
}

TEST(MatchResources, needs_the_subresource_to_be_named) {
  Asked asked;
  asked.question.subresource = "scale";
  EXPECT_EQ(asked.rule("{}"), "no");
  EXPECT_EQ(asked.rule("{'resources':['*']}"), "no");
  EXPECT_EQ(asked.rule("{'resources':['deployments/scale']}"), "yes");
  EXPECT_EQ(asked.rule("{'resources':['*/scale']}"), "yes");
  EXPECT_EQ(asked.rule("{'resources':['deployments/*']}"), "yes");
}

TEST(MatchResources, counts_a_namespace_to_the_cluster) {
  Asked asked;
  asked.question.served = {"", "v1", "namespaces"};
  const std::string rule = "'apiGroups':[''],'resources':['namespaces']";
  EXPECT_EQ(asked.rule(cat("{", rule, ",'scope':'Namespaced'}")), "no");
  EXPECT_EQ(asked.rule(cat("{", rule, ",'scope':'Cluster'}")), "yes");
}

TEST(MatchResources, leaves_out_what_is_excluded) {
  const std::string excluded =
      "'excludeResourceRules':[{'apiGroups':['*'],'apiVersions':['*'],'operations':['*'],"
      "'resources':['*'],'resourceNames':['web']}]";
  Asked asked;
  EXPECT_EQ(asked.match(cat("{", excluded, "}")), "no");
  asked.question.name = "other";
  EXPECT_EQ(asked.match(cat("{", excluded, "}")), "yes");
}

TEST(MatchResources, selects_by_the_labels_of_the_namespace) {
  const std::string front = "{'namespaceSelector':{'matchLabels':{'tier':'front'}}}";
  Asked asked;
  EXPECT_EQ(asked.match(front), "yes");
  EXPECT_EQ(asked.match("{'namespaceSelector':{'matchLabels':{'tier':'back'}}}"), "no");
  asked.question.name_space = "";
  asked.has_namespace = false;
  EXPECT_EQ(asked.match(front), "yes") << "what lies in no namespace is not left out";
}

TEST(MatchResources, tells_of_a_missing_namespace_only_where_the_rest_matches) {
  Asked asked;
  asked.has_namespace = false;
  const std::string selector = "'namespaceSelector':{'matchLabels':{'tier':'front'}}";
  EXPECT_EQ(asked.match(cat("{", selector, "}")), "namespaces \"shop\" not found");
  EXPECT_EQ(asked.match(cat("{", selector,
                            ",'resourceRules':[{'apiGroups':[''],'apiVersions':['v1'],"
                            "'operations':['*'],'resources':['pods']}]}")),
            "no");
}

TEST(MatchResources, selects_by_the_labels_of_the_new_or_the_old_object) {
  auto selector = [](std::string_view app) {
    return cat("{'objectSelector':{'matchLabels':{'app':'", app, "'}}}");
  };
  Asked asked;
  EXPECT_EQ(asked.match(selector("new")), "yes");
  EXPECT_EQ(asked.match(selector("old")), "yes");
  EXPECT_EQ(asked.match(selector("other")), "no");
  asked.question.object = nullptr;
  EXPECT_EQ(asked.match(selector("new")), "no");
}

TEST(MatchResources, finds_the_same_objects_in_another_version) {
  auto resources = [](std::string_view policy) {
    return cat("{'matchPolicy':'", policy,
               "','resourceRules':[{'apiGroups':['extensions'],'apiVersions':['v1beta1'],"
               "'operations':['*'],'resources':['deployments']}]}");
  };
  Asked asked;
  asked.equivalents = {{"apps", "v1beta2", "deployments"},
                       {"extensions", "v1beta1", "deployments"}};
  EXPECT_EQ(asked.match(resources("Equivalent")), "extensions/v1beta1");
  EXPECT_EQ(asked.match(resources("Exact")), "no");
  asked.equivalents.clear();
  EXPECT_EQ(asked.match(resources("Equivalent")), "no");
}

}  // namespace
}  // namespace dibs::api
