// Any bytes as what an agent asks of a driver that is written with the SDK, with any allocation and
// any checkpoint before: the driver touches no file but its own, answers for every claim, and what
// it notes is what it said.
#include <google/protobuf/stubs/logging.h>

#include <filesystem>

#include "base/log.h"
#include "base/strings.h"
#include "client/testing/fake_api.h"
#include "client/transport.h"
#include "driver/device_metadata.h"
#include "driver/dra_service.h"
#include "driver/registration.h"
#include "fuzz/pieces.h"
#include "fuzz/targets.h"
#include "json/parse.h"
#include "proto/dra_v1.pb.h"
#include "proto/dra_v1alpha3.pb.h"
#include "runtime/sim_runtime.h"

namespace dibs::fuzz {
namespace {

using namespace driver;
using json::Value;
namespace dra = k8s::io::kubelet::pkg::apis::dra::v1;

constexpr const char* kDriver = "d.example.com";
constexpr const char* kCdi = "/nowhere/cdi";
constexpr const char* kData = "/nowhere/data";
constexpr const char* kCheckpoint = "/nowhere/data/checkpoint.json";
constexpr const char* kService = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/";

/// Lets nobody out of the driver's folders.
class GuardedFiles : public runtime::Files {
 public:
  Result<std::string> read(const std::string& path) override { return files_->read(guard(path)); }
  Result<> write(const std::string& path, std::string_view bytes, unsigned mode) override {
    return files_->write(guard(path), bytes, mode);
  }
  Result<> remove(const std::string& path) override { return files_->remove(guard(path)); }
  bool exists(const std::string& path) override { return files_->exists(guard(path)); }
  Result<> make_dirs(const std::string& path, unsigned mode) override {
    return files_->make_dirs(guard(path), mode);
  }
  Result<std::vector<std::string>> list(const std::string& path) override {
    return files_->list(guard(path));
  }
  Result<std::unique_ptr<runtime::FileLock>> lock(const std::string& path) override {
    return files_->lock(guard(path));
  }

 private:
  static const std::string& guard(const std::string& path) {
    const std::string real = std::filesystem::path(path).lexically_normal().string();
    require(path.find('\0') == std::string::npos, "a path is one");
    require(real.starts_with(kCdi) || real.starts_with(kData), "a driver stays in its folders");
    return path;
  }

  const std::unique_ptr<runtime::Files> files_ = runtime::make_memory_files();
};

class FakeDriver : public Driver {
 public:
  Result<std::vector<Pool>> devices() override { return std::vector<Pool>(); }
  Result<std::vector<driver::PreparedDevice>> prepare(const Claim& claim) override {
    (void)configs_of(claim, kDriver).ok();
    std::vector<driver::PreparedDevice> out;
    for (const auto& device : claim.devices) {
      out.push_back(prepared(device, env_edits({cat("DEVICE=", device.device)})));
    }
    return out;
  }
  Result<> unprepare(const ClaimName&) override { return success(); }
};

template <typename Message>
bool parse(std::string_view bytes, Message& message) {
  return message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

/// The claim is there, with that allocation, in both models.
void put_claim(client::FakeApi& api, const ClaimName& name, const Value& allocation) {
  const std::string path = cat("/namespaces/", percent_encode(name.name_space), "/resourceclaims/",
                               percent_encode(name.name));
  Value claim = Value::object(
      {{"metadata",
        Value::object({{"namespace", name.name_space}, {"name", name.name}, {"uid", name.uid}})},
       {"status", Value::object({{"allocation", allocation}, {"driverName", kDriver}})}});
  api.put(cat("/apis/resource.k8s.io/v1", path), claim);
  claim.set("spec", Value::object({{"resourceClassName", "c"}}));
  api.put(cat("/apis/resource.k8s.io/v1alpha2", path), claim);
}

template <typename Request>
void put_claims(client::FakeApi& api, const Request& request, const Value& allocation) {
  for (const auto& claim : request.claims()) {
    put_claim(api, {claim.namespace_(), claim.name(), claim.uid()}, allocation);
  }
}

class World {
 public:
  explicit World(bool guard_devices) : metadata_(files, kDriver, kData, kCdi) {
    client::InProcessOptions in_process;
    in_process.pump = [this] { return sim.run_until_idle() > 0; };
    transport_ = client::make_in_process_transport(api.handler(), sim.runtime(), in_process);
    client_ = std::make_unique<client::Client>(*transport_);
    for (const char* folder : {kCdi, kData}) (void)files.make_dirs(folder, 0700).ok();
    PreparedClaimsOptions options;
    options.driver_name = kDriver;
    options.cdi_dir = kCdi;
    options.cdi_class = "claim";
    options.checkpoint_path = kCheckpoint;
    options.checkpoint_api_version = "checkpoint.d.example.com/v1";
    options.guard_devices = guard_devices;
    options.metadata = &metadata_;
    claims_ = std::make_unique<PreparedClaims>(driver_, files, options);
    service =
        std::make_unique<DraService>(driver_, *client_, *claims_, nullptr, counted_, sim.runtime());
  }

  rpc::Reply call(const char* method, std::string_view request) {
    return service->methods(true).unary.at(cat(kService, method))(request);
  }
  Result<std::vector<CheckpointEntry>> checkpoint() {
    return Checkpoint(files, kCheckpoint, "checkpoint.d.example.com/v1").read();
  }
  bool noted(const std::string& uid) {
    const auto entries = checkpoint();
    if (!entries.ok()) return false;
    for (const auto& entry : *entries) {
      if (entry.uid == uid) return true;
    }
    return false;
  }
  void collect_garbage() { (void)claims_->collect_garbage().ok(); }

  runtime::SimRuntime sim;
  client::FakeApi api;
  GuardedFiles files;
  std::unique_ptr<DraService> service;

 private:
  std::unique_ptr<client::Transport> transport_;
  std::unique_ptr<client::Client> client_;
  FakeDriver driver_;
  MetadataFiles metadata_;
  metrics::Registry registry_;
  DriverMetrics counted_{registry_, "d"};
  std::unique_ptr<PreparedClaims> claims_;
};

void prepare(World& world, std::string_view bytes, const Value& allocation) {
  dra::NodePrepareResourcesRequest request;
  const bool parsed = parse(bytes, request);
  if (parsed) put_claims(world.api, request, allocation);
  const auto reply = world.call("NodePrepareResources", bytes);
  require(parsed || !reply.status.ok(), "garbage is no request");
  if (!reply.status.ok()) return;
  dra::NodePrepareResourcesResponse response;
  require(parse(reply.bytes, response), "an answer is one");
  for (const auto& claim : request.claims()) {
    const auto found = response.claims().find(claim.uid());
    require(found != response.claims().end(), "every claim has an answer");
    require(!found->second.error().empty() || world.noted(claim.uid()), "a prepared one is noted");
  }
}

void unprepare(World& world, std::string_view bytes) {
  dra::NodeUnprepareResourcesRequest request;
  const bool parsed = parse(bytes, request);
  const auto reply = world.call("NodeUnprepareResources", bytes);
  require(parsed == reply.status.ok(), "a request is answered, garbage is none");
  if (!parsed) return;
  dra::NodeUnprepareResourcesResponse response;
  require(parse(reply.bytes, response), "an answer is one");
  for (const auto& claim : request.claims()) {
    const auto found = response.claims().find(claim.uid());
    require(found != response.claims().end(), "every claim has an answer");
    require(!found->second.error().empty() || !world.noted(claim.uid()),
            "an unprepared one is not");
  }
}

/// In the versions whose messages differ, or that may mean another model.
void run_old(World& world, std::string_view bytes, const Value& allocation) {
  v1alpha3::NodePrepareResourceRequest single;
  if (parse(bytes, single)) {
    put_claim(world.api, {single.namespace_(), single.claim_name(), single.claim_uid()},
              allocation);
  }
  auto methods = world.service->methods(true).unary;
  for (const char* method :
       {"/v1alpha3.Node/NodePrepareResources", "/v1alpha3.Node/NodeUnprepareResources",
        "/v1alpha2.Node/NodePrepareResource", "/v1alpha2.Node/NodeUnprepareResource",
        "/v1alpha1.Node/NodePrepareResource", "/v1alpha1.Node/NodeUnprepareResource"}) {
    (void)methods.at(method)(bytes);
  }
}

}  // namespace

int fuzz_driver(const std::uint8_t* data, std::size_t size) {
  log::set_level(log::Level::off);
  // It tells of every text that is none.
  google::protobuf::SetLogHandler(nullptr);
  Texts texts(data, size);
  World world((texts.byte() & 1) != 0);
  const std::string_view first = texts.next();
  const std::string_view second = texts.next();
  const auto allocation = json::parse(texts.next());
  const std::string_view checkpoint = texts.next();
  const std::string_view status = texts.next();
  if (!checkpoint.empty()) (void)world.files.write(kCheckpoint, checkpoint, 0600).ok();
  world.collect_garbage();
  // Twice, as an agent does that lost the answer.
  for (int i = 0; i < 2; ++i) {
    prepare(world, first, allocation.ok() ? *allocation : Value());
  }
  unprepare(world, second);
  unprepare(world, first);
  run_old(world, second, allocation.ok() ? *allocation : Value());
  world.collect_garbage();
  int told = 0;
  auto methods = registration_methods({kDriver, "/d.sock", {}}, [&](const Result<>&) { ++told; });
  (void)methods.unary.at("/pluginregistration.Registration/NotifyRegistrationStatus")(status);
  require(told <= 1, "a status is told once");
  return 0;
}

}  // namespace dibs::fuzz

DIBS_FUZZ_ENTRY(dibs::fuzz::fuzz_driver)
