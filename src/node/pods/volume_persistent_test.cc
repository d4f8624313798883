#include "node/pods/volume_persistent.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sha256.h"
#include "client/testing/fake_api.h"
#include "client/transport.h"
#include "json/parse.h"
#include "node/plugins/fake_csi_driver.h"
#include "node/pods/node_paths.h"
#include "node/pods/volume_test_support.h"
#include "node/pods/volumes.h"
#include "runtime/sim_runtime.h"

namespace dibs::node {
namespace {

namespace fs = std::filesystem;
using json::Value;
using test::FakeCsiDriver;
using test::from_text;
using test::TemporaryFolder;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kNode = "/api/v1/nodes/node-0";

struct PersistentVolumesTest : testing::Test {
  runtime::SimRuntime sim;
  client::FakeApi api;
  rpc::MemoryNetwork network;
  TemporaryFolder root;
  TemporaryFolder data;
  NodeFacts facts;
  std::unique_ptr<client::Transport> transport;
  std::unique_ptr<client::Client> client;
  std::unique_ptr<PodObjects> objects;
  std::unique_ptr<FakeCsiDriver> driver;
  std::unique_ptr<CsiDrivers> drivers;
  std::unique_ptr<Volumes> volumes;
  bool report_in_use = true;
  std::vector<std::string> events;  // "Pod Reason note", a warning with an exclamation mark

  PersistentVolumesTest() {
    facts.root = root.path();
    facts.name = "node-0";
    put(kNode,
        "{'apiVersion': 'v1', 'kind': 'Node', 'metadata': {'name': 'node-0', 'uid': 'n', "
        "'labels': {'zone': 'a'}}, 'status': {}}");
    transport = client::make_in_process_transport(
        [this, inner = api.handler()](calls::Request request,
                                      std::unique_ptr<calls::Exchange> exchange) {
          if (!request.target.ends_with("/token")) {
            return inner(std::move(request), std::move(exchange));
          }
          const std::string ends = format_rfc3339(sim.now() + std::chrono::minutes(10));
          exchange->respond({201,
                             {},
                             cat("{\"status\": {\"token\": \"secret\", \"expirationTimestamp\": \"",
                                 ends, "\"}}")});
        },
        sim.runtime());
    client = std::make_unique<client::Client>(*transport);
    objects = make_pod_objects(*client, sim.runtime(), {});
    driver = std::make_unique<FakeCsiDriver>(network, root.path(), data.path() + "/driver");
    drivers = std::make_unique<CsiDrivers>(
        CsiDriversOptions{"node-0", FakeCsiDriver::paths(root.path()),
                          [this](const std::string& path) { return network.connect(path); }},
        *client, sim.runtime());
    start();
  }
  ~PersistentVolumesTest() override {
    volumes.reset();
    objects.reset();
    drivers.reset();
    sim.run_until_idle();
  }

  /// As a new agent: it knows what is on the disk.
  void start() {
    VolumeSurroundings around;
    around.drivers = drivers.get();
    around.node = [this] { return *api.get(kNode); };
    around.in_use = [this](const std::vector<std::string>& names) {
      if (!report_in_use) return;
      Value node = *api.get(kNode);
      Value list = Value::array();
      for (const auto& name : names) list.push(name);
      node.mut("status").set("volumesInUse", list);
      api.put(kNode, node);
    };
    around.event = [this](const Value& object, bool warning, const std::string& reason,
                          const std::string& note) {
      const std::string kind = object["kind"].str();
      events.push_back(cat(kind.empty() ? "Pod" : kind, warning ? "! " : " ", reason, ' ', note));
    };
    volumes = std::make_unique<Volumes>(*client, sim.runtime(), *objects, facts, around);
  }
  void register_driver(const std::string& name = "fake.csi") {
    const auto added = drivers->add({"CSIPlugin", name, FakeCsiDriver::kEndpoint, {"1.0.0"}});
    ASSERT_TRUE(added.ok()) << added.error().message();
  }
  void put_settings(const std::string& spec) {
    put("/apis/storage.k8s.io/v1/csidrivers/fake.csi",
        "{'apiVersion': 'storage.k8s.io/v1', 'kind': 'CSIDriver', 'metadata': {'name': "
        "'fake.csi'}, 'spec': " +
            spec + "}");
  }
  void put(const std::string& path, const std::string& text) { api.put(path, from_text(text)); }
  void put_claim(const std::string& name, const std::string& volume,
                 const std::string& phase = "Bound", const std::string& metadata = "") {
    put("/api/v1/namespaces/ns/persistentvolumeclaims/" + name,
        "{'apiVersion': 'v1', 'kind': 'PersistentVolumeClaim', 'metadata': {'name': '" + name +
            "', 'namespace': 'ns', 'uid': 'uid-" + name + "'" + metadata +
            "}, 'spec': {'volumeName': '" + volume + "'}, 'status': {'phase': '" + phase + "'}}");
  }
  void put_volume(const std::string& name, const std::string& claim, const std::string& spec) {
    put("/api/v1/persistentvolumes/" + name,
        "{'apiVersion': 'v1', 'kind': 'PersistentVolume', 'metadata': {'name': '" + name +
            "'}, 'spec': {'claimRef': {'name': '" + claim + "', 'uid': 'uid-" + claim + "'}, " +
            spec + "}}");
  }
  /// A volume of the fake driver, with its claim.
  void put_csi(const std::string& more = "'accessModes': ['ReadWriteOnce']") {
    put_claim("data", "pv");
    put_volume("pv", "data",
               "'csi': {'driver': 'fake.csi', 'volumeHandle': 'h1', 'fsType': 'ext4', "
               "'volumeAttributes': {'a': 'b'}}, " +
                   more);
  }
  /// One of a driver that can enlarge it: `size` of the volume, and what its claim's status says.
  void put_sizes(const std::string& size, const std::string& status) {
    Value volume = *api.get("/api/v1/persistentvolumes/pv");
    volume.mut("spec").set("capacity", Value::object({{"storage", size}}));
    api.put("/api/v1/persistentvolumes/pv", volume);
    Value claim = *api.get(kClaim);
    claim.set("status", from_text(status));
    claim.mut("status").set("phase", "Bound");
    api.put(kClaim, claim);
  }
  void put_growing() {
    put_settings("{'attachRequired': false, 'volumeLifecycleModes': ['Persistent']}");
    put_csi();
    put_sizes("1Gi", "{'capacity': {'storage': '1Gi'}}");
    driver->abilities.push_back(FakeCsiDriver::Rpc::EXPAND_VOLUME);
    register_driver();
  }
  /// As a resizer leaves it that has done its part.
  void grow_to(const std::string& size, const std::string& before = "1Gi") {
    put_sizes(size, "{'capacity': {'storage': '" + before +
                        "'}, 'allocatedResources': {'storage': '" + size +
                        "'}, 'allocatedResourceStatuses': {'storage': 'NodeResizePending'}, "
                        "'conditions': [{'type': 'FileSystemResizePending', 'status': 'True'}, "
                        "{'type': 'Other', 'status': 'True'}]}");
  }
  Value claim_status() const { return (*api.get(kClaim))["status"]; }
  /// Another look at the pod, some time later.
  std::vector<std::string> look(const Value& pod) {
    sim.advance(std::chrono::seconds(11));
    auto out = set_up(pod);
    sim.run_until_idle();
    return out;
  }
  static constexpr const char* kClaim = "/api/v1/namespaces/ns/persistentvolumeclaims/data";
  static std::string expanded(const std::string& uid, const char* bytes) {
    return cat("expand h1 ", target(uid), ' ', bytes);
  }
  static Value pod_of(const std::string& uid, const std::string& volume,
                      const std::string& more = "",
                      const std::string& uses =
                          "'volumeMounts': [{'name': 'v', 'mountPath': "
                          "'/v'}]") {
    return from_text("{'metadata': {'name': 'p-" + uid + "', 'namespace': 'ns', 'uid': '" + uid +
                     "'}, 'spec': {" + more + "'volumes': [{'name': 'v', " + volume +
                     "}], 'containers': [{'name': 'c', " + uses + "}]}}");
  }
  static Value claimer(const std::string& uid, const std::string& more = "") {
    return pod_of(uid, "'persistentVolumeClaim': {'claimName': 'data'}", more);
  }
  std::vector<std::string> set_up(const Value& pod) {
    std::vector<std::string> out;
    for (const auto& failure : volumes->set_up(pod)) {
      out.push_back(failure.waits ? "waits: " + failure.message : failure.message);
    }
    return out;
  }
  std::string error(const Value& pod) {
    const auto all = set_up(pod);
    return all.size() == 1 ? all[0] : cat(all.size(), " failures");
  }
  std::string tear_down(const std::string& uid) {
    const auto gone = volumes->tear_down(uid);
    return gone ? "" : gone.error().message();
  }
  std::vector<Mount> mounts(const Value& pod) {
    auto made = volumes->mounts(pod, pod["spec"]["containers"][0], {});
    EXPECT_TRUE(made.ok()) << made.error().message();
    return made ? *made : std::vector<Mount>();
  }
  static bool can_mount() { return ::geteuid() == 0; }
  std::string staging() const {
    return cat("/var/lib/kubelet/plugins/kubernetes.io/csi/fake.csi/", sha256_hex("h1"),
               "/globalmount");
  }
  static std::string target(const std::string& uid) {
    return cat("/var/lib/kubelet/pods/", uid, "/volumes/kubernetes.io~csi/pv/mount");
  }
  /// Nothing mounted, staged, or recorded.
  void expect_clean() {
    EXPECT_THAT(driver->staged, IsEmpty());
    EXPECT_THAT(driver->published, IsEmpty());
    EXPECT_THAT(mounts_below(root.path()), IsEmpty());
    EXPECT_FALSE(fs::exists(root.path() + "/pods/u1"));
    EXPECT_FALSE(
        fs::exists(cat(root.path(), "/plugins/kubernetes.io/csi/fake.csi/", sha256_hex("h1"))));
  }
};

TEST_F(PersistentVolumesTest, a_claim_must_be_bound_and_to_this_volume) {
  const auto failure = [](const std::string& why) {
    return "Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], "
           "failed to process volumes=[v]: " +
           why;
  };
  EXPECT_THAT(error(claimer("u1")), HasSubstr("error processing PVC ns/data: failed to fetch PVC "
                                              "from API server: "));
  put_claim("data", "pv", "Pending");
  EXPECT_EQ(error(claimer("u1")), failure("error processing PVC ns/data: PVC is not bound"));
  put_claim("data", "pv", "Bound", ", 'deletionTimestamp': '2026-01-01T00:00:00Z'");
  EXPECT_EQ(error(claimer("u1")), failure("error processing PVC ns/data: PVC is being deleted"));
  put_claim("data", "");
  EXPECT_EQ(error(claimer("u1")),
            failure("error processing PVC ns/data: PVC has empty pvc.Spec.VolumeName"));
  put_claim("data", "pv");
  put_volume("pv", "other", "'hostPath': {'path': '/tmp'}");
  EXPECT_EQ(error(claimer("u1")),
            failure("error processing PVC ns/data: found PV object pv but its "
                    "pv.Spec.ClaimRef.UID uid-other does not point to claim.UID uid-data"));
  put_volume("pv", "data", "'volumeMode': 'Block', 'hostPath': {'path': '/tmp'}");
  EXPECT_EQ(error(claimer("u1")),
            failure("volume v has volumeMode Block, but is specified in volumeMounts"));
  EXPECT_EQ(tear_down("u1"), "");
}

TEST_F(PersistentVolumesTest, the_claim_of_an_ephemeral_volume_is_the_pod_s_own) {
  put_claim("p-u1-v", "pv");
  put_volume("pv", "p-u1-v", "'hostPath': {'path': '" + data.path() + "'}");
  const Value pod = pod_of("u1", "'ephemeral': {'volumeClaimTemplate': {}}");
  EXPECT_THAT(error(pod), HasSubstr("PVC ns/p-u1-v was not created for pod ns/p-u1 (pod is not "
                                    "owner)"));
  put_claim("p-u1-v", "pv", "Bound", ", 'ownerReferences': [{'uid': 'u1', 'controller': true}]");
  EXPECT_THAT(set_up(pod), IsEmpty());
}

TEST_F(PersistentVolumesTest, a_path_of_the_host_is_used_as_it_is) {
  const std::string path = data.path() + "/new";
  put_claim("data", "pv");
  put_volume("pv", "data", "'hostPath': {'path': '" + path + "', 'type': 'Directory'}");
  EXPECT_EQ(error(claimer("u1")),
            "MountVolume.SetUp failed for volume \"pv\" : hostPath type "
            "check failed: " +
                path + " is not a directory");
  put_volume("pv", "data", "'hostPath': {'path': '" + path + "', 'type': 'DirectoryOrCreate'}");
  EXPECT_THAT(set_up(claimer("u1")), IsEmpty());
  EXPECT_EQ(mounts(claimer("u1"))[0].host_path, path);
  ASSERT_TRUE(write_file(path + "/kept", "1", 0600).ok());
  EXPECT_EQ(tear_down("u1"), "");
  EXPECT_TRUE(fs::exists(path + "/kept"));
  EXPECT_FALSE(fs::exists(root.path() + "/pods/u1"));
}

TEST_F(PersistentVolumesTest, types_that_are_not_there_are_refused_by_name) {
  put_claim("data", "pv");
  put_volume("pv", "data", "'capacity': {'storage': '1Gi'}, 'nfs': {'server': 'x', 'path': '/'}");
  EXPECT_EQ(error(claimer("u1")),
            "MountVolume.SetUp failed for volume \"pv\" : persistent volumes "
            "of type nfs are not supported by this node");
}

TEST_F(PersistentVolumesTest, a_volume_of_other_nodes_is_not_mounted) {
  put_claim("data", "pv");
  const std::string affinity =
      "'nodeAffinity': {'required': {'nodeSelectorTerms': [{'matchExpressions': [{'key': 'zone', "
      "'operator': 'In', 'values': ['ZONE']}]}]}}, 'local': {'path': '/no/such'}";
  const auto in = [&](const std::string& zone) {
    std::string spec = affinity;
    spec.replace(spec.find("ZONE"), 4, zone);
    put_volume("pv", "data", spec);
  };
  in("b");
  EXPECT_EQ(error(claimer("u1")),
            "MountVolume.NodeAffinity check failed for volume \"pv\" : no "
            "matching NodeSelectorTerms");
  in("a");
  EXPECT_EQ(error(claimer("u1")),
            "MountVolume.NewMounter initialization failed for volume \"pv\" "
            ": path \"/no/such\" does not exist");
}

TEST_F(PersistentVolumesTest, a_local_folder_is_mounted_given_to_the_group_and_kept) {
  if (!can_mount()) GTEST_SKIP() << "needs root to mount";
  put_claim("data", "pv");
  ASSERT_TRUE(write_file(data.path() + "/file", "1", 0600).ok());
  put_volume("pv", "data", "'mountOptions': ['noexec'], 'local': {'path': '" + data.path() + "'}");
  const Value pod = claimer("u1", "'securityContext': {'fsGroup': 2000}, ");
  ASSERT_THAT(set_up(pod), IsEmpty());
  const std::string at = root.path() + "/pods/u1/volumes/kubernetes.io~local-volume/pv";
  EXPECT_EQ(mounts(pod)[0].host_path, at);
  EXPECT_TRUE(is_in_mount_table(at));
  struct stat info {};
  ASSERT_EQ(::stat((at + "/file").c_str(), &info), 0);
  EXPECT_EQ(info.st_gid, 2000U);
  EXPECT_EQ(info.st_mode & 0777U, 0660U);

  // A new agent finds it, and its end takes it down, without a word about what is in it.
  start();
  EXPECT_THAT(set_up(pod), IsEmpty());
  EXPECT_EQ(mounts_below(root.path()).size(), 1U);
  start();
  EXPECT_EQ(tear_down("u1"), "");
  EXPECT_THAT(mounts_below(root.path()), IsEmpty());
  EXPECT_TRUE(fs::exists(data.path() + "/file"));
}

TEST_F(PersistentVolumesTest, a_provisioned_folder_is_made_in_the_folder_of_the_node) {
  if (!can_mount()) GTEST_SKIP() << "needs root to mount";
  facts.places = node_places(root.path(), root.path() + "/logs");
  put_claim("data", "pv");
  put_volume("pv", "data", "'local': {'path': '/var/lib/kubelet/local-path/pv'}");
  EXPECT_THAT(error(claimer("u1")), HasSubstr("does not exist"));
  Value volume = *api.get("/api/v1/persistentvolumes/pv");
  volume.mut("metadata")
      .set("annotations", from_text("{'pv.kubernetes.io/provisioned-by': 'dibs.io/local-path'}"));
  api.put("/api/v1/persistentvolumes/pv", volume);
  ASSERT_THAT(set_up(claimer("u1")), IsEmpty());
  struct stat info {};
  ASSERT_EQ(::stat((root.path() + "/local-path/pv").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0777U);
  EXPECT_EQ(tear_down("u1"), "");
  EXPECT_TRUE(fs::exists(root.path() + "/local-path/pv"));
}

TEST_F(PersistentVolumesTest, wrong_options_leave_nothing_mounted) {
  if (!can_mount()) GTEST_SKIP() << "needs root to mount";
  put_claim("data", "pv");
  put_volume("pv", "data", "'mountOptions': ['hard'], 'local': {'path': '" + data.path() + "'}");
  EXPECT_EQ(error(claimer("u1")),
            "MountVolume.SetUp failed for volume \"pv\" : mount option "
            "\"hard\" is not known to bind mounts");
  EXPECT_THAT(mounts_below(root.path()), IsEmpty());
  EXPECT_EQ(tear_down("u1"), "");
}

TEST_F(PersistentVolumesTest, what_is_still_mounted_is_never_emptied) {
  if (!can_mount()) GTEST_SKIP() << "needs root to mount";
  // A mount that came while the pod's folder was being removed: as of a driver that answers late.
  const std::string at = root.path() + "/pods/u1/volumes/kubernetes.io~local-volume/pv";
  ASSERT_TRUE(make_folder(at, 0750).ok());
  ASSERT_TRUE(write_file(data.path() + "/file", "1", 0600).ok());
  ASSERT_TRUE(write_file(at + "/file-under-it", "1", 0600).ok());
  EXPECT_THAT(tear_down("u1"), HasSubstr("rmdir"));
  EXPECT_TRUE(fs::exists(at + "/file-under-it"));
}

TEST_F(PersistentVolumesTest, read_write_once_pod_is_for_one_pod) {
  put_claim("data", "pv");
  put_volume("pv", "data",
             "'accessModes': ['ReadWriteOncePod'], 'hostPath': {'path': '" + data.path() + "'}");
  EXPECT_THAT(set_up(claimer("u1")), IsEmpty());
  EXPECT_EQ(error(claimer("u2")),
            "MountVolume.SetUp failed for volume \"pv\" : volume uses the ReadWriteOncePod access "
            "mode and is already in use by another pod");
  EXPECT_EQ(tear_down("u1"), "");
  EXPECT_THAT(set_up(claimer("u2")), IsEmpty());
}

TEST_F(PersistentVolumesTest, a_block_volume_must_be_a_device) {
  put_claim("data", "pv");
  put_volume("pv", "data", "'volumeMode': 'Block', 'local': {'path': '" + data.path() + "'}");
  const Value pod = pod_of("u1", "'persistentVolumeClaim': {'claimName': 'data'}", "",
                           "'volumeDevices': [{'name': 'v', 'devicePath': '/dev/x'}]");
  EXPECT_EQ(error(pod), "MapVolume.SetUpDevice failed for volume \"pv\" : path \"" + data.path() +
                            "\" is not a block device");
  EXPECT_FALSE(volumes->devices(pod, pod["spec"]["containers"][0]).ok());
}

TEST_F(PersistentVolumesTest, a_driver_stages_once_and_publishes_for_each_pod) {
  put_settings(
      "{'attachRequired': false, 'podInfoOnMount': true, 'fsGroupPolicy': 'File', "
      "'volumeLifecycleModes': ['Persistent']}");
  put_csi();
  register_driver();
  ASSERT_THAT(set_up(claimer("u1")), IsEmpty());
  ASSERT_THAT(set_up(claimer("u2")), IsEmpty());
  ASSERT_THAT(set_up(claimer("u2")), IsEmpty());
  EXPECT_THAT(driver->log, ElementsAre("stage h1 " + staging(), "publish h1 " + target("u1"),
                                       "stage h1 " + staging(), "publish h1 " + target("u2")));
  EXPECT_EQ(driver->last_publish.staging_target_path(), staging());
  EXPECT_EQ(driver->last_publish.volume_context().at("csi.storage.k8s.io/pod.uid"), "u2");
  EXPECT_EQ(driver->last_publish.volume_context().at("csi.storage.k8s.io/ephemeral"), "false");
  EXPECT_EQ(driver->last_publish.volume_context().at("a"), "b");
  EXPECT_EQ(driver->last_publish.volume_capability().mount().fs_type(), "ext4");
  EXPECT_EQ(driver->last_publish.volume_capability().access_mode().mode(),
            csi::v1::VolumeCapability::AccessMode::SINGLE_NODE_WRITER);
  EXPECT_FALSE(driver->last_stage.volume_context().contains("csi.storage.k8s.io/pod.uid"));
  const auto record = json::parse(
      read_file(root.path() + "/pods/u1/volumes/kubernetes.io~csi/pv/vol_data.json", 9999)
          .value_or(""));
  ASSERT_TRUE(record.ok());
  EXPECT_EQ((*record)["driverName"].as_string(), "fake.csi");
  EXPECT_EQ((*record)["volumeHandle"].as_string(), "h1");

  driver->log.clear();
  EXPECT_EQ(tear_down("u1"), "");
  EXPECT_THAT(driver->log, ElementsAre("unpublish h1 " + target("u1")));
  EXPECT_EQ(tear_down("u2"), "");
  EXPECT_THAT(driver->log, Contains("unstage h1 " + staging()));
  expect_clean();
}

TEST_F(PersistentVolumesTest, nothing_is_left_wherever_the_agent_dies) {
  put_settings("{'attachRequired': false, 'volumeLifecycleModes': ['Persistent']}");
  put_csi();
  register_driver();
  const rpc::Status died{rpc::Code::unavailable, "died"};
  // Before or after what the driver was asked for, on the way up and on the way down.
  for (const bool after : {false, true}) {
    for (const char* step : {"stage", "publish", "unpublish", "unstage"}) {
      SCOPED_TRACE(cat(step, after ? " done" : ""));
      auto& table = after ? driver->refuse_after : driver->refuse;
      table[step] = died;
      (void)set_up(claimer("u1"));
      start();
      (void)tear_down("u1");
      start();
      table.clear();
      EXPECT_EQ(tear_down("u1"), "");
      expect_clean();
    }
  }
  // A record that was being written.
  const std::string folder = root.path() + "/pods/u1/volumes/kubernetes.io~csi/pv";
  ASSERT_TRUE(make_folder(folder, 0750).ok());
  ASSERT_TRUE(write_file(folder + "/vol_data.json.77.0.tmp", "{", 0600).ok());
  EXPECT_EQ(tear_down("u1"), "");
  expect_clean();
}

TEST_F(PersistentVolumesTest, a_pod_s_end_waits_for_the_driver) {
  put_settings("{'attachRequired': false, 'volumeLifecycleModes': ['Persistent']}");
  put_csi();
  register_driver();
  ASSERT_THAT(set_up(claimer("u1")), IsEmpty());
  drivers->remove({"CSIPlugin", "fake.csi", FakeCsiDriver::kEndpoint, {"1.0.0"}});
  EXPECT_THAT(tear_down("u1"), HasSubstr("driver name fake.csi not found in the list of registered "
                                         "CSI drivers"));
  EXPECT_TRUE(fs::exists(root.path() + "/pods/u1"));
  register_driver();
  EXPECT_EQ(tear_down("u1"), "");
  expect_clean();
}

TEST_F(PersistentVolumesTest, a_missing_driver_is_told_of) {
  put_csi();
  EXPECT_EQ(error(claimer("u1")),
            "MountVolume.MountDevice failed for volume \"pv\" : kubernetes.io/csi: "
            "attacher.MountDevice failed to create newCsiDriverClient: driver name fake.csi not "
            "found in the list of registered CSI drivers");
  EXPECT_EQ(error(pod_of("u2", "'csi': {'driver': 'no.csi'}")),
            "MountVolume.SetUp failed for volume \"v\" : kubernetes.io/csi: mounter.SetUpAt failed "
            "to get CSI client: driver name no.csi not found in the list of registered CSI "
            "drivers");
  EXPECT_EQ(tear_down("u1"), "");
}

TEST_F(PersistentVolumesTest, an_attached_volume_is_in_use_before_it_is_staged) {
  put_settings("{'attachRequired': true, 'volumeLifecycleModes': ['Persistent']}");
  put_csi();
  register_driver();
  report_in_use = false;
  EXPECT_THAT(error(claimer("u1")), HasSubstr("waits: MountVolume.MountDevice failed for volume "
                                              "\"pv\" : volume has not been added to the list of "
                                              "VolumesInUse"));
  report_in_use = true;
  EXPECT_THAT(error(claimer("u1")), HasSubstr("volume is not yet attached"));
  EXPECT_THAT((*api.get(kNode))["status"]["volumesInUse"],
              from_text("['kubernetes.io/csi/fake.csi^h1']"));
  // Why is for the controller to tell; who waits long is told that he does.
  sim.advance(std::chrono::seconds(124));
  EXPECT_EQ(error(claimer("u1")),
            "MountVolume.MountDevice failed for volume \"pv\" : volume is not yet attached "
            "according to node status");
  EXPECT_THAT(driver->log, IsEmpty());
  const std::string attachment =
      "/apis/storage.k8s.io/v1/volumeattachments/csi-" + sha256_hex("h1fake.csinode-0");
  put(attachment,
      "{'apiVersion': 'storage.k8s.io/v1', 'kind': 'VolumeAttachment', 'metadata': {}, 'spec': {}, "
      "'status': {'attached': true, 'attachmentMetadata': {'disk': 'sdb'}}}");
  Value node = *api.get(kNode);
  node.mut("status").set("volumesAttached",
                         from_text("[{'name': 'kubernetes.io/csi/fake.csi^h1'}]"));
  api.put(kNode, node);
  EXPECT_THAT(set_up(claimer("u1")), IsEmpty());
  EXPECT_EQ(driver->last_stage.publish_context().at("disk"), "sdb");
  EXPECT_EQ(driver->last_publish.publish_context().at("disk"), "sdb");
  EXPECT_EQ(tear_down("u1"), "");
  EXPECT_TRUE((*api.get(kNode))["status"]["volumesInUse"].empty());
  expect_clean();
}

TEST_F(PersistentVolumesTest, a_pod_s_own_volume_is_published_under_a_name_of_its_own) {
  put_settings("{'podInfoOnMount': true, 'volumeLifecycleModes': ['Ephemeral']}");
  register_driver();
  put("/api/v1/namespaces/ns/secrets/key",
      "{'apiVersion': 'v1', 'kind': 'Secret', 'metadata': {}, 'data': {'k': 'dmFsdWU='}}");
  const Value pod = pod_of("u1",
                           "'csi': {'driver': 'fake.csi', 'readOnly': true, "
                           "'nodePublishSecretRef': {'name': 'key'}}");
  ASSERT_THAT(set_up(pod), IsEmpty());
  const std::string handle = "csi-" + sha256_hex("u1v");
  EXPECT_THAT(driver->log, ElementsAre(cat("publish ", handle,
                                           " /var/lib/kubelet/pods/u1/volumes/"
                                           "kubernetes.io~csi/v/mount")));
  EXPECT_TRUE(driver->last_publish.readonly());
  EXPECT_EQ(driver->last_publish.secrets().at("k"), "value");
  EXPECT_EQ(driver->last_publish.volume_context().at("csi.storage.k8s.io/ephemeral"), "true");
  EXPECT_TRUE(mounts(pod)[0].read_only);
  EXPECT_EQ(tear_down("u1"), "");
  EXPECT_THAT(driver->published, IsEmpty());

  put_settings("{'volumeLifecycleModes': ['Persistent']}");
  EXPECT_THAT(error(pod), HasSubstr("volume mode \"Ephemeral\" not supported by driver fake.csi "
                                    "(only supports [\"Persistent\"])"));
}

TEST_F(PersistentVolumesTest, a_driver_that_wants_tokens_gets_them_again) {
  put_settings(
      "{'attachRequired': false, 'requiresRepublish': true, 'volumeLifecycleModes': "
      "['Persistent'], 'tokenRequests': [{'audience': 'vault'}]}");
  put_csi();
  driver->abilities.clear();
  register_driver();
  ASSERT_THAT(set_up(claimer("u1")), IsEmpty());
  EXPECT_THAT(driver->last_publish.volume_context().at("csi.storage.k8s.io/serviceAccount.tokens"),
              HasSubstr(R"({"vault":{"token":"secret","expirationTimestamp":")"));
  EXPECT_EQ(driver->last_publish.staging_target_path(), "");
  EXPECT_THAT(set_up(claimer("u1")), IsEmpty());
  EXPECT_EQ(driver->log.size(), 1U);
  sim.advance(std::chrono::seconds(61));
  EXPECT_THAT(set_up(claimer("u1")), IsEmpty());
  EXPECT_EQ(driver->log.size(), 2U);
  EXPECT_EQ(tear_down("u1"), "");
}

TEST_F(PersistentVolumesTest, the_group_goes_to_the_driver_where_it_can_or_is_given_here) {
  put_settings(
      "{'attachRequired': false, 'fsGroupPolicy': 'File', 'volumeLifecycleModes': "
      "['Persistent']}");
  put_csi("'accessModes': ['ReadWriteOncePod'], 'mountOptions': ['noatime']");
  driver->abilities = {FakeCsiDriver::Rpc::VOLUME_MOUNT_GROUP,
                       FakeCsiDriver::Rpc::SINGLE_NODE_MULTI_WRITER};
  register_driver();
  ASSERT_THAT(set_up(claimer("u1", "'securityContext': {'fsGroup': 2000}, ")), IsEmpty());
  const auto& capability = driver->last_publish.volume_capability();
  EXPECT_EQ(capability.mount().volume_mount_group(), "2000");
  EXPECT_EQ(capability.mount().mount_flags(0), "noatime");
  EXPECT_EQ(capability.access_mode().mode(),
            csi::v1::VolumeCapability::AccessMode::SINGLE_NODE_SINGLE_WRITER);
  EXPECT_THAT(error(claimer("u2")), HasSubstr("already in use by another pod"));
  EXPECT_EQ(tear_down("u1"), "");
  EXPECT_EQ(tear_down("u2"), "");
}

TEST_F(PersistentVolumesTest, a_block_volume_of_a_driver_has_places_of_its_own) {
  put_settings("{'attachRequired': false, 'volumeLifecycleModes': ['Persistent']}");
  put_csi("'volumeMode': 'Block', 'accessModes': ['ReadWriteMany']");
  register_driver();
  const auto pod = [](const std::string& uid) {
    return pod_of(uid, "'persistentVolumeClaim': {'claimName': 'data'}", "",
                  "'volumeDevices': [{'name': 'v', 'devicePath': '/dev/x'}]");
  };
  const std::string places = "/var/lib/kubelet/plugins/kubernetes.io/csi/volumeDevices/";
  EXPECT_THAT(error(pod("u1")),
              HasSubstr("MapVolume.MapPodDevice failed for volume \"pv\" : driver "
                        "fake.csi published no block device at "));
  EXPECT_THAT(error(pod("u2")), HasSubstr("published no block device"));
  EXPECT_TRUE(driver->last_stage.volume_capability().has_block());
  EXPECT_THAT(driver->staged, ElementsAre(places + "staging/pv"));
  EXPECT_THAT(driver->published, ElementsAre(places + "publish/pv/u1", places + "publish/pv/u2"));
  EXPECT_EQ(tear_down("u1"), "");
  EXPECT_EQ(tear_down("u2"), "");
  expect_clean();
  EXPECT_FALSE(fs::exists(root.path() + "/plugins/kubernetes.io/csi/volumeDevices/publish/pv"));
  EXPECT_FALSE(fs::exists(root.path() + "/plugins/kubernetes.io/csi/volumeDevices/staging/pv"));
}

TEST_F(PersistentVolumesTest, a_driver_s_refusal_is_told_in_its_words) {
  put_settings("{'attachRequired': false, 'volumeLifecycleModes': ['Persistent']}");
  put_csi();
  register_driver();
  driver->refuse["publish"] = {rpc::Code::internal, "no such disk"};
  EXPECT_EQ(error(claimer("u1")),
            "MountVolume.SetUp failed for volume \"pv\" : rpc error: code = "
            "Internal desc = no such disk");
}

TEST_F(PersistentVolumesTest, a_volume_grows_under_the_pod_that_has_it) {
  put_growing();
  ASSERT_THAT(set_up(claimer("u1")), IsEmpty());
  grow_to("2Gi");
  driver->log.clear();
  ASSERT_THAT(set_up(claimer("u1")), IsEmpty());
  EXPECT_THAT(driver->log, IsEmpty()) << "it was looked at a moment ago";

  ASSERT_THAT(look(claimer("u1")), IsEmpty());
  EXPECT_THAT(driver->log, ElementsAre(expanded("u1", "2147483648")));
  EXPECT_EQ(driver->last_expand.staging_target_path(), staging());
  EXPECT_EQ(driver->last_expand.volume_capability().mount().fs_type(), "ext4");
  EXPECT_EQ(claim_status(), from_text("{'capacity': {'storage': '2Gi'}, 'allocatedResources': "
                                      "{'storage': '2Gi'}, 'conditions': [{'type': 'Other', "
                                      "'status': 'True'}], 'phase': 'Bound'}"));
  const std::string text =
      "FileSystemResizeSuccessful MountVolume.NodeExpandVolume succeeded for volume \"pv\" node-0";
  EXPECT_THAT(events, ElementsAre("Pod " + text, "PersistentVolumeClaim " + text));

  ASSERT_THAT(look(claimer("u1")), IsEmpty());
  EXPECT_EQ(driver->log.size(), 1U);
  grow_to("3Gi", "2Gi");
  ASSERT_THAT(look(claimer("u1")), IsEmpty());
  EXPECT_EQ(driver->log.back(), expanded("u1", "3221225472"));
  EXPECT_EQ(tear_down("u1"), "");
  expect_clean();
}

TEST_F(PersistentVolumesTest, nobody_waits_for_a_volume_that_grows_but_its_end) {
  put_growing();
  ASSERT_THAT(set_up(claimer("u1")), IsEmpty());
  grow_to("2Gi");
  driver->log.clear();
  sim.advance(std::chrono::seconds(11));

  ASSERT_THAT(set_up(claimer("u1")), IsEmpty());
  ASSERT_THAT(set_up(claimer("u1")), IsEmpty());
  EXPECT_THAT(driver->log, IsEmpty());
  EXPECT_THAT(tear_down("u1"), HasSubstr("volume v is being enlarged"));
  sim.run_until_idle();

  EXPECT_THAT(driver->log, ElementsAre(expanded("u1", "2147483648")));
  EXPECT_EQ(tear_down("u1"), "");
  expect_clean();
  // Nor is it in the way of the agent's end.
  ASSERT_THAT(set_up(claimer("u1")), IsEmpty());
  grow_to("3Gi", "2Gi");
  sim.advance(std::chrono::seconds(11));
  ASSERT_THAT(set_up(claimer("u1")), IsEmpty());
  volumes.reset();
  driver->log.clear();
  sim.run_until_idle();
  EXPECT_THAT(driver->log, IsEmpty());
  start();
  EXPECT_EQ(tear_down("u1"), "");
}

TEST_F(PersistentVolumesTest, a_volume_that_grew_meanwhile_grows_when_it_is_mounted) {
  put_growing();
  grow_to("2Gi");
  driver->refuse["expand"] = {rpc::Code::internal, "no luck"};
  EXPECT_EQ(error(claimer("u1")),
            "MountVolume.Setup failed while expanding volume for volume \"pv\" : "
            "Expander.NodeExpand failed to expand the volume : rpc error: code = Internal desc = "
            "no luck");
  driver->refuse.clear();
  ASSERT_THAT(set_up(claimer("u1")), IsEmpty());
  EXPECT_EQ(driver->log.back(), expanded("u1", "2147483648"));
  EXPECT_EQ(claim_status()["capacity"]["storage"].as_string(), "2Gi");
  EXPECT_EQ(tear_down("u1"), "");
}

TEST_F(PersistentVolumesTest, a_volume_that_cannot_grow_says_so_and_goes_on) {
  put_growing();
  ASSERT_THAT(set_up(claimer("u1")), IsEmpty());
  grow_to("2Gi");
  driver->refuse["expand"] = {rpc::Code::unavailable, "away"};
  EXPECT_THAT(look(claimer("u1")), IsEmpty());
  EXPECT_EQ(claim_status()["allocatedResourceStatuses"]["storage"].as_string(),
            "NodeResizeInProgress");
  EXPECT_THAT(events, ElementsAre(HasSubstr("Pod! VolumeResizeFailed "
                                            "NodeExpandVolume.NodeExpandVolume failed for volume "
                                            "\"pv\" : Expander.NodeExpand failed")));
  // Later it knows that it never will: nobody asks again, until the user wants another size.
  driver->refuse["expand"] = {rpc::Code::out_of_range, "too large"};
  EXPECT_THAT(look(claimer("u1")), IsEmpty());
  EXPECT_EQ(claim_status()["allocatedResourceStatuses"]["storage"].as_string(),
            "NodeResizeInfeasible");
  EXPECT_EQ(claim_status()["conditions"][2]["type"].as_string(), "NodeResizeError");
  EXPECT_EQ(claim_status()["capacity"]["storage"].as_string(), "1Gi");
  driver->log.clear();
  EXPECT_THAT(look(claimer("u1")), IsEmpty());
  EXPECT_THAT(driver->log, IsEmpty());
  // One that is in use is done when it is mounted anew, and does not keep a pod from it.
  driver->refuse["expand"] = {rpc::Code::failed_precondition, "in use"};
  grow_to("2Gi");
  EXPECT_THAT(look(claimer("u1")), IsEmpty());
  EXPECT_THAT(look(claimer("u1")), IsEmpty());
  EXPECT_EQ(driver->log.size(), 1U);
  EXPECT_EQ(tear_down("u1"), "");
  EXPECT_THAT(set_up(claimer("u1")), IsEmpty());
  EXPECT_EQ(tear_down("u1"), "");
}

TEST_F(PersistentVolumesTest, what_cannot_grow_is_not_asked_to) {
  put_growing();
  driver->abilities.pop_back();
  ASSERT_THAT(set_up(claimer("u1")), IsEmpty());
  driver->abilities.push_back(FakeCsiDriver::Rpc::EXPAND_VOLUME);
  const Value reader =
      pod_of("u2", "'persistentVolumeClaim': {'claimName': 'data', 'readOnly': true}");
  ASSERT_THAT(set_up(reader), IsEmpty());
  grow_to("2Gi");
  driver->log.clear();
  EXPECT_THAT(look(claimer("u1")), IsEmpty());
  EXPECT_THAT(look(reader), IsEmpty());
  EXPECT_THAT(driver->log, IsEmpty());
  EXPECT_EQ(tear_down("u1"), "");
  EXPECT_EQ(tear_down("u2"), "");
}

TEST_F(PersistentVolumesTest, a_volume_that_its_driver_does_not_know_any_more_is_gone) {
  put_settings("{'attachRequired': false, 'volumeLifecycleModes': ['Persistent']}");
  put_csi();
  register_driver();
  // As one that was taken back by an agent that died at once.
  const rpc::Status unknown{rpc::Code::not_found, "no such volume"};
  driver->refuse_after = {{"unpublish", unknown}, {"unstage", unknown}};
  ASSERT_THAT(set_up(claimer("u1")), IsEmpty());
  EXPECT_EQ(tear_down("u1"), "");
  expect_clean();
  if (!can_mount()) return;
  // The mount table counts, whatever a driver says.
  driver->refuse_after.clear();
  ASSERT_THAT(set_up(claimer("u1")), IsEmpty());
  driver->refuse["unpublish"] = unknown;
  EXPECT_THAT(tear_down("u1"), HasSubstr("is still mounted"));
  driver->refuse.clear();
  EXPECT_EQ(tear_down("u1"), "");
  expect_clean();
}

TEST(GiveToGroup, does_not_follow_links) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const TemporaryFolder volume;
  const TemporaryFolder outside;
  ASSERT_TRUE(write_file(outside.path() + "/shadow", "x", 0600).ok());
  ASSERT_TRUE(make_folder(volume.path() + "/deep", 0700).ok());
  fs::create_symlink(outside.path() + "/shadow", volume.path() + "/link");
  fs::create_symlink(outside.path(), volume.path() + "/deep/folder");
  ASSERT_TRUE(give_to_group(volume.path(), 2000, false).ok());
  struct stat info {};
  ASSERT_EQ(::stat((outside.path() + "/shadow").c_str(), &info), 0);
  EXPECT_EQ(info.st_gid, 0U);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  ASSERT_EQ(::stat((volume.path() + "/deep").c_str(), &info), 0);
  EXPECT_EQ(info.st_gid, 2000U);
  EXPECT_EQ(info.st_mode & 07777U, 02770U);
  EXPECT_TRUE(is_given_to_group(volume.path() + "/deep", 2000));
  EXPECT_FALSE(is_given_to_group(outside.path(), 2000));
}

}  // namespace
}  // namespace dibs::node
