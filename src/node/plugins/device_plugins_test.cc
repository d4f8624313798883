// Device plugins over real sockets: they register, list, allocate, go and come back.

#include "node/plugins/device_plugins.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/mutex.h"
#include "base/strings.h"
#include "json/test_text.h"
#include "proto/device_plugin.pb.h"
#include "rpc/server.h"
#include "runtime/real_runtime.h"

namespace dibs::node {
namespace {

using namespace std::chrono_literals;
using json::test::from_text;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kResource = "example.com/gpu";

template <typename Message>
Message decode(std::string_view bytes) {
  Message message;
  EXPECT_TRUE(message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
  return message;
}

/// Has devices a, b, …; says of each container which it was given.
class FakePlugin {
 public:
  FakePlugin(std::string folder, std::string name)
      : folder_(std::move(folder)), name_(std::move(name)) {}
  ~FakePlugin() { stop(); }

  void start(const std::string& healthy, const std::string& unhealthy = "") {
    set(healthy, unhealthy);
    rpc::Methods methods;
    methods.unary["/v1beta1.DevicePlugin/GetDevicePluginOptions"] = [this](std::string_view) {
      v1beta1::DevicePluginOptions options;
      options.set_pre_start_required(wants_start);
      options.set_get_preferred_allocation_available(!preferred.empty());
      return rpc::Reply{{}, options.SerializeAsString()};
    };
    methods.streams["/v1beta1.DevicePlugin/ListAndWatch"] = [this](std::string_view,
                                                                   rpc::StreamWriter& writer) {
      std::string last = "none";
      do {
        const std::string now = list();
        if (now != last && !writer.write(now)) break;
        last = now;
      } while (!writer.wait_gone(10ms));
      return rpc::Status{};
    };
    methods.unary["/v1beta1.DevicePlugin/GetPreferredAllocation"] = [this](std::string_view) {
      v1beta1::PreferredAllocationResponse response;
      response.add_container_responses()->add_deviceids(preferred);
      return rpc::Reply{{}, response.SerializeAsString()};
    };
    methods.unary["/v1beta1.DevicePlugin/Allocate"] = [this](std::string_view bytes) {
      return allocate(bytes);
    };
    methods.unary["/v1beta1.DevicePlugin/PreStartContainer"] = [this](std::string_view bytes) {
      const auto request = decode<v1beta1::PreStartContainerRequest>(bytes);
      note(cat("start ", request.devices_ids(0)));
      return rpc::Reply{};
    };
    auto server = rpc::serve_unix(cat(folder_, '/', name_), std::move(methods));
    ASSERT_TRUE(server.ok()) << server.error().message();
    server_ = std::move(server).value();
  }
  void stop() {
    if (server_) server_->stop();
    server_.reset();
  }
  rpc::Reply register_it(const std::string& resource = kResource,
                         const std::string& version = "v1beta1") {
    v1beta1::RegisterRequest request;
    request.set_version(version);
    request.set_endpoint(name_);
    request.set_resource_name(resource);
    const auto channel = rpc::connect_unix(cat(folder_, "/kubelet.sock"));
    return channel->call("/v1beta1.Registration/Register", request.SerializeAsString(), 10s);
  }
  /// A letter is a device.
  void set(const std::string& healthy, const std::string& unhealthy = "") {
    const MutexLock lock(mutex_);
    healthy_ = healthy;
    unhealthy_ = unhealthy;
  }
  std::vector<std::string> log() const {
    const MutexLock lock(mutex_);
    return log_;
  }

  bool wants_start = false;
  bool refuses = false;
  std::string preferred;

 private:
  rpc::Reply allocate(std::string_view bytes) {
    const auto request = decode<v1beta1::AllocateRequest>(bytes);
    const auto& ids = request.container_requests(0).devices_ids();
    const std::string all = join(std::vector<std::string>(ids.begin(), ids.end()), "");
    note(cat("allocate ", all));
    if (refuses) return {{rpc::Code::unknown, "broken"}, {}};
    v1beta1::AllocateResponse response;
    auto* one = response.add_container_responses();
    (*one->mutable_envs())["DEVICES"] = all;
    auto* mount = one->add_mounts();
    mount->set_container_path("/lib/gpu");
    mount->set_host_path("/usr/lib/gpu");
    mount->set_read_only(true);
    auto* node = one->add_devices();
    node->set_container_path("/dev/gpu0");
    node->set_host_path("/dev/null");
    node->set_permissions("rw");
    (*one->mutable_annotations())["example.com/gpu"] = all;
    one->add_cdi_devices()->set_name(cat("example.com/gpu=", all));
    return {{}, response.SerializeAsString()};
  }
  std::string list() const {
    const MutexLock lock(mutex_);
    v1beta1::ListAndWatchResponse response;
    for (const auto* text : {&healthy_, &unhealthy_}) {
      for (const char id : *text) {
        auto* device = response.add_devices();
        device->set_id(std::string(1, id));
        device->set_health(text == &healthy_ ? "Healthy" : "Unhealthy");
        device->mutable_topology()->add_nodes()->set_id(1);
      }
    }
    return response.SerializeAsString();
  }
  void note(std::string line) {
    const MutexLock lock(mutex_);
    log_.push_back(std::move(line));
  }

  const std::string folder_;
  const std::string name_;
  mutable Mutex mutex_;
  std::string healthy_ DIBS_GUARDED_BY(mutex_);
  std::string unhealthy_ DIBS_GUARDED_BY(mutex_);
  std::vector<std::string> log_ DIBS_GUARDED_BY(mutex_);
  std::unique_ptr<rpc::Server> server_;
};

class Plugins : public testing::Test {
 protected:
  Plugins() {
    char name[] = "/tmp/devicesXXXXXX";
    root = mkdtemp(name);
    begin();
  }
  ~Plugins() override {
    plugins.reset();
    std::filesystem::remove_all(root);
  }
  std::string folder() const { return root + "/device-plugins"; }
  void begin() {
    auto opened = DevicePlugins::open(
        {.folder = folder(), .state = root + "/state"},
        [](const std::string& path) { return rpc::connect_unix(path); }, runtime.runtime(),
        runtime::system_files());
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    plugins = std::move(opened).value();
    plugins->on_health_change([this](const std::string& pod) {
      const MutexLock lock(mutex);
      changed.push_back(pod);
    });
    ASSERT_TRUE(plugins->start().ok());
  }
  static bool eventually(const std::function<bool()>& done) {
    for (int i = 0; i < 2000; ++i) {
      if (done()) return true;
      std::this_thread::sleep_for(5ms);
    }
    return false;
  }
  bool amounts(std::int64_t capacity, std::int64_t allocatable) {
    return eventually([&] {
      return plugins->amounts()[kResource] == DeviceAmount{capacity, allocatable};
    });
  }
  void start(FakePlugin& plugin, const std::string& devices) {
    plugin.start(devices);
    ASSERT_TRUE(plugin.register_it().status.ok());
    const auto count = static_cast<std::int64_t>(devices.size());
    ASSERT_TRUE(amounts(count, count));
  }
  /// `containers`: "init:2 app:1"; an init container's name begins with "i", a sidecar's with "s".
  static json::Value pod(const std::string& uid, const std::string& containers) {
    json::Value out = from_text("{'metadata': {}, 'spec': {'containers': []}}");
    out.mut("metadata").set("uid", uid);
    json::Value init = json::Value::array();
    json::Value app = json::Value::array();
    for (const auto part : split(containers, ' ')) {
      const auto colon = part.find(':');
      json::Value container = from_text("{'resources': {'limits': {'cpu': '1'}}}");
      container.set("name", std::string(part.substr(0, colon)));
      container.mut("resources").mut("limits").set(kResource, std::string(part.substr(colon + 1)));
      if (part[0] == 's') container.set("restartPolicy", "Always");
      (part[0] == 'i' || part[0] == 's' ? init : app).push(container);
    }
    out.mut("spec").set("initContainers", init);
    out.mut("spec").set("containers", app);
    return out;
  }
  std::vector<std::string> ids(const std::string& uid, const std::string& container) {
    const auto shares = plugins->devices_of(uid, container);
    return shares.empty() ? std::vector<std::string>() : shares[0].ids;
  }
  std::string refusal(const json::Value& pod) {
    const auto granted = plugins->grant(pod);
    return granted ? "" : granted.error().message();
  }

  std::string root;
  runtime::RealRuntime runtime;
  Mutex mutex;
  std::vector<std::string> changed DIBS_GUARDED_BY(mutex);
  std::unique_ptr<DevicePlugins> plugins;
};

TEST_F(Plugins, a_container_gets_what_its_plugin_says) {
  FakePlugin plugin(folder(), "gpu.sock");
  plugin.wants_start = true;
  start(plugin, "ab");
  EXPECT_EQ(refusal(pod("p", "app:1")), "");
  const auto given = plugins->start_container("p", "app");
  ASSERT_TRUE(given.ok());
  EXPECT_THAT(given->env, ElementsAre(std::pair<std::string, std::string>("DEVICES", "a")));
  ASSERT_EQ(given->mounts.size(), 1U);
  EXPECT_EQ(given->mounts[0].host_path, "/usr/lib/gpu");
  EXPECT_TRUE(given->mounts[0].read_only);
  ASSERT_EQ(given->nodes.size(), 1U);
  EXPECT_EQ(given->nodes[0].permissions, "rw");
  EXPECT_THAT(given->cdi_ids, ElementsAre("example.com/gpu=a"));
  EXPECT_EQ(given->annotations.at("example.com/gpu"), "a");
  EXPECT_THAT(plugin.log(), ElementsAre("allocate a", "start a"));
  EXPECT_THAT(plugins->granted("p"), ElementsAre(kResource));
  EXPECT_THAT(plugins->devices_of("p", "app")[0].numa_nodes, ElementsAre(1));
  EXPECT_EQ(plugins->allocatable().size(), 2U);
  // A second look at the pod changes nothing.
  EXPECT_EQ(refusal(pod("p", "app:1")), "");
  EXPECT_EQ(plugin.log().size(), 2U);
}

TEST_F(Plugins, no_device_is_given_twice_and_they_come_back_with_the_pod) {
  FakePlugin plugin(folder(), "gpu.sock");
  start(plugin, "abc");
  EXPECT_EQ(refusal(pod("p", "app:2")), "");
  EXPECT_THAT(refusal(pod("q", "app:2")), HasSubstr("Requested: 2, Available: 1"));
  EXPECT_THAT(plugins->granted("q"), IsEmpty());
  EXPECT_EQ(refusal(pod("r", "app:1")), "");
  EXPECT_THAT(ids("r", "app"), ElementsAre("c"));
  plugins->release("p");
  EXPECT_EQ(refusal(pod("q", "app:2")), "");
  plugins->release_gone({"q"});
  EXPECT_EQ(refusal(pod("s", "app:1")), "");
}

TEST_F(Plugins, init_containers_share_with_those_after_them_and_sidecars_do_not) {
  FakePlugin plugin(folder(), "gpu.sock");
  start(plugin, "abc");
  EXPECT_EQ(refusal(pod("p", "init:2 side:1 app:2")), "");
  EXPECT_THAT(ids("p", "init"), ElementsAre("a", "b"));
  EXPECT_THAT(ids("p", "side"), ElementsAre("a"));
  EXPECT_THAT(ids("p", "app"), ElementsAre("b", "c"));
}

TEST_F(Plugins, its_preference_counts) {
  FakePlugin plugin(folder(), "gpu.sock");
  plugin.preferred = "c";
  start(plugin, "abc");
  EXPECT_EQ(refusal(pod("p", "app:2")), "");
  EXPECT_THAT(ids("p", "app"), ElementsAre("c", "a"));
}

TEST_F(Plugins, a_refusal_leaves_nothing_behind) {
  FakePlugin plugin(folder(), "gpu.sock");
  plugin.refuses = true;
  start(plugin, "a");
  EXPECT_THAT(refusal(pod("p", "app:1")), HasSubstr("broken"));
  plugin.refuses = false;
  EXPECT_EQ(refusal(pod("q", "app:1")), "");
}

TEST_F(Plugins, devices_that_claims_stand_for_are_not_theirs) {
  FakePlugin plugin(folder(), "gpu.sock");
  start(plugin, "a");
  auto claimed = pod("p", "app:1");
  claimed.set("status",
              from_text("{'extendedResourceClaimStatus': {'requestMappings': "
                        "[{'containerName': 'app', 'resourceName': 'example.com/gpu'}]}}"));
  EXPECT_EQ(refusal(claimed), "");
  EXPECT_THAT(plugins->granted("p"), IsEmpty());
}

TEST_F(Plugins, health_is_followed) {
  FakePlugin plugin(folder(), "gpu.sock");
  start(plugin, "ab");
  EXPECT_EQ(refusal(pod("p", "app:1")), "");
  plugin.set("b", "a");
  ASSERT_TRUE(amounts(2, 1));
  EXPECT_TRUE(eventually([&] {
    const MutexLock lock(mutex);
    return changed == std::vector<std::string>{"p"};
  }));
  EXPECT_EQ(plugins->health_of("p", "app"),
            from_text("[{'name': 'example.com/gpu', 'resources': [{'resourceID': 'a', 'health': "
                      "'Unhealthy'}]}]"));
}

TEST_F(Plugins, one_that_goes_takes_its_devices_out_of_use_until_it_is_back) {
  FakePlugin plugin(folder(), "gpu.sock");
  start(plugin, "ab");
  EXPECT_EQ(refusal(pod("p", "app:1")), "");
  plugin.stop();
  ASSERT_TRUE(amounts(2, 0));
  EXPECT_THAT(refusal(pod("q", "app:1")), HasSubstr("no healthy devices present"));
  start(plugin, "ab");
  EXPECT_EQ(refusal(pod("q", "app:1")), "");
  EXPECT_THAT(ids("q", "app"), ElementsAre("b"));
}

TEST_F(Plugins, a_new_agent_knows_what_containers_have) {
  FakePlugin plugin(folder(), "gpu.sock");
  start(plugin, "ab");
  EXPECT_EQ(refusal(pod("p", "app:1")), "");
  plugins.reset();
  begin();
  EXPECT_EQ(plugins->amounts()[kResource], DeviceAmount{});
  EXPECT_THAT(plugins->start_container("p", "app")->cdi_ids, ElementsAre("example.com/gpu=a"));
  // Its socket was removed: plugins start anew.
  EXPECT_FALSE(std::filesystem::exists(folder() + "/gpu.sock"));
  FakePlugin again(folder(), "gpu.sock");
  start(again, "ab");
  EXPECT_EQ(refusal(pod("q", "app:1")), "");
  EXPECT_THAT(ids("q", "app"), ElementsAre("b"));
}

TEST_F(Plugins, who_registers_wrongly_is_told) {
  FakePlugin plugin(folder(), "gpu.sock");
  plugin.start("a");
  EXPECT_THAT(plugin.register_it(kResource, "v1").status.message,
              HasSubstr(R"(requested API version "v1" is not supported)"));
  for (const char* name :
       {"gpu", "cpu", "kubernetes.io/gpu", "requests.example.com/gpu", "", "a/b/c"}) {
    EXPECT_THAT(plugin.register_it(name).status.message, HasSubstr("is invalid")) << name;
  }
  for (const char* endpoint : {"", "../gpu.sock", "/tmp/gpu.sock", "kubelet.sock"}) {
    EXPECT_FALSE(plugins->register_plugin("v1beta1", endpoint, kResource).ok()) << endpoint;
  }
}

}  // namespace
}  // namespace dibs::node
