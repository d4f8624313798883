#include "node/pods/volumes.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "client/testing/fake_api.h"
#include "client/transport.h"
#include "node/pods/node_paths.h"
#include "node/pods/volume_host.h"
#include "node/pods/volume_test_support.h"
#include "runtime/sim_runtime.h"

namespace dibs::node {
namespace {

namespace fs = std::filesystem;
using json::Value;
using std::chrono::minutes;
using std::chrono::seconds;
using test::from_text;
using test::TemporaryFolder;
using testing::ElementsAre;
using testing::IsEmpty;

struct VolumesTest : testing::Test {
  runtime::SimRuntime sim;
  client::FakeApi api;
  TemporaryFolder root;
  NodeFacts facts;
  std::unique_ptr<client::Transport> transport;
  std::unique_ptr<client::Client> client;
  std::unique_ptr<PodObjects> objects;
  std::unique_ptr<Volumes> volumes;
  std::vector<std::string> due;
  int tokens = 0;

  VolumesTest() {
    facts.root = root.path();
    facts.name = "node-0";
    facts.memory_bytes = 1LL << 30;
    transport = client::make_in_process_transport(
        [this, inner = api.handler()](calls::Request request,
                                      std::unique_ptr<calls::Exchange> exchange) {
          if (!request.target.ends_with("/token")) {
            return inner(std::move(request), std::move(exchange));
          }
          const std::string ends = format_rfc3339(sim.now() + minutes(10));
          exchange->respond({201,
                             {},
                             cat("{\"status\": {\"token\": \"token-", ++tokens,
                                 "\", \"expirationTimestamp\": \"", ends, "\"}}")});
        },
        sim.runtime());
    client = std::make_unique<client::Client>(*transport);
    objects = make_pod_objects(*client, sim.runtime(), {});
    volumes = std::make_unique<Volumes>(*client, sim.runtime(), *objects, facts);
    volumes->on_due([this](const std::string& uid) { due.push_back(uid); });
  }
  ~VolumesTest() override {
    volumes.reset();
    objects.reset();
    sim.run_until_idle();
  }

  static bool is_root() { return ::geteuid() == 0; }
  void put_map(const std::string& name, const std::string& data) {
    api.put("/api/v1/namespaces/ns/configmaps/" + name,
            from_text("{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': '" + name +
                      "', 'namespace': 'ns'}, 'data': " + data + "}"));
    sim.run_until_idle();
  }
  /// A pod with one container that mounts each volume v at /v.
  static Value pod_with(const std::string& volumes, const std::string& mounts,
                        const std::string& more = "") {
    return from_text("{'metadata': {'name': 'p', 'namespace': 'ns', 'uid': 'u1'}, 'spec': {" +
                     more + "'volumes': " + volumes +
                     ", 'containers': [{'name': 'c', 'volumeMounts': " + mounts + "}]}}");
  }
  std::vector<std::string> set_up(const Value& pod) {
    std::vector<std::string> out;
    for (const auto& failure : volumes->set_up(pod)) out.push_back(failure.message);
    sim.run_until_idle();
    return out;
  }
  std::vector<Mount> mounts(const Value& pod,
                            const std::vector<std::pair<std::string, std::string>>& env = {}) {
    auto made = volumes->mounts(pod, pod["spec"]["containers"][0], env);
    EXPECT_TRUE(made.ok()) << made.error().message();
    return made ? *made : std::vector<Mount>();
  }
  static std::string read(const std::string& path) {
    return read_file(path, 1 << 20).value_or("(none)");
  }
  static unsigned mode(const std::string& path) {
    struct stat info {};
    EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
    return info.st_mode & 07777U;
  }
};

TEST_F(VolumesTest, fills_follows_and_removes_a_config_map) {
  const Value pod = pod_with("[{'name': 'v', 'configMap': {'name': 'settings'}}]",
                             "[{'name': 'v', 'mountPath': '/v'}]");
  EXPECT_THAT(set_up(pod),
              ElementsAre("MountVolume.SetUp failed for volume \"v\" : configmap \"settings\" not "
                          "found"));
  put_map("settings", "{'a': '1'}");
  EXPECT_THAT(due, ElementsAre("u1"));

  EXPECT_THAT(set_up(pod), IsEmpty());
  const auto made = mounts(pod);
  ASSERT_EQ(made.size(), 1U);
  EXPECT_EQ(made[0].container_path, "/v");
  EXPECT_EQ(made[0].host_path, root.path() + "/pods/u1/volumes/kubernetes.io~configmap/v");
  EXPECT_TRUE(made[0].read_only);
  EXPECT_EQ(read(made[0].host_path + "/a"), "1");

  due.clear();
  put_map("settings", "{'a': '2'}");
  EXPECT_THAT(due, ElementsAre("u1"));
  EXPECT_THAT(set_up(pod), IsEmpty());
  EXPECT_EQ(read(made[0].host_path + "/a"), "2");

  EXPECT_THAT(volumes->pods_on_disk(), ElementsAre("u1"));
  EXPECT_TRUE(volumes->tear_down("u1").ok());
  EXPECT_THAT(volumes->pods_on_disk(), IsEmpty());
  EXPECT_TRUE(volumes->tear_down("u1").ok());
  put_map("settings", "{'a': '3'}");
  EXPECT_EQ(api.watches(), 0U);
}

TEST_F(VolumesTest, makes_only_what_containers_use) {
  EXPECT_THAT(set_up(pod_with("[{'name': 'v', 'configMap': {'name': 'nosuch'}}]", "[]")),
              IsEmpty());
}

TEST_F(VolumesTest, refuses_what_it_cannot_do) {
  const Value pod = pod_with(
      "[{'name': 'n', 'nfs': {'server': 'x', 'path': '/'}}, "
      "{'name': 'i', 'iscsi': {'iqn': 'x'}}, {'name': 'ok', 'emptyDir': {}}]",
      "[{'name': 'n', 'mountPath': '/n'}, {'name': 'i', 'mountPath': '/i'}, "
      "{'name': 'ok', 'mountPath': '/ok'}]");
  EXPECT_THAT(set_up(pod),
              ElementsAre("MountVolume.SetUp failed for volume \"n\" : volumes of type nfs are not "
                          "supported by this node",
                          "MountVolume.SetUp failed for volume \"i\" : volumes of type iscsi are "
                          "not supported by this node"));
}

TEST_F(VolumesTest, empty_folders_keep_what_is_written_to_them) {
  if (!is_root()) GTEST_SKIP() << "needs root";
  const Value pod =
      pod_with("[{'name': 'v', 'emptyDir': {}}]", "[{'name': 'v', 'mountPath': '/v'}]",
               "'securityContext': {'fsGroup': 2000}, ");
  EXPECT_THAT(set_up(pod), IsEmpty());
  const std::string path = mounts(pod)[0].host_path;
  EXPECT_EQ(mode(path), 02777U);
  ASSERT_TRUE(write_file(path + "/x", "1", 0600).ok());
  EXPECT_THAT(set_up(pod), IsEmpty());
  EXPECT_EQ(mode(path + "/x"), 0600U);
}

TEST_F(VolumesTest, memory_is_mounted_and_unmounted) {
  if (!is_root()) GTEST_SKIP() << "needs root to mount";
  const Value pod =
      pod_with("[{'name': 'v', 'emptyDir': {'medium': 'Memory', 'sizeLimit': '8Mi'}}]",
               "[{'name': 'v', 'mountPath': '/v'}]", "'securityContext': {'fsGroup': 2000}, ");
  const auto failures = set_up(pod);
  if (!failures.empty()) GTEST_SKIP() << "cannot mount here: " << failures[0];
  const std::string path = mounts(pod)[0].host_path;
  EXPECT_EQ(mode(path), 03777U);
  EXPECT_TRUE(is_mounted(path));
  EXPECT_THAT(set_up(pod), IsEmpty());
  EXPECT_EQ(mounts_below(root.path()).size(), 1U);

  EXPECT_TRUE(volumes->tear_down("u1").ok());
  EXPECT_THAT(mounts_below(root.path()), IsEmpty());
  EXPECT_THAT(volumes->pods_on_disk(), IsEmpty());
}

TEST_F(VolumesTest, memory_is_bounded_by_limits_of_any_size) {
  if (!is_root()) GTEST_SKIP() << "needs root to mount";
  const Value pod = from_text(
      "{'metadata': {'name': 'p', 'namespace': 'ns', 'uid': 'u1'}, 'spec': {'volumes': [{'name': "
      "'v', 'emptyDir': {'medium': 'Memory', 'sizeLimit': '8Mi'}}], 'containers': [{'name': 'c', "
      "'volumeMounts': [{'name': 'v', 'mountPath': '/v'}], 'resources': {'limits': {'memory': "
      "'7Ei'}}}, {'name': 'd', 'resources': {'limits': {'memory': '7Ei'}}}]}}");
  const auto failures = set_up(pod);
  if (!failures.empty()) GTEST_SKIP() << "cannot mount here: " << failures[0];
  struct statvfs space {};
  ASSERT_EQ(::statvfs(mounts(pod)[0].host_path.c_str(), &space), 0);
  EXPECT_EQ(space.f_blocks * space.f_frsize, 8U << 20);
  EXPECT_TRUE(volumes->tear_down("u1").ok());
}

TEST_F(VolumesTest, host_paths_are_what_they_are_said_to_be) {
  const std::string file = root.path() + "/file";
  ASSERT_TRUE(write_file(file, "", 0644).ok());
  const struct {
    std::string path;
    const char* type;
    std::string error;
  } cases[] = {
      {root.path(), "Directory", ""},
      {root.path(), "", ""},
      {file, "File", ""},
      {"/dev/null", "CharDevice", ""},
      {root.path() + "/new/folder", "DirectoryOrCreate", ""},
      {root.path() + "/new/file", "FileOrCreate", ""},
      {root.path() + "/no/file", "FileOrCreate",
       "open " + root.path() + "/no/file: no such file or directory"},
      {file, "Directory", "hostPath type check failed: " + file + " is not a directory"},
      {file, "DirectoryOrCreate", "hostPath type check failed: " + file + " is not a directory"},
      {"/dev", "File", "hostPath type check failed: /dev is not a file"},
      {file, "Socket", "hostPath type check failed: " + file + " is not a socket file"},
      {file, "CharDevice", "hostPath type check failed: " + file + " is not a character device"},
      {file, "BlockDevice", "hostPath type check failed: " + file + " is not a block device"},
  };
  for (const auto& one : cases) {
    const auto checked =
        check_host_path(Value::object({{"path", one.path}, {"type", one.type}}), facts);
    EXPECT_EQ(checked ? "" : checked.error().message(), one.error) << one.path << " " << one.type;
  }
  EXPECT_TRUE(fs::is_directory(root.path() + "/new/folder"));
  EXPECT_TRUE(fs::is_regular_file(root.path() + "/new/file"));
}

TEST_F(VolumesTest, paths_of_a_kubelets_machine_lie_in_the_nodes_folder) {
  facts.places = node_places(root.path(), root.path() + "/logs");
  const Value pod = pod_with(
      "[{'name': 'v', 'hostPath': {'path': '/var/lib/kubelet/plugins/a', "
      "'type': 'DirectoryOrCreate'}}, {'name': 'w', 'hostPath': {'path': '/var/run/cdi'}}]",
      "[{'name': 'v', 'mountPath': '/v'}, {'name': 'w', 'mountPath': '/w'}]");
  EXPECT_THAT(set_up(pod), IsEmpty());
  const auto made = mounts(pod);
  ASSERT_EQ(made.size(), 2U);
  EXPECT_EQ(made[0].host_path, root.path() + "/plugins/a");
  EXPECT_EQ(made[1].host_path, root.path() + "/cdi");
  EXPECT_TRUE(fs::is_directory(made[0].host_path));
  EXPECT_TRUE(fs::is_directory(made[1].host_path));
}

TEST_F(VolumesTest, links_do_not_lead_out_of_the_nodes_folder) {
  facts.places = node_places(root.path(), root.path() + "/logs");
  fs::create_directories(root.path() + "/plugins/a");
  fs::create_symlink("/etc", root.path() + "/plugins/out");
  fs::create_symlink("../../../../../../../tmp/dibs-planted", root.path() + "/plugins/up");
  fs::create_symlink("a", root.path() + "/plugins/inside");
  const auto check = [&](const std::string& path, const char* type) {
    const auto checked = check_host_path(Value::object({{"path", path}, {"type", type}}), facts);
    const auto prepared = prepare_host_path(Value::object({{"path", path}}), facts);
    EXPECT_EQ(checked.ok(), prepared.ok());
    return checked ? "" : checked.error().message();
  };
  EXPECT_EQ(check("/var/lib/kubelet/plugins/out", ""),
            "/var/lib/kubelet/plugins/out leads out of the node's folder by a link");
  EXPECT_NE(check("/var/lib/kubelet/plugins/out/new", "DirectoryOrCreate"), "");
  EXPECT_NE(check("/var/lib/kubelet/plugins/up", "FileOrCreate"), "");
  EXPECT_FALSE(fs::exists("/tmp/dibs-planted"));
  EXPECT_EQ(check("/var/lib/kubelet/plugins/inside", "Directory"), "");
  EXPECT_EQ(check("/var/lib/kubelet/plugins/inside/new", "DirectoryOrCreate"), "");
  EXPECT_TRUE(fs::is_directory(root.path() + "/plugins/a/new"));
}

TEST_F(VolumesTest, sub_paths_are_made_and_bound) {
  if (!is_root()) GTEST_SKIP() << "needs root to mount";
  put_map("settings", "{'a': '1'}");
  const Value pod =
      pod_with("[{'name': 'v', 'emptyDir': {}}, {'name': 'm', 'configMap': {'name': 'settings'}}]",
               "[{'name': 'v', 'mountPath': '/v', 'subPath': 'deep/down'}, "
               "{'name': 'm', 'mountPath': '/etc/x', 'subPath': 'a'}, "
               "{'name': 'v', 'mountPath': '/w', 'subPathExpr': 'of-$(POD)'}]");
  EXPECT_THAT(set_up(pod), IsEmpty());
  const auto made = mounts(pod, {{"POD", "p"}});
  ASSERT_EQ(made.size(), 3U);
  ASSERT_TRUE(write_file(made[0].host_path + "/x", "seen", 0644).ok());
  const std::string volume = root.path() + "/pods/u1/volumes/kubernetes.io~empty-dir/v";
  EXPECT_EQ(read(volume + "/deep/down/x"), "seen");
  EXPECT_EQ(read(made[1].host_path), "1");
  EXPECT_TRUE(made[1].read_only);
  EXPECT_TRUE(fs::is_directory(volume + "/of-p"));
  EXPECT_EQ(mode(volume + "/of-p"), 0777U);
  // A restarted container gets the same places.
  EXPECT_EQ(mounts(pod, {{"POD", "p"}}).size(), 3U);

  EXPECT_TRUE(volumes->tear_down("u1").ok());
  EXPECT_THAT(mounts_below(root.path()), IsEmpty());
  EXPECT_FALSE(fs::exists(root.path() + "/pods/u1"));
}

TEST_F(VolumesTest, sub_paths_do_not_lead_out_of_the_volume) {
  const Value pod = pod_with("[{'name': 'v', 'emptyDir': {}}]",
                             "[{'name': 'v', 'mountPath': '/v', 'subPath': 'link'}]");
  EXPECT_THAT(set_up(pod), IsEmpty());
  const std::string volume = root.path() + "/pods/u1/volumes/kubernetes.io~empty-dir/v";
  fs::create_symlink("/etc", volume + "/link");
  const auto made = volumes->mounts(pod, pod["spec"]["containers"][0], {});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().message(),
            "failed to prepare subPath for volumeMount \"v\" of container \"c\"");
}

TEST_F(VolumesTest, an_image_is_mounted_by_its_id_and_never_written_to) {
  const Value pod = pod_with(
      "[{'name': 'v', 'image': {'reference': 'r.example/data:1'}}]",
      "[{'name': 'v', 'mountPath': '/v'}, {'name': 'v', 'mountPath': '/w', 'subPath': 'sets/a'}]");
  EXPECT_THAT(set_up(pod), IsEmpty());
  const Value& container = pod["spec"]["containers"][0];
  const auto made = volumes->mounts(pod, container, {}, {{"v", "sha256:1"}});
  ASSERT_TRUE(made.ok()) << made.error().message();
  ASSERT_EQ(made->size(), 2U);
  EXPECT_EQ((*made)[0].image, "sha256:1");
  EXPECT_EQ((*made)[0].image_path, "");
  EXPECT_EQ((*made)[0].host_path, "");
  EXPECT_TRUE((*made)[0].read_only);
  EXPECT_EQ((*made)[1].container_path, "/w");
  EXPECT_EQ((*made)[1].image_path, "sets/a");

  const auto missing = volumes->mounts(pod, container, {});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().message(), "volume \"v\" is not mounted");
}

TEST_F(VolumesTest, names_what_a_sub_path_lacks) {
  const Value pod = pod_with("[{'name': 'v', 'emptyDir': {}}]",
                             "[{'name': 'v', 'mountPath': '/v', 'subPathExpr': '$(NO)'}]");
  EXPECT_THAT(set_up(pod), IsEmpty());
  const auto made = volumes->mounts(pod, pod["spec"]["containers"][0], {});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().message(), "missing value for \"NO\"");
}

TEST_F(VolumesTest, certificates_are_written_once_the_signer_has_answered) {
  const auto put = [&](const std::string& path, const std::string& uid) {
    api.put(path, from_text("{'metadata': {'name': '" + path.substr(path.rfind('/') + 1) +
                            "', 'uid': '" + uid + "'}}"));
  };
  put("/api/v1/nodes/node-0", "nu");
  put("/api/v1/namespaces/ns/serviceaccounts/default", "au");
  const std::string requests = "/apis/certificates.k8s.io/v1/namespaces/ns/podcertificaterequests/";
  const std::string pem = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
  const auto answer = [&](const std::string& name) {
    auto request = api.get(requests + name);
    ASSERT_TRUE(request) << name;
    request->set("status", from_text("{'conditions': [{'type': 'Issued', 'status': 'True'}]}"));
    request->mut("status").set("certificateChain", "words\n" + pem);
    request->mut("status").set("beginRefreshAt", format_rfc3339(sim.now() + minutes(40)));
    request->mut("status").set("notAfter", format_rfc3339(sim.now() + minutes(60)));
    api.put(requests + name, *request);
    sim.run_until_idle();
  };
  const auto last_request = [&] {
    for (auto made = api.revision(); made > 100; --made) {
      const std::string name = "req-" + std::to_string(made);
      if (api.get(requests + name)) return name;
    }
    return std::string();
  };
  const Value pod = pod_with(
      "[{'name': 'v', 'projected': {'sources': [{'podCertificate': {'signerName': 'a.b/c', "
      "'keyType': 'ED25519', 'keyPath': 'key', 'certificateChainPath': 'chain'}}]}}]",
      "[{'name': 'v', 'mountPath': '/v'}]");
  EXPECT_THAT(set_up(pod), ElementsAre("MountVolume.SetUp failed for volume \"v\" : credential "
                                       "bundle is not issued yet"));
  const std::string first = last_request();
  EXPECT_THAT(due, IsEmpty());
  answer(first);
  EXPECT_THAT(due, ElementsAre("u1"));
  EXPECT_THAT(set_up(pod), IsEmpty());
  const std::string path = mounts(pod)[0].host_path;
  const std::string key = read(path + "/key");
  EXPECT_THAT(key, testing::StartsWith("-----BEGIN PRIVATE KEY-----"));
  EXPECT_EQ(read(path + "/chain"), pem);
  EXPECT_THAT(volumes->certificate_metrics(),
              testing::EndsWith("\nkubelet_podcertificate_states{signer_name=\"a.b/c\",state="
                                "\"fresh\"} 1\n"));

  due.clear();
  sim.advance(minutes(46));
  EXPECT_THAT(due, ElementsAre("u1"));
  EXPECT_THAT(set_up(pod), IsEmpty());
  EXPECT_EQ(read(path + "/key"), key);
  EXPECT_NE(last_request(), first);
  answer(last_request());
  EXPECT_THAT(set_up(pod), IsEmpty());
  EXPECT_NE(read(path + "/key"), key);

  EXPECT_TRUE(volumes->tear_down("u1").ok());
  due.clear();
  answer(first);
  EXPECT_THAT(due, IsEmpty());
  EXPECT_EQ(api.watches(), 0U);
  EXPECT_EQ(sim.pending_timers(), 0U);
}

TEST_F(VolumesTest, tokens_are_renewed_before_they_end) {
  const Value pod = pod_with(
      "[{'name': 'v', 'projected': {'sources': [{'serviceAccountToken': {'path': 'token'}}]}}]",
      "[{'name': 'v', 'mountPath': '/v'}]");
  EXPECT_THAT(set_up(pod), IsEmpty());
  const std::string path = mounts(pod)[0].host_path + "/token";
  EXPECT_EQ(read(path), "token-1");
  EXPECT_THAT(set_up(pod), IsEmpty());
  EXPECT_EQ(read(path), "token-1");

  sim.advance(minutes(7));
  EXPECT_THAT(due, IsEmpty());
  sim.advance(minutes(1));
  EXPECT_THAT(due, ElementsAre("u1"));
  EXPECT_THAT(set_up(pod), IsEmpty());
  EXPECT_EQ(read(path), "token-2");
  EXPECT_TRUE(volumes->tear_down("u1").ok());
  sim.run_until_idle();
  EXPECT_EQ(sim.pending_timers(), 0U);
}

TEST_F(VolumesTest, hosts_file_names_the_pod) {
  Value pod = from_text(
      "{'metadata': {'name': 'p', 'namespace': 'ns', 'uid': 'u1'}, 'spec': {'hostname': 'chosen', "
      "'subdomain': 'group', 'hostAliases': [{'ip': '192.0.2.7', 'hostnames': ['far', 'away']}]}}");
  auto path = volumes->hosts_file(pod, {"10.1.0.5"});
  ASSERT_TRUE(path.ok());
  EXPECT_EQ(read(*path),
            "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n"
            "::1\tlocalhost ip6-localhost ip6-loopback\nfe00::0\tip6-localnet\n"
            "fe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n"
            "10.1.0.5\tchosen.group.ns.svc.cluster.local\tchosen\n"
            "\n# Entries added by HostAliases.\n192.0.2.7\tfar\taway\n");
  EXPECT_EQ(*volumes->hosts_file(pod, {}), "");
}

TEST_F(VolumesTest, termination_messages_are_read_back) {
  const Value pod = from_text("{'metadata': {'uid': 'u1'}}");
  auto path = volumes->termination_file(pod, "c", 2);
  ASSERT_TRUE(path.ok());
  EXPECT_EQ(mode(*path), 0666U);
  EXPECT_EQ(volumes->termination_message("u1", "c", 2), "");
  ASSERT_TRUE(write_file(*path, std::string(5000, 'x'), 0666).ok());
  EXPECT_EQ(volumes->termination_message("u1", "c", 2), std::string(4096, 'x'));
  EXPECT_EQ(volumes->termination_message("u1", "c", 3), "");
}

TEST_F(VolumesTest, simulated_nodes_check_and_write_nothing) {
  facts.simulated = true;
  const Value pod = pod_with("[{'name': 'v', 'configMap': {'name': 'settings'}}]",
                             "[{'name': 'v', 'mountPath': '/v'}]");
  EXPECT_EQ(set_up(pod).size(), 1U);
  put_map("settings", "{'a': '1'}");
  EXPECT_THAT(set_up(pod), IsEmpty());
  EXPECT_THAT(mounts(pod), IsEmpty());
  EXPECT_FALSE(fs::exists(root.path() + "/pods"));
}

TEST_F(VolumesTest, objects_of_pods_are_shared_and_let_go) {
  put_map("one", "{'a': '1'}");
  const auto pod = [](const std::string& uid) {
    return from_text("{'metadata': {'namespace': 'ns', 'uid': '" + uid +
                     "'}, 'spec': {'containers': [{'env': [{'valueFrom': {'configMapKeyRef': "
                     "{'name': 'one', 'key': 'a'}}}]}]}}");
  };
  objects->retain(pod("x"));
  objects->retain(pod("y"));
  sim.run_until_idle();
  EXPECT_EQ(api.watches(), 1U);
  EXPECT_TRUE(objects->get(PodObjectKind::config_map, "ns", "one").ok());
  put_map("one", "{'a': '2'}");
  EXPECT_THAT(due, ElementsAre("x", "y"));
  // The same news is told once.
  due.clear();
  EXPECT_EQ((*objects->get(PodObjectKind::config_map, "ns", "one"))["data"]["a"].as_string(), "2");
  sim.run_until_idle();
  EXPECT_THAT(due, IsEmpty());
  objects->release("x");
  put_map("one", "{'a': '3'}");
  EXPECT_EQ(api.watches(), 1U);
  objects->release("y");
  put_map("one", "{'a': '4'}");
  EXPECT_EQ(api.watches(), 0U);
}

}  // namespace
}  // namespace dibs::node
