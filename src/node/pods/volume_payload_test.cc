#include "node/pods/volume_payload.h"

#include <gmock/gmock.h>

#include "node/pods/volume_test_support.h"

namespace dibs::node {
namespace {

using json::Value;
using test::FakeObjects;
using test::from_text;

struct VolumePayloadTest : testing::Test {
  FakeObjects objects;
  NodeFacts facts;
  Value pod = from_text(R"({
    'metadata': {'name': 'p', 'namespace': 'ns', 'uid': 'u',
                 'labels': {'tier': 'front', 'app': 'files'}, 'annotations': {'note': 'a\nb'}},
    'spec': {'nodeName': 'node-0', 'containers': [
      {'name': 'c', 'resources': {'limits': {'cpu': '250m', 'memory': '32Mi'}}}]}})");

  VolumePayloadTest() {
    objects.set(PodObjectKind::config_map, "settings",
                R"({'data': {'colour': 'blue', 'conf': 'a=1'}, 'binaryData': {'raw': 'AAE='}})");
    objects.set(PodObjectKind::secret, "keys", R"({'data': {'user': 'YWRtaW4='}})");
    facts.memory_bytes = 1 << 30;
    facts.allocatable_milli_cpu = 2000;
  }

  PayloadSources sources() {
    PayloadSources out{objects, facts, {}, [](const Value& source) -> Result<std::string> {
                         return "token for " + source["audience"].str();
                       }};
    out.certificate = [](const std::string& volume, std::size_t index,
                         const Value& source) -> Result<PodCredential> {
      if (source["signerName"].is_null()) return Error::unavailable("not issued yet");
      return PodCredential{volume + " key " + std::to_string(index) + ";", "chain;"};
    };
    return out;
  }

  /// "path:mode=bytes …", or the error.
  std::string show(const std::string& volume) {
    auto files = volume_payload(pod, from_text(volume), sources());
    if (!files) return "error: " + files.error().message();
    std::string out;
    for (const auto& [path, file] : *files) {
      char mode[16];
      std::snprintf(mode, sizeof mode, "%o", file.mode);
      out += (out.empty() ? "" : " ") + path + ":" + mode + "=" + file.bytes;
    }
    return out;
  }
};

TEST_F(VolumePayloadTest, files_of_every_source) {
  const struct {
    const char* volume;
    const char* shown;
  } cases[] = {
      {"{'configMap': {'name': 'settings', 'items': [{'key': 'colour', 'path': 'x/y'}]}}",
       "x/y:644=blue"},
      {"{'configMap': {'name': 'settings', 'defaultMode': 288, 'items': ["
       "{'key': 'colour', 'path': 'a', 'mode': 256}, {'key': 'conf', 'path': 'b'}]}}",
       "a:400=blue b:440=a=1"},
      {"{'secret': {'secretName': 'keys'}}", "user:644=admin"},
      {"{'configMap': {'name': 'nosuch', 'optional': true}}", ""},
      {"{'configMap': {'name': 'settings', 'optional': true, "
       "'items': [{'key': 'nosuch', 'path': 'a'}]}}",
       ""},
      {"{'configMap': {'name': 'nosuch'}}", "error: configmap \"nosuch\" not found"},
      {"{'secret': {'secretName': 'nosuch'}}", "error: secret \"nosuch\" not found"},
      {"{'configMap': {'name': 'settings', 'items': [{'key': 'shape', 'path': 'a'}]}}",
       "error: configmap references non-existent config key: shape"},
      {"{'secret': {'secretName': 'keys', 'items': [{'key': 'shape', 'path': 'a'}]}}",
       "error: references non-existent secret key: shape"},
      {"{'downwardAPI': {'items': ["
       "{'path': 'labels', 'fieldRef': {'fieldPath': 'metadata.labels'}}, "
       "{'path': 'cpu', 'resourceFieldRef': {'containerName': 'c', 'resource': 'limits.cpu', "
       "'divisor': '1m'}}, "
       "{'path': 'memory', 'resourceFieldRef': {'containerName': 'c', "
       "'resource': 'limits.memory'}}]}}",
       "cpu:644=250 labels:644=app=\"files\"\ntier=\"front\" memory:644=33554432"},
      {"{'downwardAPI': {'items': [{'path': 'x', 'resourceFieldRef': "
       "{'containerName': 'd', 'resource': 'limits.cpu'}}]}}",
       "error: container d not found"},
      {"{'projected': {'defaultMode': 420, 'sources': ["
       "{'serviceAccountToken': {'path': 'token', 'audience': 'me'}}, "
       "{'configMap': {'name': 'settings', 'items': [{'key': 'colour', 'path': 'c'}]}}, "
       "{'downwardAPI': {'items': [{'path': 'namespace', "
       "'fieldRef': {'fieldPath': 'metadata.namespace'}}]}}]}}",
       "c:644=blue namespace:644=ns token:644=token for me"},
      {"{'projected': {'sources': [{'configMap': {'name': 'one'}}, {'secret': {'name': 'two'}}]}}",
       "error: [configmap \"one\" not found, secret \"two\" not found]"},
      {"{'projected': {'sources': [{'clusterTrustBundle': {'path': 'x'}}]}}",
       "error: projected volume source clusterTrustBundle is not supported by this node"},
  };
  for (const auto& one : cases) EXPECT_EQ(show(one.volume), one.shown) << one.volume;
}

TEST_F(VolumePayloadTest, whole_maps_bring_their_binary_keys) {
  auto files = volume_payload(pod, from_text("{'configMap': {'name': 'settings'}}"), sources());
  ASSERT_TRUE(files.ok());
  EXPECT_EQ(files->size(), 3U);
  EXPECT_EQ(files->at("raw").bytes, std::string("\0\1", 2));
}

TEST_F(VolumePayloadTest, tokens_belong_to_whom_they_are_for) {
  const std::string volume =
      "{'projected': {'sources': [{'serviceAccountToken': {'path': 'token'}}]}}";
  EXPECT_EQ(show(volume), "token:644=token for ");

  pod.mut("spec").set("securityContext", from_text("{'fsGroup': 2000}"));
  EXPECT_EQ(show(volume), "token:600=token for ");

  pod.mut("spec").set("securityContext", from_text("{'runAsUser': 1000}"));
  EXPECT_EQ(show(volume), "token:600=token for ");
  EXPECT_EQ(common_user(pod), 1000);
}

TEST_F(VolumePayloadTest, certificates_come_in_the_files_that_are_named) {
  const std::string volume =
      "{'name': 'v', 'projected': {'sources': [{'configMap': {'name': 'settings', 'items': []}}, "
      "{'podCertificate': {'signerName': 'a/b', 'keyPath': 'key', 'certificateChainPath': "
      "'chain'}}, {'podCertificate': {'signerName': 'a/b', 'credentialBundlePath': 'both'}}]}}";
  pod.mut("spec").set("securityContext", from_text("{'fsGroup': 2000}"));
  auto files = volume_payload(pod, from_text(volume), sources());
  ASSERT_TRUE(files.ok());
  EXPECT_EQ(files->at("key").bytes, "v key 1;");
  EXPECT_EQ(files->at("chain").bytes, "chain;");
  EXPECT_EQ(files->at("both").bytes, "v key 2;chain;");
  EXPECT_EQ(files->at("key").mode, 0600U);
  EXPECT_EQ(show("{'projected': {'sources': [{'podCertificate': {'keyPath': 'key'}}]}}"),
            "error: not issued yet");
}

TEST_F(VolumePayloadTest, users_that_differ_own_nothing) {
  pod = from_text(R"({'spec': {'containers': [{'securityContext': {'runAsUser': 1}},
                                              {'securityContext': {'runAsUser': 2}}]}})");
  EXPECT_EQ(common_user(pod), std::nullopt);
  pod = from_text("{'spec': {'containers': [{'securityContext': {'runAsUser': 1}}, {}]}}");
  EXPECT_EQ(common_user(pod), std::nullopt);
}

}  // namespace
}  // namespace dibs::node
