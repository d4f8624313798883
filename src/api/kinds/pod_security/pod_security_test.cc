#include "api/kinds/pod_security/pod_security.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/strings.h"
#include "json/parse.h"
#include "json/yaml.h"

namespace dibs::api {
namespace {

using json::Value;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr int kRelease = 36;
const SecurityStandard kBaseline{SecurityLevel::baseline, {}};
const SecurityStandard kRestricted{SecurityLevel::restricted, {}};

/// JSON with ' in place of ".
Value parsed(std::string text) {
  std::ranges::replace(text, '\'', '"');
  auto value = json::parse(text);
  EXPECT_TRUE(value.ok()) << text;
  return value.ok() ? *value : Value();
}

std::string details(const SecurityStandard& standard, const std::string& spec,
                    const std::string& metadata = "{}", int release = kRelease) {
  return judge_pod_security(standard, release, parsed(metadata), parsed(spec)).details();
}

SecurityStandard at(SecurityLevel level, int minor) { return {level, {minor}}; }

/// A pod that keeps to the restricted standard, with `more` in its securityContext and spec.
std::string strict_pod(const std::string& container_context = "", const std::string& spec = "") {
  return cat("{'containers':[{'name':'c','securityContext':{'allowPrivilegeEscalation':false,",
             "'capabilities':{'drop':['ALL']},'runAsNonRoot':true,",
             "'seccompProfile':{'type':'RuntimeDefault'}", container_context, "}}]", spec, "}");
}

TEST(PodSecurityChecks, say_all_that_a_plain_pod_lacks) {
  EXPECT_EQ(details(kBaseline, "{'containers':[{'name':'c'}]}"), "");
  EXPECT_EQ(
      details(kRestricted, "{'containers':[{'name':'c'}]}"),
      "allowPrivilegeEscalation != false (container \"c\" must set "
      "securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "
      "\"c\" must set securityContext.capabilities.drop=[\"ALL\"]), runAsNonRoot != true (pod "
      "or container \"c\" must set securityContext.runAsNonRoot=true), seccompProfile (pod or "
      "container \"c\" must set securityContext.seccompProfile.type to \"RuntimeDefault\" or "
      "\"Localhost\")");
  EXPECT_EQ(details(kRestricted, strict_pod()), "");
  EXPECT_EQ(details({SecurityLevel::privileged, {}}, "{'hostPID':true}"), "");
}

TEST(PodSecurityChecks, know_what_baseline_forbids) {
  struct Case {
    const char* spec;
    const char* details;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"{'hostPID':true,'hostNetwork':true,'hostIPC':true}",
            "host namespaces (hostNetwork=true, hostPID=true, hostIPC=true)"},
           {"{'volumes':[{'name':'a','hostPath':{'path':'/'}},{'name':'b','hostPath':{}}]}",
            "hostPath volumes (volumes \"a\", \"b\")"},
           {"{'containers':[{'name':'a','ports':[{'hostPort':80},{'hostPort':9}]},{'name':'b',"
            "'ports':[{'hostPort':0}]}]}",
            "hostPort (container \"a\" uses hostPorts 80, 9)"},
           {"{'initContainers':[{'name':'i','securityContext':{'privileged':true}}],"
            "'ephemeralContainers':[{'name':'e','securityContext':{'privileged':true}}]}",
            "privileged (containers \"i\", \"e\" must not set securityContext.privileged=true)"},
           {"{'containers':[{'name':'a','securityContext':{'capabilities':{'add':['CHOWN',"
            "'SYS_ADMIN','NET_RAW']}}}]}",
            "non-default capabilities (container \"a\" must not include \"NET_RAW\", \"SYS_ADMIN\" "
            "in securityContext.capabilities.add)"},
           {"{'containers':[{'name':'a','livenessProbe':{'httpGet':{'host':'1.2.3.4'}},"
            "'lifecycle':{'preStop':{'tcpSocket':{'host':'x'}}}}]}",
            "probe or lifecycle host (container \"a\" uses probe or lifecycle hosts \"1.2.3.4\", "
            "\"x\")"},
           {"{'containers':[{'name':'a','securityContext':{'procMount':'Unmasked'}}]}",
            "procMount (container \"a\" must not set securityContext.procMount to \"Unmasked\")"},
           {"{'securityContext':{'seLinuxOptions':{'type':'spc_t','user':'u','role':'r'}}}",
            "seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type \"spc_t\"; "
            "user "
            "may not be set; role may not be set)"},
           {"{'securityContext':{'seccompProfile':{'type':'Unconfined'}},'containers':[{'name':'a',"
            "'securityContext':{'seccompProfile':{'type':'Unconfined'}}}]}",
            "seccompProfile (pod and container \"a\" must not set "
            "securityContext.seccompProfile.type to \"Unconfined\")"},
           {"{'securityContext':{'sysctls':[{'name':'kernel.core_pattern'},{'name':"
            "'kernel.shm_rmid_forced'}]}}",
            "forbidden sysctls (kernel.core_pattern)"},
           {"{'securityContext':{'windowsOptions':{'hostProcess':true}}}",
            "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)"},
           {"{'securityContext':{'appArmorProfile':{'type':'Unconfined'}}}",
            "forbidden AppArmor profile (pod must not set AppArmor profile type to "
            "\"Unconfined\")"}}) {
    EXPECT_EQ(details(kBaseline, c.spec), c.details);
  }
  EXPECT_EQ(details(kBaseline, "{}",
                    "{'annotations':{'container.apparmor.security.beta.kubernetes.io/a':"
                    "'unconfined','container.apparmor.security.beta.kubernetes.io/b':''}}"),
            "forbidden AppArmor profile (annotation must not set AppArmor profile type to "
            "\"container.apparmor.security.beta.kubernetes.io/a=\"unconfined\"\")");
}

TEST(PodSecurityChecks, know_what_restricted_forbids) {
  EXPECT_EQ(details(kRestricted, strict_pod(",'runAsUser':0")),
            "runAsUser=0 (container \"c\" must not set runAsUser=0)");
  EXPECT_EQ(details(kRestricted, strict_pod("", ",'securityContext':{'runAsNonRoot':false}")),
            "runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false)");
  EXPECT_EQ(details(kRestricted, strict_pod("",
                                            ",'volumes':[{'name':'h','hostPath':{}},"
                                            "{'name':'n','nfs':{}},{'name':'e','emptyDir':{}},"
                                            "{'name':'u'}]")),
            "restricted volume types (volumes \"h\", \"n\", \"u\" use restricted volume types "
            "\"hostPath\", \"nfs\", \"unknown\")");
}

TEST(PodSecurityChecks, differ_by_version) {
  const std::string probe =
      "{'containers':[{'name':'a','startupProbe':{'tcpSocket':{'host':'x'}}}]}";
  EXPECT_EQ(details(at(SecurityLevel::baseline, 33), probe), "");
  EXPECT_NE(details(at(SecurityLevel::baseline, 34), probe), "");
  const std::string ports = "{'securityContext':{'sysctls':[{'name':'net.ipv4.tcp_rmem'}]}}";
  EXPECT_NE(details(at(SecurityLevel::baseline, 31), ports), "");
  EXPECT_EQ(details(at(SecurityLevel::baseline, 32), ports), "");
  const std::string annotated =
      "{'annotations':{'seccomp.security.alpha.kubernetes.io/pod':'unconfined'}}";
  EXPECT_EQ(details(at(SecurityLevel::baseline, 18), "{}", annotated),
            "seccompProfile (forbidden annotation "
            "seccomp.security.alpha.kubernetes.io/pod=\"unconfined\")");
  EXPECT_EQ(details(at(SecurityLevel::baseline, 19), "{}", annotated), "");
  // Root inside is nobody outside.
  const std::string own_users =
      strict_pod(",'runAsUser':0,'procMount':'Unmasked'", ",'hostUsers':false");
  EXPECT_EQ(details(at(SecurityLevel::restricted, 35), own_users),
            "procMount (container \"c\" must not set securityContext.procMount to \"Unmasked\")");
  EXPECT_EQ(details(at(SecurityLevel::baseline, 35), own_users), "");
  EXPECT_NE(details(at(SecurityLevel::baseline, 34), own_users), "");
}

TEST(PodSecurityChecks, take_no_version_for_newer_than_the_release) {
  const std::string probe =
      "{'containers':[{'name':'a','startupProbe':{'tcpSocket':{'host':'x'}}}]}";
  EXPECT_EQ(details(kBaseline, probe, "{}", 32), "");
  EXPECT_EQ(details(at(SecurityLevel::baseline, 34), probe, "{}", 32), "");
  EXPECT_NE(details(at(SecurityLevel::baseline, 999), probe, "{}", 37), "");
}

std::vector<std::string> texts(const FieldErrors& errors) {
  std::vector<std::string> out;
  for (const FieldError& error : errors.errors()) out.push_back(error.field + ": " + error.text);
  return out;
}

TEST(PodSecurityPolicy, is_read_from_labels_over_defaults) {
  FieldErrors errors;
  const SecurityPolicy defaults{kBaseline, kBaseline, {}};

  const auto policy =
      security_policy_of(parsed("{'pod-security.kubernetes.io/enforce':'restricted',"
                                "'pod-security.kubernetes.io/enforce-version':'v1.20'}"),
                         defaults, errors);

  EXPECT_THAT(texts(errors), IsEmpty());
  EXPECT_EQ(policy.enforce.str(), "restricted:v1.20");
  EXPECT_EQ(policy.audit.str(), "baseline:latest");
  EXPECT_EQ(policy.warn.str(), "restricted:v1.20");  // as much as is enforced
}

TEST(PodSecurityPolicy, is_the_strictest_where_labels_make_no_sense) {
  FieldErrors errors;

  const auto policy = security_policy_of(
      parsed(
          "{'pod-security.kubernetes.io/enforce':'strict','pod-security.kubernetes.io/audit':'x',"
          "'pod-security.kubernetes.io/warn-version':'v1.07'}"),
      {}, errors);

  EXPECT_EQ(policy.enforce.str(), "restricted:latest");
  EXPECT_EQ(policy.audit.level, SecurityLevel::privileged);
  EXPECT_THAT(texts(errors),
              ElementsAre("metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "
                          "\"strict\": must be one of privileged, baseline, restricted",
                          "metadata.labels[pod-security.kubernetes.io/audit]: Invalid value: "
                          "\"x\": must be one of privileged, baseline, restricted",
                          "metadata.labels[pod-security.kubernetes.io/warn-version]: Invalid "
                          "value: \"v1.07\": must be \"latest\" or \"v1.x\""));
}

TEST(PodSecurityPolicy, takes_versions_as_upstream_spells_them) {
  for (const char* text : {"latest", "v1.0", "v1.9", "v1.36", "v1.99999999999"}) {
    FieldErrors errors;
    security_policy_of(Value::object({{"pod-security.kubernetes.io/enforce-version", text}}), {},
                       errors);
    EXPECT_TRUE(errors.empty()) << text;
  }
  for (const char* text : {"", "1.2", "v1", "v1.", "v2.0", "v1.01", "v1.-1", "v1.x", "Latest",
                           "v1.99999999999999999999999"}) {
    FieldErrors errors;
    security_policy_of(Value::object({{"pod-security.kubernetes.io/enforce-version", text}}), {},
                       errors);
    EXPECT_FALSE(errors.empty()) << text;
  }
}

Result<PodSecurityConfiguration> configured(std::string_view text) {
  auto source = json::parse_yaml(
      cat("apiVersion: pod-security.admission.config.k8s.io/v1\nkind: PodSecurityConfiguration\n",
          text));
  EXPECT_TRUE(source.ok()) << text;
  return read_pod_security_configuration(*source);
}

TEST(PodSecurityConfiguration, has_defaults_and_exemptions) {
  auto made = configured(
      "defaults: {enforce: baseline, enforce-version: v1.30, warn: restricted}\n"
      "exemptions: {usernames: [a], namespaces: [kube-system], runtimeClasses: [kata]}\n");

  ASSERT_TRUE(made.ok()) << made.error().message();
  EXPECT_EQ(made->defaults.enforce.str(), "baseline:v1.30");
  EXPECT_EQ(made->defaults.warn.str(), "restricted:latest");
  EXPECT_EQ(made->defaults.audit.str(), "privileged:latest");
  EXPECT_THAT(made->exempt_namespaces, ElementsAre("kube-system"));
  EXPECT_THAT(made->exempt_users, ElementsAre("a"));
  EXPECT_THAT(made->exempt_runtime_classes, ElementsAre("kata"));
}

TEST(PodSecurityConfiguration, is_refused_where_something_is_unknown_or_wrong) {
  EXPECT_FALSE(configured("default: {}\n").ok());
  EXPECT_FALSE(configured("defaults: {enforced: baseline}\n").ok());
  auto wrong = configured(
      "defaults: {enforce: all, audit-version: '1.2'}\n"
      "exemptions: {namespaces: [a, a, A_], usernames: ['']}\n");
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().message(),
            "[defaults.enforce: Invalid value: \"all\": must be one of privileged, baseline, "
            "restricted, defaults.audit-version: Invalid value: \"1.2\": must be \"latest\" or "
            "\"v1.x\", exemptions.namespaces[1]: Duplicate value: \"a\", exemptions.namespaces[2]: "
            "Invalid value: \"A_\": a lowercase RFC 1123 label must consist of lower case "
            "alphanumeric characters or '-', and must start and end with an alphanumeric character "
            "(e.g. 'my-name',  or '123-abc', regex used for validation is "
            "'[a-z0-9]([-a-z0-9]*[a-z0-9])?'), exemptions.usernames[0]: Invalid value: \"\": "
            "username must not be empty]");
  EXPECT_FALSE(read_pod_security_configuration(Value()).ok());
}

}  // namespace
}  // namespace dibs::api
