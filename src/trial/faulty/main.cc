// A driver that does everything as it should, but for one thing, which --fault names: what finds
// faults is tried with it. Most of it is the library for drivers; a fault sits in the driver, or in
// what the library is handed: sockets, files.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <set>
#include <thread>

#include "base/strings.h"
#include "driver/process.h"
#include "proto/dra_v1.pb.h"
#include "proto/plugin_registration.pb.h"

namespace {

using namespace dibs;
using driver::Claim;
using driver::PluginOptions;
using driver::PreparedDevice;
using json::Value;
namespace dra = k8s::io::kubelet::pkg::apis::dra::v1;

constexpr const char* kName = "faulty.example.com";
constexpr int kDevices = 4;

struct Setting {
  std::string fault;
  bool is(std::string_view name) const { return fault == name; }
};

Value slice(const PluginOptions& options, const Value& node, const std::string& device, int count) {
  const Value owner = Value::object({{"apiVersion", "v1"},
                                     {"kind", "Node"},
                                     {"name", options.node_name},
                                     {"uid", node["metadata"]["uid"]},
                                     {"controller", true}});
  return Value::object(
      {{"apiVersion", "resource.k8s.io/v1"},
       {"kind", "ResourceSlice"},
       {"metadata",
        Value::object({{"generateName", "faulty-"}, {"ownerReferences", Value::array({owner})}})},
       {"spec", Value::object({{"driver", kName},
                               {"nodeName", options.node_name},
                               {"pool", Value::object({{"name", options.node_name},
                                                       {"generation", 1},
                                                       {"resourceSliceCount", count}})},
                               {"devices", Value::array({Value::object({{"name", device}})})}})}});
}

class Faulty : public driver::Driver {
 public:
  Faulty(Setting setting, PluginOptions options, client::Client& api)
      : setting_(std::move(setting)), options_(std::move(options)), api_(api) {}

  void started(driver::Plugin&) override {
    const auto node = api_.get({"", "v1", "nodes"}, "", options_.node_name);
    if (!node) return;
    std::vector<Value> slices;
    if (setting_.is("incomplete")) slices = {slice(options_, *node, "dev-0", 2)};
    if (setting_.is("twice")) slices.assign(2, slice(options_, *node, "dev-0", 2));
    if (setting_.is("unowned")) {
      slices = {slice(options_, *node, "dev-0", 1)};
      slices[0].mut("metadata").erase("ownerReferences");
    }
    if (setting_.is("elsewhere")) {
      slices = {slice(options_, *node, "dev-0", 1)};
      slices[0].mut("spec").set("nodeName", "elsewhere");
    }
    for (const Value& one : slices) {
      (void)api_.create({"resource.k8s.io", "v1", "resourceslices"}, "", one);
    }
  }

  void stopping() override {
    if (setting_.is("never-ends")) std::this_thread::sleep_for(std::chrono::hours(1));
    if (setting_.is("ends-badly")) std::_Exit(3);
  }

  Result<std::vector<driver::Pool>> devices() override {
    std::vector<driver::Device> out;
    for (int i = 0; i < kDevices; ++i) out.emplace_back(cat("dev-", i));
    if (setting_.is("no-devices")) out.clear();
    return std::vector<driver::Pool>{driver::make_pool(options_.node_name, std::move(out))};
  }

  Result<std::vector<PreparedDevice>> prepare(const Claim& claim) override {
    if (setting_.is("never-prepares")) return Error::internal("not today");
    if (setting_.is("slow")) std::this_thread::sleep_for(std::chrono::seconds(5));
    if (setting_.is("not-again") && claim.prepared) return Error::internal("once is enough");
    if (setting_.is("forgets") && claim.prepared && !seen_.contains(claim.id.uid)) {
      return Error::internal("prepared by somebody else");
    }
    seen_.insert(claim.id.uid);
    DIBS_CHECK(check_parameters(claim));
    if (setting_.is("notes")) {
      std::ofstream(cat(options_.plugins_dir, "/", kName, "/", claim.id.uid)) << "was here\n";
    }
    std::vector<PreparedDevice> out;
    for (const auto& device : claim.devices) {
      if (!is_device(device.device) && !setting_.is("any-device")) {
        return Error::not_found(cat("there is no device ", device.device));
      }
      out.push_back(driver::prepared(device, driver::env_edits({cat("DEVICE=", device.device)})));
      if (setting_.is("wrong-device")) out.back().device = "dev-9";
      if (setting_.is("bad-id")) out.back().cdi_ids.emplace_back("not a name");
      if (setting_.is("no-ids-again") && claim.prepared) out.back().edits = {};
    }
    if (setting_.is("takes-all")) add_others(claim, out);
    return out;
  }

  Result<> unprepare(const driver::ClaimName& claim) override {
    if (setting_.is("never-unprepares")) return Error::internal("not today");
    if (setting_.is("asks-for-claim")) {
      const auto found =
          api_.get({"resource.k8s.io", "v1", "resourceclaims"}, claim.name_space, claim.name);
      if (!found) return found.error();
    }
    if (setting_.is("not-unknown") && !seen_.contains(claim.uid)) {
      return Error::not_found("no such claim");
    }
    if (setting_.is("unprepares-once") && !undone_.insert(claim.uid).second) {
      return Error::not_found("done before");
    }
    return success();
  }

  bool reports_health() const override { return setting_.fault.find("health") == 0; }
  std::vector<driver::DeviceHealth> health() override {
    if (setting_.is("health-empty")) return {};
    const std::string device = setting_.is("health-strangers") ? "stranger" : "dev-0";
    return {{options_.node_name, device, driver::Health::healthy, ""}};
  }

  bool knows(const std::string& text) const {
    for (const auto& uid : seen_) {
      if (text.find(uid) != std::string::npos) return true;
    }
    return false;
  }

 private:
  static bool is_device(const std::string& name) {
    for (int i = 0; i < kDevices; ++i) {
      if (name == cat("dev-", i)) return true;
    }
    return false;
  }

  Result<> check_parameters(const Claim& claim) const {
    DIBS_TRY(const auto configs, driver::configs_of(claim, kName));
    if (configs.empty() || setting_.is("any-parameters")) return success();
    if (setting_.is("dies-of-parameters")) std::abort();
    return Error::invalid("there are no parameters");
  }

  static void add_others(const Claim& claim, std::vector<PreparedDevice>& out) {
    for (const Value& result : claim.object["status"]["allocation"]["devices"]["results"].items()) {
      if (result["driver"].as_string() == kName) continue;
      PreparedDevice device;
      device.request = result["request"].str();
      device.pool = result["pool"].str();
      device.device = result["device"].str();
      out.push_back(std::move(device));
    }
  }

  const Setting setting_;
  const PluginOptions options_;
  client::Client& api_;
  std::set<std::string> seen_;  // calls come one at a time
  std::set<std::string> undone_;
};

/// Files of the machine, of which those in the CDI folder are not what they should be.
class FaultyFiles : public runtime::Files {
 public:
  FaultyFiles(Setting setting, std::string cdi)
      : setting_(std::move(setting)), cdi_(std::move(cdi)) {}

  /// Who knows which claims this process has seen.
  const Faulty* driver = nullptr;

  Result<std::string> read(const std::string& path) override { return files_.read(path); }
  Result<> write(const std::string& path, std::string_view bytes, unsigned mode) override {
    if (path.starts_with(cdi_) && setting_.is("no-file")) return success();
    if (path.starts_with(cdi_) && setting_.is("bad-file")) {
      return files_.write(path, "cdiVersion: [", mode);
    }
    return files_.write(path, bytes, mode);
  }
  Result<> remove(const std::string& path) override {
    if (path.starts_with(cdi_)) {
      if (setting_.is("keeps-files")) return success();
      const bool known = driver != nullptr && driver->knows(path);
      if (setting_.is("keeps-old-files") && !known) return success();
    }
    return files_.remove(path);
  }
  bool exists(const std::string& path) override { return files_.exists(path); }
  Result<> make_dirs(const std::string& path, unsigned mode) override {
    return files_.make_dirs(path, mode);
  }
  Result<std::vector<std::string>> list(const std::string& path) override {
    return files_.list(path);
  }
  Result<std::unique_ptr<runtime::FileLock>> lock(const std::string& path) override {
    return files_.lock(path);
  }

 private:
  const Setting setting_;
  const std::string cdi_;
  runtime::Files& files_ = runtime::system_files();
};

/// Changes what a method answers.
template <typename Message>
void change_answer(rpc::UnaryHandler& method, std::function<void(Message&)> change) {
  method = [before = std::move(method), change](std::string_view request) {
    rpc::Reply reply = before(request);
    Message message;
    message.ParseFromString(reply.bytes);
    change(message);
    reply.bytes = message.SerializeAsString();
    return reply;
  };
}

void spoil_registration(const Setting& setting, rpc::Methods& methods) {
  const auto get_info = [&](std::function<void(pluginregistration::PluginInfo&)> change) {
    change_answer(methods.unary["/pluginregistration.Registration/GetInfo"], std::move(change));
  };
  if (setting.is("type")) get_info([](auto& info) { info.set_type("CSIPlugin"); });
  if (setting.is("name")) get_info([](auto& info) { info.set_name("No Name"); });
  if (setting.is("endpoint")) get_info([](auto& info) { info.set_endpoint("/nowhere/dra.sock"); });
  if (setting.is("versions")) {
    get_info([](auto& info) {
      info.clear_supported_versions();
      info.add_supported_versions("v9.DRAPlugin");
    });
  }
  if (setting.is("refuses-registration")) {
    methods.unary["/pluginregistration.Registration/NotifyRegistrationStatus"] =
        [](std::string_view) {
          return rpc::Reply{{rpc::Code::internal, "no, thanks"}, ""};
        };
  }
}

using Response = dra::NodePrepareResourcesResponse;

void spoil_prepare(const Setting& setting, rpc::UnaryHandler& method) {
  if (setting.is("no-entry")) {
    change_answer<Response>(method, [](Response& answer) { answer.clear_claims(); });
  }
  if (setting.is("not-empty") || setting.is("one-claim")) {
    method = [before = std::move(method), one = setting.is("one-claim")](std::string_view bytes) {
      dra::NodePrepareResourcesRequest request;
      request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
      if (!one && request.claims_size() == 0) {
        return rpc::Reply{{rpc::Code::invalid_argument, "no claims"}, ""};
      }
      while (one && request.claims_size() > 1) request.mutable_claims()->RemoveLast();
      return before(request.SerializeAsString());
    };
  }
  if (setting.is("makes-up") || setting.is("dies-of-claims") || setting.is("all-or-none")) {
    method = [before = std::move(method), setting](std::string_view bytes) {
      rpc::Reply reply = before(bytes);
      if (!reply.status.ok() && setting.is("dies-of-claims")) std::abort();
      if (!reply.status.ok() && setting.is("makes-up")) {
        dra::NodePrepareResourcesRequest request;
        request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
        Response answer;
        for (const auto& claim : request.claims()) (*answer.mutable_claims())[claim.uid()];
        return rpc::Reply{{}, answer.SerializeAsString()};
      }
      Response answer;
      answer.ParseFromString(reply.bytes);
      for (const auto& [uid, one] : answer.claims()) {
        if (!setting.is("all-or-none") || one.error().empty()) continue;
        return rpc::Reply{{rpc::Code::unknown, one.error()}, ""};
      }
      return reply;
    };
  }
}

void spoil_service(const Setting& setting, rpc::Methods& methods) {
  for (auto& [name, method] : methods.unary) {
    if (name.find("NodePrepareResources") != std::string::npos) spoil_prepare(setting, method);
  }
  if (setting.is("one-version")) {
    std::erase_if(methods.unary, [](const auto& method) {
      return method.first.find("v1beta1") != std::string::npos;
    });
  }
  if (setting.is("health-missing")) methods.streams.clear();
}

/// One that leaves its socket's file.
class Untidy : public rpc::Server {
 public:
  Untidy(std::unique_ptr<rpc::Server> server, std::string path)
      : server_(std::move(server)), path_(std::move(path)) {}
  void stop() override {
    server_->stop();
    std::ofstream(path_) << "";
  }

 private:
  std::unique_ptr<rpc::Server> server_;
  const std::string path_;
};

class Silent : public rpc::Server {
 public:
  void stop() override {}
};

Result<std::unique_ptr<rpc::Server>> serve(const Setting& setting, const std::string& path,
                                           rpc::Methods methods) {
  const bool registration = path.ends_with("-reg.sock");
  if (registration && setting.is("silent")) return std::make_unique<Silent>();
  if (setting.is("stale") && ::access(path.c_str(), F_OK) == 0) {
    return Error::conflict(cat(path, ": address already in use"));
  }
  if (registration) {
    spoil_registration(setting, methods);
  } else {
    spoil_service(setting, methods);
  }
  DIBS_TRY(auto server, rpc::serve_unix(path, std::move(methods)));
  if (!setting.is("untidy")) return server;
  return std::make_unique<Untidy>(std::move(server), path);
}

}  // namespace

int main(int argc, char** argv) {
  Setting setting;
  PluginOptions options;
  options.driver_name = kName;
  std::unique_ptr<FaultyFiles> files;
  driver::Program program;
  program.driver_name = kName;
  program.flags = {{"--fault", &setting.fault, "What it does wrong (default: nothing)"}};
  program.standard_flags = driver::plugin_flags(options);
  program.begin = [&](const driver::Environment& environment) -> Result<driver::Running> {
    if (setting.is("ends")) return Error::internal("there is no hardware");
    for (const char* by_hand : {"no-slices", "incomplete", "twice", "unowned", "elsewhere"}) {
      if (setting.is(by_hand)) options.publish = false;
    }
    files = std::make_unique<FaultyFiles>(setting, options.cdi_dir);
    auto made = std::make_unique<Faulty>(setting, options, environment.api);
    files->driver = made.get();
    driver::Environment faulty{environment.api, environment.runtime, *files, environment.metrics,
                               [&](const std::string& path, rpc::Methods methods) {
                                 return serve(setting, path, std::move(methods));
                               }};
    return driver::start_driver(std::move(made), faulty, options);
  };
  return driver::run_program(argc, argv, program);
}
