#include "proxy/policy_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/strings.h"
#include "json/parse.h"

namespace dibs::proxy {
namespace {

using json::Value;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Value object(std::string_view text) { return *json::parse(text); }

Value pod(const std::string& key, const std::string& address, const std::string& labels = "{}",
          const std::string& more = "") {
  const auto slash = key.find('/');
  return object(cat(R"({"metadata":{"namespace":")", key.substr(0, slash), R"(","name":")",
                    key.substr(slash + 1), R"(","labels":)", labels,
                    R"(},"spec":{"nodeName":"node-0")", more, R"(},"status":{"podIP":")", address,
                    R"(","phase":"Running"}})"));
}

Value policy(const std::string& key, const std::string& spec) {
  const auto slash = key.find('/');
  return object(cat(R"({"metadata":{"namespace":")", key.substr(0, slash), R"(","name":")",
                    key.substr(slash + 1), R"("},"spec":)", spec, "}"));
}

Value name_space(const std::string& name, const std::string& labels) {
  return object(cat(R"({"metadata":{"name":")", name, R"(","labels":)", labels, "}}"));
}

PolicyOptions options() { return {"dibs-test", "br", {"node-0"}, "10.0.0.10", "10.1.255.1:4000"}; }

const char* kDenyAll = R"({"podSelector":{},"policyTypes":["Ingress","Egress"]})";

TEST(PolicyModel, has_nothing_for_pods_without_policies) {
  PolicyModel model(options());
  model.set_pod(pod("a/x", "10.1.0.1"));
  EXPECT_THAT(model.whole(), Not(HasSubstr("jump")));
  EXPECT_THAT(model.changes(), IsEmpty());
}

TEST(PolicyModel, denies_by_default_what_a_policy_selects) {
  PolicyModel model(options());
  model.set_pod(pod("a/x", "10.1.0.1"));
  model.set_pod(pod("b/y", "10.1.0.2"));
  model.set_policy(policy("a/deny", kDenyAll));
  const std::string text = model.whole();
  EXPECT_THAT(text, HasSubstr("  chain i-1 {\n    drop\n  }"));
  EXPECT_THAT(text, HasSubstr("  chain e-2 {\n    drop\n  }"));
  EXPECT_THAT(text, HasSubstr("elements = { 10.1.0.1 : jump i-1 }"));
  EXPECT_THAT(text, HasSubstr("elements = { 10.1.0.1 : jump e-2 }"));
  EXPECT_THAT(text, HasSubstr("elements = { 10.1.0.1 . 10.1.0.1 }"));
  EXPECT_THAT(text, Not(HasSubstr("10.1.0.2")));
}

TEST(PolicyModel, leaves_out_who_has_no_network_of_his_own) {
  PolicyModel model(options());
  model.set_policy(policy("a/deny", kDenyAll));
  model.set_pod(pod("a/host", "10.1.0.1", "{}", R"(,"hostNetwork":true)"));
  model.set_pod(pod("a/young", ""));
  Value over = pod("a/over", "10.1.0.3");
  over.mut("status").set("phase", "Succeeded");
  model.set_pod(over);
  Value elsewhere = pod("a/far", "10.1.0.4");
  elsewhere.mut("spec").set("nodeName", "node-9");
  model.set_pod(elsewhere);
  EXPECT_THAT(model.whole(), Not(HasSubstr("jump")));
}

TEST(PolicyModel, lets_in_who_is_named) {
  PolicyModel model(options());
  model.set_namespace(name_space("a", R"({"team":"a"})"));
  model.set_namespace(name_space("b", R"({"team":"b"})"));
  model.set_pod(pod("a/web", "10.1.0.1", R"({"app":"web"})"));
  model.set_pod(pod("a/front", "10.1.0.2", R"({"app":"front"})"));
  model.set_pod(pod("b/front", "10.1.0.3", R"({"app":"front"})"));
  model.set_pod(pod("b/other", "10.1.0.4"));
  model.set_policy(policy("a/own", R"({"podSelector":{"matchLabels":{"app":"web"}},
      "policyTypes":["Ingress"],"ingress":[
        {"from":[{"podSelector":{"matchLabels":{"app":"front"}}}]},
        {"from":[{"namespaceSelector":{"matchLabels":{"team":"b"}}}],"ports":[{"port":80}]},
        {"from":[{"namespaceSelector":{},"podSelector":{"matchLabels":{"app":"front"}}}],
         "ports":[{"port":8000,"endPort":8010,"protocol":"UDP"}]}]})"));
  const std::string text = model.whole();
  EXPECT_THAT(text, HasSubstr("set p-1i0 {\n    type ipv4_addr;\n    elements = { 10.1.0.2 }"));
  EXPECT_THAT(text, HasSubstr("elements = { 10.1.0.3, 10.1.0.4 }"));
  EXPECT_THAT(text, HasSubstr("elements = { 10.1.0.2, 10.1.0.3 }"));
  EXPECT_THAT(text, HasSubstr("    ip saddr @p-1i0 return\n"
                              "    ip saddr @p-1i1 meta l4proto tcp th dport 80-80 return\n"
                              "    ip saddr @p-1i2 meta l4proto udp th dport 8000-8010 return\n"
                              "    drop\n"));
}

TEST(PolicyModel, takes_exceptions_out_of_blocks) {
  PolicyModel model(options());
  model.set_pod(pod("a/web", "10.1.0.1"));
  model.set_policy(policy("a/p", R"({"podSelector":{},"policyTypes":["Egress"],"egress":[{"to":[
      {"ipBlock":{"cidr":"10.2.0.0/24","except":["10.2.0.0/30","10.2.0.128/25"]}},
      {"ipBlock":{"cidr":"10.2.1.0/24"}},{"ipBlock":{"cidr":"10.2.2.0/24"}},
      {"ipBlock":{"cidr":"fd00::/64"}}]}]})"));
  EXPECT_THAT(model.whole(),
              HasSubstr("set b-1e0 {\n    type ipv4_addr; flags interval;\n"
                        "    elements = { 10.2.0.4-10.2.0.127, 10.2.1.0-10.2.2.255 }"));
}

TEST(PolicyModel, finds_ports_by_name_at_their_pods) {
  PolicyModel model(options());
  const char* ports = R"(,"containers":[{"ports":[{"name":"http","containerPort":8080}]}])";
  model.set_pod(pod("a/web", "10.1.0.1", R"({"app":"web"})", ports));
  model.set_pod(pod("a/asks", "10.1.0.2"));
  model.set_policy(policy("a/in", R"({"podSelector":{"matchLabels":{"app":"web"}},
      "policyTypes":["Ingress"],"ingress":[{"ports":[{"port":"http"}]}]})"));
  std::string text = model.whole();
  EXPECT_THAT(text, HasSubstr("elements = { 10.1.0.1 . tcp . 8080 }"));
  EXPECT_THAT(text, HasSubstr("    ip daddr . meta l4proto . th dport @n-1i0 return\n"));
}

TEST(PolicyModel, lets_ask_the_dns_of_the_machine_who_may_ask_kube_dns) {
  PolicyModel model(options());
  model.set_namespace(
      name_space("kube-system", R"({"kubernetes.io/metadata.name":"kube-system"})"));
  model.set_pod(pod("a/x", "10.1.0.1", R"({"app":"x"})"));
  model.set_pod(pod("a/y", "10.1.0.2", R"({"app":"y"})"));
  model.set_pod(pod("a/z", "10.1.0.3", R"({"app":"z"})"));
  model.set_policy(policy("a/deny", kDenyAll));
  model.set_policy(policy("a/x",
                          R"({"podSelector":{"matchLabels":{"app":"x"}},"policyTypes":["Egress"],
      "egress":[{"to":[{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"kube-system"}},
                        "podSelector":{"matchLabels":{"k8s-app":"kube-dns"}}}],
                 "ports":[{"port":53,"protocol":"UDP"}]}]})"));
  model.set_policy(policy("a/y",
                          R"({"podSelector":{"matchLabels":{"app":"y"}},"policyTypes":["Egress"],
      "egress":[{"to":[{"ipBlock":{"cidr":"10.0.0.0/24"}}]}]})"));
  EXPECT_THAT(model.whole(),
              HasSubstr("elements = { 10.1.0.1 . udp, 10.1.0.2 . tcp, 10.1.0.2 . udp }"));
}

TEST(PolicyModel, tells_the_kernel_what_differs) {
  PolicyModel model(options());
  model.set_pod(pod("a/web", "10.1.0.1", R"({"app":"web"})"));
  model.set_policy(policy("a/p", R"({"podSelector":{"matchLabels":{"app":"web"}},
      "policyTypes":["Ingress"],"ingress":[{"from":[{"podSelector":{"matchLabels":{"app":"f"}}}]}]})"));
  model.whole();

  model.set_pod(pod("a/f", "10.1.0.2", R"({"app":"f"})"));
  EXPECT_EQ(model.changes(), "add element inet dibs-test p-1i0 { 10.1.0.2 }\n");
  model.set_pod(pod("a/f", "10.1.0.2", R"({"app":"f"})"));
  EXPECT_EQ(model.changes(), "");
  model.remove_pod(pod("a/f", "10.1.0.2"));
  EXPECT_EQ(model.changes(), "delete element inet dibs-test p-1i0 { 10.1.0.2 }\n");

  model.set_policy(policy("a/deny", R"({"podSelector":{},"policyTypes":["Ingress"]})"));
  EXPECT_EQ(model.changes(),
            "add chain inet dibs-test i-2\n"
            "add rule inet dibs-test i-2 ip saddr @p-1i0 return\n"
            "add rule inet dibs-test i-2 drop\n"
            "delete element inet dibs-test policy-ingress { 10.1.0.1 }\n"
            "add element inet dibs-test policy-ingress { 10.1.0.1 : jump i-2 }\n"
            "flush chain inet dibs-test i-1\n"
            "delete chain inet dibs-test i-1\n");
  model.remove_policy(policy("a/p", "{}"));
  EXPECT_EQ(model.changes(),
            "add chain inet dibs-test i-3\n"
            "add rule inet dibs-test i-3 drop\n"
            "delete element inet dibs-test policy-ingress { 10.1.0.1 }\n"
            "add element inet dibs-test policy-ingress { 10.1.0.1 : jump i-3 }\n"
            "flush chain inet dibs-test i-2\n"
            "delete chain inet dibs-test i-2\n"
            "delete set inet dibs-test p-1i0\n");
  model.remove_policy(policy("a/deny", "{}"));
  EXPECT_EQ(model.changes(),
            "delete element inet dibs-test policy-self { 10.1.0.1 . 10.1.0.1 }\n"
            "delete element inet dibs-test policy-ingress { 10.1.0.1 }\n"
            "flush chain inet dibs-test i-3\n"
            "delete chain inet dibs-test i-3\n");
}

TEST(PolicyModel, a_new_pod_takes_an_address_over) {
  PolicyModel model(options());
  model.set_pod(pod("a/old", "10.1.0.1", R"({"app":"web"})"));
  model.set_policy(policy("a/p", R"({"podSelector":{"matchLabels":{"app":"web"}},
      "policyTypes":["Ingress"]})"));
  model.set_pod(pod("b/new", "10.1.0.1"));
  EXPECT_THAT(model.whole(), Not(HasSubstr("10.1.0.1 : jump")));
  model.remove_pod(pod("a/old", "10.1.0.1"));
  EXPECT_THAT(model.whole(), Not(HasSubstr("10.1.0.1")));
}

TEST(PolicyModel, follows_labels_of_namespaces) {
  PolicyModel model(options());
  model.set_namespace(name_space("b", "{}"));
  model.set_pod(pod("b/x", "10.1.0.2"));
  model.set_policy(policy("a/p", R"({"podSelector":{},"policyTypes":["Ingress"],
      "ingress":[{"from":[{"namespaceSelector":{"matchLabels":{"team":"b"}}}]}]})"));
  model.whole();
  model.set_namespace(name_space("b", R"({"team":"b"})"));
  EXPECT_EQ(model.changes(), "add element inet dibs-test p-1i0 { 10.1.0.2 }\n");
}

/// What is left after any changes is what a new model would have, but for the
/// numbers in names; and the differences, told one after the other, add up to
/// it.
struct Kernel {
  std::map<std::string, std::set<std::string>> sets;
  std::set<std::string> chains;

  void apply(const std::string& text) {
    for (const auto line : split(text, '\n')) {
      const auto words = split(line, ' ');
      if (words.size() < 5) continue;
      const std::string verb = cat(words[0], ' ', words[1]);
      const std::string name(words[4]);
      if (verb == "add set") {
        ASSERT_TRUE(sets.emplace(name, std::set<std::string>()).second) << line;
      }
      if (verb == "delete set") {
        ASSERT_EQ(sets.erase(name), 1U) << line;
      }
      if (verb == "add chain") {
        ASSERT_TRUE(chains.insert(name).second) << line;
      }
      if (verb == "delete chain") {
        ASSERT_EQ(chains.erase(name), 1U) << line;
      }
      if (words[1] != "element") continue;
      const std::string list(line.substr(line.find('{') + 2, line.rfind('}') - line.find('{') - 3));
      std::string rest = list;
      while (!rest.empty()) {
        const auto comma = rest.find(", ");
        const std::string element = rest.substr(0, comma);
        rest = comma == std::string::npos ? "" : rest.substr(comma + 2);
        const std::string key = element.substr(0, element.find(" : "));
        if (words[0] == "add") {
          ASSERT_TRUE(sets[name].insert(key).second) << line;
        }
        if (words[0] == "delete") {
          ASSERT_EQ(sets[name].erase(key), 1U) << line;
        }
      }
    }
  }
};

TEST(PolicyModelProperty, differences_add_up) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937 chance(seed);
    const auto pick = [&](unsigned n) { return static_cast<unsigned>(chance() % n); };
    const auto label = [&] { return cat(R"({"app":")", pick(3), R"("})"); };
    PolicyModel model(options());
    model.whole();
    Kernel kernel;
    std::map<std::string, Value> pods;
    std::map<std::string, Value> policies;
    std::map<std::string, Value> spaces;
    for (int step = 0; step < 150; ++step) {
      const std::string key = cat(pick(2) == 0 ? "a/" : "b/", "x", pick(4));
      switch (pick(5)) {
        case 0:
          if (pods.contains(key)) model.remove_pod(pods[key]);
          pods.erase(key);
          break;
        case 1:
          if (policies.contains(key)) model.remove_policy(policies[key]);
          policies.erase(key);
          break;
        case 2:
          policies[key] =
              policy(key, cat(R"({"podSelector":{"matchLabels":)", label(),
                              R"(},"policyTypes":["Ingress")", pick(2) == 0 ? R"(,"Egress")" : "",
                              R"(],"ingress":[{"from":[{"podSelector":{"matchLabels":)", label(),
                              R"(},"namespaceSelector":{"matchLabels":)", label(),
                              R"(}}]}],"egress":[{"to":[{"ipBlock":{"cidr":"10.0.0.0/)",
                              8 + pick(3) * 8, R"("}}],"ports":[{"port":"http"},{"port":53}]}]})"));
          model.set_policy(policies[key]);
          break;
        case 3: {
          const std::string name = pick(2) == 0 ? "a" : "b";
          spaces[name] = name_space(name, label());
          model.set_namespace(spaces[name]);
          break;
        }
        default:
          pods[key] = pod(key, cat("10.1.0.", pick(6)), label(),
                          R"(,"containers":[{"ports":[{"name":"http","containerPort":80}]}])");
          model.set_pod(pods[key]);
      }
      if (pick(3) == 0) kernel.apply(model.changes());
      if (testing::Test::HasFatalFailure()) return;
    }
    kernel.apply(model.changes());
    for (const auto& [key, value] : std::map(pods)) model.remove_pod(value);
    for (const auto& [key, value] : std::map(policies)) model.remove_policy(value);
    kernel.apply(model.changes());
    EXPECT_THAT(kernel.chains, IsEmpty());
    for (const auto& [name, elements] : kernel.sets) EXPECT_THAT(elements, IsEmpty()) << name;
  }
}

}  // namespace
}  // namespace dibs::proxy
