#include "driver/dra_service.h"

#include "base/log.h"
#include "base/strings.h"
#include "proto/dra_health.pb.h"
#include "proto/dra_v1.pb.h"

namespace dibs::driver {
namespace {

namespace dra = k8s::io::kubelet::pkg::apis::dra::v1;

const client::Gvr kClaims = {"resource.k8s.io", "v1", "resourceclaims"};
constexpr Duration kHealthPoll = std::chrono::milliseconds(250);
// The agent forgets what it has not heard for 30 s.
constexpr Duration kHealthRepeat = std::chrono::seconds(10);

template <typename Message>
bool parse(std::string_view bytes, Message& message) {
  return message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

rpc::Reply failure(std::string text) { return {{rpc::Code::unknown, std::move(text)}, ""}; }

rpc::Reply garbled() { return {{rpc::Code::internal, "grpc: error unmarshalling request"}, ""}; }

template <typename Request>
std::vector<ClaimName> names_in(const Request& request) {
  std::vector<ClaimName> names;
  for (const auto& claim : request.claims()) {
    names.push_back({claim.namespace_(), claim.name(), claim.uid()});
  }
  return names;
}

dra_health::HealthStatus status_of(Health health) {
  switch (health) {
    case Health::healthy:
      return dra_health::HEALTHY;
    case Health::unhealthy:
      return dra_health::UNHEALTHY;
    case Health::unknown:
      break;
  }
  return dra_health::UNKNOWN;
}

}  // namespace

std::vector<std::string> supported_versions(bool with_health) {
  std::vector<std::string> versions = {"v1.DRAPlugin", "v1beta1.DRAPlugin"};
  if (with_health) {
    versions.insert(versions.end(), {"v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"});
  }
  return versions;
}

DraService::DraService(Driver& driver, client::Client& api, PreparedClaims& claims,
                       ClaimsLock* lock, DriverMetrics& metrics, runtime::Runtime& runtime)
    : driver_(driver),
      api_(api),
      claims_(claims),
      lock_(lock),
      metrics_(metrics),
      runtime_(runtime) {}

rpc::Methods DraService::methods() {
  struct Version {
    const char* service;
    bool with_shares;
  };
  const Version versions[] = {{"/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/", true},
                              {"/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/", false},
                              {"/v1alpha3.Node/", false}};
  rpc::Methods methods;
  for (const auto& version : versions) {
    methods.unary[cat(version.service, "NodePrepareResources")] =
        [this, with_shares = version.with_shares](std::string_view request) {
          return prepare(request, with_shares);
        };
    methods.unary[cat(version.service, "NodeUnprepareResources")] =
        [this](std::string_view request) { return unprepare(request); };
  }
  if (driver_.reports_health()) {
    for (const char* service : {"/v1.DRAResourceHealth/", "/v1alpha1.DRAResourceHealth/"}) {
      methods.streams[cat(service, "NodeWatchResources")] =
          [this](std::string_view, rpc::StreamWriter& writer) { return watch_health(writer); };
    }
  }
  return methods;
}

Result<std::vector<Claim>> DraService::fetch(const std::vector<ClaimName>& names) {
  std::vector<Claim> claims;
  for (const auto& name : names) {
    const std::string key = cat(name.name_space, "/", name.name);
    auto object = api_.get(kClaims, name.name_space, name.name);
    if (!object) return object.error().within(cat("retrieve claim ", key));
    DIBS_TRY(auto claim, read_claim(std::move(object).value(), claims_.options().driver_name));
    if (claim.id.uid != name.uid) return Error::conflict(cat("claim ", key, " got replaced"));
    claims.push_back(std::move(claim));
  }
  return claims;
}

rpc::Reply DraService::prepare(std::string_view bytes, bool with_shares) {
  dra::NodePrepareResourcesRequest request;
  if (!parse(bytes, request)) return garbled();
  // Before the lock: an API server that is slow holds up nobody else.
  auto fetched = fetch(names_in(request));
  if (!fetched) return failure(fetched.error().within("get resource claims").message());
  dra::NodePrepareResourcesResponse response;
  std::unique_ptr<ClaimsLock::Held> held;
  if (lock_ != nullptr && !fetched->empty()) {
    auto locked = lock_->acquire();
    if (!locked) return failure(locked.error().message());
    held = std::move(locked).value();
  }
  for (auto& claim : *fetched) {
    const Duration start = runtime_.clock.steady();
    const std::string uid = claim.id.uid;
    auto& entry = (*response.mutable_claims())[uid];
    auto answers = claims_.prepare(std::move(claim));
    metrics_.prepared(answers.ok(), runtime_.clock.steady() - start);
    if (!answers) {
      entry.set_error(
          answers.error().within(cat("error preparing devices for claim ", uid)).message());
      log::warn("claim not prepared", {{"claim", uid}, {"error", answers.error()}});
      continue;
    }
    for (const auto& answer : *answers) {
      auto* device = entry.add_devices();
      device->add_request_names(answer.request);
      device->set_pool_name(answer.pool);
      device->set_device_name(answer.device);
      for (const auto& id : answer.cdi_ids) device->add_cdi_device_ids(id);
      if (with_shares && !answer.share_id.empty()) device->set_share_id(answer.share_id);
    }
    log::info("claim prepared", {{"claim", uid}, {"devices", answers->size()}});
  }
  return {{}, response.SerializeAsString()};
}

rpc::Reply DraService::unprepare(std::string_view bytes) {
  dra::NodeUnprepareResourcesRequest request;
  if (!parse(bytes, request)) return garbled();
  dra::NodeUnprepareResourcesResponse response;
  std::unique_ptr<ClaimsLock::Held> held;
  if (lock_ != nullptr && request.claims_size() > 0) {
    auto locked = lock_->acquire();
    if (!locked) return failure(locked.error().message());
    held = std::move(locked).value();
  }
  for (const auto& name : names_in(request)) {
    const Duration start = runtime_.clock.steady();
    auto& entry = (*response.mutable_claims())[name.uid];
    const auto done = claims_.unprepare(name);
    metrics_.unprepared(done.ok(), runtime_.clock.steady() - start);
    if (!done) {
      entry.set_error(
          done.error().within(cat("error unpreparing devices for claim ", name.uid)).message());
      log::warn("claim not unprepared", {{"claim", name.uid}, {"error", done.error()}});
      continue;
    }
    log::info("claim unprepared", {{"claim", name.uid}});
  }
  return {{}, response.SerializeAsString()};
}

std::string DraService::health_report() {
  dra_health::NodeWatchResourcesResponse report;
  const Time now = runtime_.clock.now();
  for (const auto& health : driver_.health()) {
    auto* device = report.add_devices();
    device->mutable_device()->set_pool_name(health.pool);
    device->mutable_device()->set_device_name(health.device);
    device->set_health(status_of(health.health));
    device->set_last_updated_time((health.updated == Time{} ? now : health.updated).seconds());
    device->set_health_check_timeout_seconds(
        std::chrono::duration_cast<std::chrono::seconds>(health.timeout).count());
    device->set_message(health.message);
  }
  return report.SerializeAsString();
}

rpc::Status DraService::watch_health(rpc::StreamWriter& writer) {
  for (;;) {
    const std::uint64_t version = health_version_;
    if (!writer.write(health_report())) return {};
    const Duration again = runtime_.clock.steady() + kHealthRepeat;
    while (health_version_ == version && runtime_.clock.steady() < again) {
      if (writer.wait_gone(kHealthPoll)) return {};
    }
  }
}

}  // namespace dibs::driver
