#include "node/pods/env.h"

#include <gmock/gmock.h>

#include "node/pods/env_file.h"
#include "node/pods/env_services.h"
#include "node/pods/volume_test_support.h"

namespace dibs::node {
namespace {

using json::Value;
using test::FakeObjects;
using test::from_text;
using testing::ElementsAre;
using testing::Pair;

TEST(Env, expands_references) {
  const EnvList env = {{"A", "1"}, {"B", "two"}, {"A.B", "dot"}, {"EMPTY", ""}};
  const struct {
    const char* text;
    const char* expanded;
  } cases[] = {
      {"$(A)", "1"},        {"x$(A)y$(B)z", "x1ytwoz"},
      {"$$(A)", "$(A)"},    {"$(NO)", "$(NO)"},
      {"$A", "$A"},         {"$", "$"},
      {"$(A", "$(A"},       {"$$$(A)", "$1"},
      {"$$$$(A)", "$$(A)"}, {"$(A.B)", "dot"},
      {"$(EMPTY)", ""},     {"a$$", "a$"},
      {"$()", "$()"},       {"", ""},
      {"100$", "100$"},     {"$(A)$(A)", "11"},
  };
  for (const auto& one : cases) EXPECT_EQ(expand_references(one.text, env), one.expanded);
}

struct EnvTest : testing::Test {
  FakeObjects objects;
  NodeFacts facts;
  PodAddresses addresses{{"10.1.0.5", "fd00::5"}, {"192.0.2.1"}};
  Value pod = from_text(R"({
    'metadata': {'name': 'files', 'namespace': 'ns', 'uid': 'u',
                 'labels': {'a/b': 'c'}, 'annotations': {'note': 'hello'}},
    'spec': {'nodeName': 'node-0', 'serviceAccountName': 'robot',
             'containers': [{'name': 'other', 'resources': {'limits': {'memory': '1500'}}}]}})");

  EnvTest() {
    objects.set(PodObjectKind::config_map, "settings",
                R"({'data': {'colour': 'blue', 'x.y': '1', 'bad=name': '2'}})");
    objects.set(PodObjectKind::secret, "keys",
                R"({'data': {'password': 'czNjcmV0', 'user': 'YWRtaW4='}})");
    facts.allocatable_milli_cpu = 4000;
    facts.memory_bytes = 8LL << 30;
  }

  Result<EnvList> make(const std::string& container) {
    return make_environment(pod, from_text(container), facts, addresses, {objects, {}});
  }
  /// The value of a variable X with this source, or the error.
  std::string value_from(const std::string& source) {
    auto env = make(
        "{'name': 'c', 'resources': {'requests': {'cpu': '100m'}, 'limits': "
        "{'memory': '24Mi'}}, 'env': [{'name': 'X', 'valueFrom': " +
        source + "}]}");
    if (!env) return "error: " + env.error().message();
    return env->empty() ? "(unset)" : env->front().second;
  }
};

TEST_F(EnvTest, values_from_elsewhere) {
  const struct {
    const char* source;
    const char* value;
  } cases[] = {
      {"{'configMapKeyRef': {'name': 'settings', 'key': 'colour'}}", "blue"},
      {"{'secretKeyRef': {'name': 'keys', 'key': 'password'}}", "s3cret"},
      {"{'configMapKeyRef': {'name': 'settings', 'key': 'no', 'optional': true}}", "(unset)"},
      {"{'configMapKeyRef': {'name': 'no', 'key': 'no', 'optional': true}}", "(unset)"},
      {"{'configMapKeyRef': {'name': 'settings', 'key': 'shape'}}",
       "error: couldn't find key shape in ConfigMap ns/settings"},
      {"{'secretKeyRef': {'name': 'keys', 'key': 'shape'}}",
       "error: couldn't find key shape in Secret ns/keys"},
      {"{'secretKeyRef': {'name': 'absent', 'key': 'k'}}", "error: secret \"absent\" not found"},
      {"{'fieldRef': {'fieldPath': 'metadata.name'}}", "files"},
      {"{'fieldRef': {'fieldPath': 'metadata.namespace'}}", "ns"},
      {"{'fieldRef': {'fieldPath': 'metadata.uid'}}", "u"},
      {"{'fieldRef': {'fieldPath': 'metadata.labels[\\u0027a/b\\u0027]'}}", "c"},
      {"{'fieldRef': {'fieldPath': 'metadata.annotations[\\u0027note\\u0027]'}}", "hello"},
      {"{'fieldRef': {'fieldPath': 'metadata.annotations[\\u0027no\\u0027]'}}", ""},
      {"{'fieldRef': {'fieldPath': 'spec.nodeName'}}", "node-0"},
      {"{'fieldRef': {'fieldPath': 'spec.serviceAccountName'}}", "robot"},
      {"{'fieldRef': {'fieldPath': 'status.podIP'}}", "10.1.0.5"},
      {"{'fieldRef': {'fieldPath': 'status.podIPs'}}", "10.1.0.5,fd00::5"},
      {"{'fieldRef': {'fieldPath': 'status.hostIP'}}", "192.0.2.1"},
      {"{'resourceFieldRef': {'resource': 'requests.cpu', 'divisor': '1m'}}", "100"},
      {"{'resourceFieldRef': {'resource': 'requests.cpu'}}", "1"},
      {"{'resourceFieldRef': {'resource': 'limits.memory', 'divisor': '1Mi'}}", "24"},
      {"{'resourceFieldRef': {'resource': 'limits.memory', 'divisor': '0'}}", "25165824"},
      {"{'resourceFieldRef': {'resource': 'limits.cpu'}}", "4"},
      {"{'resourceFieldRef': {'resource': 'requests.memory'}}", "0"},
      {"{'resourceFieldRef': {'containerName': 'other', 'resource': 'limits.memory', "
       "'divisor': '1k'}}",
       "2"},
      {"{'resourceFieldRef': {'containerName': 'none', 'resource': 'limits.memory'}}",
       "error: container none not found"},
  };
  for (const auto& one : cases) EXPECT_EQ(value_from(one.source), one.value) << one.source;
}

TEST_F(EnvTest, later_entries_win_and_may_refer_to_earlier_ones) {
  auto env = make(R"({'envFrom': [{'prefix': 'K_', 'secretRef': {'name': 'keys'}},
                                  {'configMapRef': {'name': 'settings'}}],
                      'env': [{'name': 'A', 'value': '$(colour)-$(LATER)-$$(colour)'},
                              {'name': 'LATER', 'value': 'x'},
                              {'name': 'colour', 'value': 'red'},
                              {'name': 'B', 'value': '$(colour)'}]})");
  ASSERT_TRUE(env.ok()) << env.error().message();
  EXPECT_THAT(*env, ElementsAre(Pair("K_password", "s3cret"), Pair("K_user", "admin"),
                                Pair("colour", "red"), Pair("x.y", "1"),
                                Pair("A", "blue-$(LATER)-$(colour)"), Pair("LATER", "x"),
                                Pair("B", "red")));
}

TEST_F(EnvTest, sources_of_many_may_be_optional) {
  EXPECT_TRUE(make("{'envFrom': [{'configMapRef': {'name': 'no', 'optional': true}}]}").ok());
  auto env = make("{'envFrom': [{'configMapRef': {'name': 'absent'}}]}");
  ASSERT_FALSE(env.ok());
  EXPECT_EQ(env.error().message(), "configmap \"absent\" not found");
}

TEST(EnvServices, names_the_cluster_and_neighbours) {
  const std::vector<Value> services = {
      from_text(R"({'metadata': {'name': 'kubernetes', 'namespace': 'default'},
                    'spec': {'clusterIP': '10.0.0.1',
                             'ports': [{'name': 'https', 'port': 443, 'protocol': 'TCP'}]}})"),
      from_text(R"({'metadata': {'name': 'my-db', 'namespace': 'ns'},
                    'spec': {'clusterIP': '10.0.0.7',
                             'ports': [{'port': 53, 'protocol': 'UDP'}]}})"),
      from_text(R"({'metadata': {'name': 'headless', 'namespace': 'ns'},
                    'spec': {'clusterIP': 'None', 'ports': [{'port': 1}]}})"),
      from_text(R"({'metadata': {'name': 'far', 'namespace': 'other'},
                    'spec': {'clusterIP': '10.0.0.8', 'ports': [{'port': 1}]}})"),
  };
  const auto cluster = {Pair("KUBERNETES_SERVICE_HOST", "10.0.0.1"),
                        Pair("KUBERNETES_SERVICE_PORT", "443"),
                        Pair("KUBERNETES_SERVICE_PORT_HTTPS", "443"),
                        Pair("KUBERNETES_PORT", "tcp://10.0.0.1:443"),
                        Pair("KUBERNETES_PORT_443_TCP", "tcp://10.0.0.1:443"),
                        Pair("KUBERNETES_PORT_443_TCP_PROTO", "tcp"),
                        Pair("KUBERNETES_PORT_443_TCP_PORT", "443"),
                        Pair("KUBERNETES_PORT_443_TCP_ADDR", "10.0.0.1")};
  EXPECT_THAT(service_variables(services, "ns", false), testing::ElementsAreArray(cluster));

  const auto all = service_variables(services, "ns", true);
  EXPECT_THAT(all, testing::Contains(Pair("MY_DB_SERVICE_HOST", "10.0.0.7")));
  EXPECT_THAT(all, testing::Contains(Pair("MY_DB_PORT_53_UDP", "udp://10.0.0.7:53")));
  EXPECT_EQ(all.size(), 8U + 7U);
}

TEST(EnvFile, reads_quoted_values) {
  const char* file =
      "# remark\n\n  A='one'\nB='two # no remark'  # remark\nC='x\ny'\nD=\nE= 'z'\nA='later'\n";
  const struct {
    const char* key;
    std::optional<std::string> value;
  } cases[] = {{"A", "one"}, {"B", "two # no remark"}, {"C", "x\ny"}, {"D", ""},
               {"E", ""},    {"F", std::nullopt}};
  for (const auto& one : cases) {
    const auto value = env_file_value(file, one.key);
    ASSERT_TRUE(value.ok()) << value.error().message();
    EXPECT_EQ(*value, one.value) << one.key;
  }
}

TEST(EnvFile, refuses_what_is_not_quoted) {
  const struct {
    const char* text;
    const char* why;
  } cases[] = {{"A=one", "line 1: value must be enclosed in single quotes"},
               {"\nA", "line 2: missing '='"},
               {"='x'", "line 1: empty variable name"},
               {"A ='x'", "line 1: whitespace before '=' is not allowed"},
               {"A='x", "line 1: unclosed single quote"},
               {"A='1\n2' x", "line 2: unexpected content after closing quote"}};
  for (const auto& one : cases) {
    const auto value = env_file_value(one.text, "Z");
    ASSERT_FALSE(value.ok()) << one.text;
    EXPECT_EQ(value.error().message(), cat("invalid environment variable format at ", one.why));
  }
}

TEST_F(EnvTest, values_from_files_of_other_containers) {
  test::TemporaryFolder root;
  facts.root = root.path();
  const std::string volume = root.path() + "/pods/u/volumes/kubernetes.io~empty-dir/v";
  ASSERT_TRUE(make_folder(volume, 0777).ok());
  ASSERT_TRUE(write_file(volume + "/env", "A='one'\n", 0644).ok());
  std::filesystem::create_symlink("/etc/hostname", volume + "/out");
  const std::string ref = "{'fileKeyRef': {'volumeName': 'v', 'path': ";
  EXPECT_EQ(value_from(ref + "'env', 'key': 'A'}}"), "one");
  EXPECT_EQ(value_from(ref + "'env', 'key': 'B', 'optional': true}}"), "(unset)");
  EXPECT_EQ(value_from(ref + "'env', 'key': 'B'}}"),
            "error: environment variable key \"B\" not found in file \"env\"");
  EXPECT_EQ(value_from(ref + "'out', 'key': 'A', 'optional': true}}"), "(unset)");
}

}  // namespace
}  // namespace dibs::node
