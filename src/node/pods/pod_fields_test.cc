// Holds docs/nodes.md against the schema of pods and against what the agent refuses.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "api/schema/builtin.h"
#include "api/schema/schema.h"
#include "base/strings.h"
#include "json/parse.h"
#include "node/pods/pod_refusals.h"

namespace dibs::node {
namespace {

using json::Value;

/// What the page says of each field, by its path below the spec.
std::map<std::string, std::string> read_page(std::string_view text) {
  std::map<std::string, std::string> rows;
  for (const auto line : split(text, '\n')) {
    if (!line.starts_with("| `")) continue;
    const auto cells = split(line, '|');
    if (cells.size() < 4) continue;
    for (const auto name : split(cells[1], ',')) {
      std::string_view field = trim(name);
      EXPECT_TRUE(field.starts_with('`') && field.ends_with('`')) << line;
      field = field.substr(1, field.size() - 2);
      EXPECT_TRUE(rows.emplace(field, trim(cells[2])).second) << field << " stands there twice";
    }
  }
  return rows;
}

class Walk {
 public:
  explicit Walk(const std::map<std::string, std::string>& rows) : rows_(rows) {}

  void object(const api::Schema& schema, const std::string& path) {
    for (const auto& field : schema.fields) value(*field.schema, path + field.name);
  }
  const std::vector<std::string>& missing() const { return missing_; }
  const std::set<std::string>& used() const { return used_; }

 private:
  void value(const api::Schema& schema, const std::string& path) {
    const bool list = schema.shape == api::Shape::list;
    const bool map = schema.shape == api::Shape::map;
    const api::Schema& inner = list || map ? *schema.element : schema;
    const bool nested = map || inner.shape == api::Shape::object;
    const std::string name = list && nested ? path + "[]" : path;
    if (nested && covered(name + ".*")) return;
    // The kinds of containers have the same fields.
    const bool container = name == "initContainers[]" || name == "ephemeralContainers[]";
    if (!nested) {
      if (!covered(name)) missing_.push_back(name);
    } else if (map) {
      missing_.push_back(name + ".*");
    } else if (!container) {
      object(inner, name + ".");
    } else {
      for (const auto& field : inner.fields) {
        const auto own = cat(name, ".", field.name);
        if (rows_.contains(own)) {
          used_.insert(own);
        } else {
          value(*field.schema, cat("containers[].", field.name));
        }
      }
    }
    if (list && nested) covered(name);
  }

  bool covered(const std::string& name) {
    if (!rows_.contains(name)) return false;
    used_.insert(name);
    return true;
  }

  const std::map<std::string, std::string>& rows_;
  std::vector<std::string> missing_;
  std::set<std::string> used_;
};

std::string page_text() {
  // ctest names the folder; by hand the tests run in it.
  const char* source = std::getenv("DIBS_SOURCE");
  std::ifstream file(std::filesystem::path(source != nullptr ? source : ".") / "docs/nodes.md");
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(PodFields, are_all_on_the_page) {
  const std::string text = page_text();
  if (text.empty()) GTEST_SKIP() << "docs/nodes.md is not here";
  const auto rows = read_page(text);
  const api::Schema* spec = api::builtin_type("core/v1.PodSpec");
  ASSERT_NE(spec, nullptr);
  Walk walk(rows);
  walk.object(*spec, "");
  EXPECT_EQ(join(walk.missing(), "\n"), "") << "fields that docs/nodes.md does not name";
  for (const auto& [name, what] : rows) {
    EXPECT_TRUE(walk.used().contains(name)) << name << " is no field of a pod";
  }
}

struct Sample {
  const char* field;
  const char* spec;
  const char* reason;
};
// One for each row of the page that says so.
constexpr Sample kRefused[] = {
    {"hostUsers", R"({"hostUsers": false})", "PodFeatureUnsupported"},
    {"runtimeClassName", R"({"runtimeClassName": "gvisor"})", "PodFeatureUnsupported"},
    {"securityContext.appArmorProfile.*",
     R"({"securityContext": {"appArmorProfile": {"type": "RuntimeDefault"}}})", "AppArmor"},
    {"securityContext.seLinuxOptions.*",
     R"({"securityContext": {"seLinuxOptions": {"level": "s0"}}})", "PodFeatureUnsupported"},
    {"securityContext.sysctls[].*",
     R"({"securityContext": {"sysctls": [{"name": "kernel.core_pattern", "value": "x"}]}})",
     "SysctlForbidden"},
    {"securityContext.windowsOptions.*",
     R"({"securityContext": {"windowsOptions": {"hostProcess": true}}})", "PodFeatureUnsupported"},
    {"containers[].restartPolicyRules[].action",
     R"({"containers": [{"restartPolicyRules": [{"action": "RestartAllContainers"}]}]})",
     "PodFeatureUnsupported"},
    {"containers[].securityContext.appArmorProfile.*",
     R"({"containers": [{"securityContext": {"appArmorProfile":
        {"type": "Localhost", "localhostProfile": "p"}}}]})",
     "AppArmor"},
    {"containers[].securityContext.procMount",
     R"({"containers": [{"securityContext": {"procMount": "Unmasked"}}]})",
     "PodFeatureUnsupported"},
    {"containers[].securityContext.seLinuxOptions.*",
     R"({"initContainers": [{"securityContext": {"seLinuxOptions": {"type": "t"}}}]})",
     "PodFeatureUnsupported"},
    {"containers[].securityContext.windowsOptions.*",
     R"({"containers": [{"securityContext": {"windowsOptions": {"runAsUserName": "x"}}}]})",
     "PodFeatureUnsupported"},
    {"containers[].volumeMounts[].recursiveReadOnly",
     R"({"containers": [{"volumeMounts": [{"name": "v", "recursiveReadOnly": "Enabled"}]}]})",
     "PodFeatureUnsupported"},
};

Value pod_with(const char* spec) { return Value::object({{"spec", json::parse(spec).value()}}); }

TEST(PodFields, that_cannot_be_honoured_are_refused_by_name) {
  std::set<std::string> sampled = {"os.*"};  // by admit_pod()
  for (const auto& sample : kRefused) {
    const auto rejection = refuse_spec(pod_with(sample.spec), NodeFacts());
    ASSERT_TRUE(rejection) << sample.spec;
    EXPECT_EQ(rejection->reason, sample.reason);
    // The last name of the path stands in the message, a setting's name in place of "sysctls".
    std::string_view field = sample.field;
    if (field.ends_with(".*")) field.remove_suffix(2);
    if (field.ends_with("[]")) field.remove_suffix(2);
    const auto word = field.substr(field.rfind('.') + 1);
    EXPECT_NE(rejection->message.find(word == "sysctls" ? "kernel.core_pattern" : word),
              std::string::npos)
        << rejection->message;
    sampled.emplace(sample.field);
  }
  const std::string text = page_text();
  if (text.empty()) GTEST_SKIP() << "docs/nodes.md is not here";
  for (const auto& [name, what] : read_page(text)) {
    EXPECT_EQ(what.starts_with("refused"), sampled.contains(name)) << name;
  }
}

TEST(PodFields, labels_are_taken_and_told_of_where_the_kernel_has_none) {
  NodeFacts facts;
  facts.selinux = false;
  const Value pod = pod_with(R"({"containers": [{}, {"securityContext":
      {"seLinuxOptions": {"level": "s0"}}}]})");
  EXPECT_FALSE(refuse_spec(pod, facts));
  EXPECT_EQ(without_effect(pod, facts),
            "spec.containers[1].securityContext.seLinuxOptions has no effect: the kernel of this "
            "node has no SELinux");
  EXPECT_EQ(without_effect(pod_with("{}"), facts), "");
  facts.selinux = true;
  EXPECT_TRUE(refuse_spec(pod, facts));
  EXPECT_EQ(without_effect(pod, facts), "");
}

TEST(PodFields, that_say_what_is_so_anyway_are_taken) {
  for (const char* spec :
       {R"({"hostUsers": true, "runtimeClassName": "", "resources": {"requests": {"cpu": "1"}}})",
        R"({"securityContext": {"seLinuxOptions": {}, "windowsOptions": {},
            "appArmorProfile": {"type": "Unconfined"}}})",
        R"({"containers": [{"securityContext": {"procMount": "Default"},
            "volumeMounts": [{"name": "v", "recursiveReadOnly": "IfPossible"}],
            "restartPolicyRules": [{"action": "Restart"}]}]})"}) {
    const auto rejection = refuse_spec(pod_with(spec), NodeFacts());
    EXPECT_FALSE(rejection) << rejection->message;
  }
}

TEST(PodFields, of_older_pods_are_annotations) {
  Value pod = Value::object();
  pod.mut("metadata")
      .mut("annotations")
      .set("container.apparmor.security.beta.kubernetes.io/c", "runtime/default");
  EXPECT_EQ(refuse_spec(pod, NodeFacts())->reason, "AppArmor");
}

}  // namespace
}  // namespace dibs::node
