#include "driver/dra_service.h"

#include <algorithm>

#include "base/log.h"
#include "base/strings.h"
#include "driver/named_resources.h"
#include "proto/dra_health.pb.h"
#include "proto/dra_v1.pb.h"
#include "proto/dra_v1alpha3.pb.h"

namespace dibs::driver {
namespace {

namespace dra = k8s::io::kubelet::pkg::apis::dra::v1;
namespace old = v1alpha3;

const client::Gvr kClassicClaims = {"resource.k8s.io", "v1alpha2", "resourceclaims"};
const client::Gvr kClaims = {"resource.k8s.io", "v1", "resourceclaims"};
constexpr Duration kPoll = std::chrono::milliseconds(250);
// The agent forgets what it has not heard for 30 s.
constexpr Duration kHealthRepeat = std::chrono::seconds(10);

template <typename Message>
bool parse(std::string_view bytes, Message& message) {
  return message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

rpc::Reply failure(std::string text) { return {{rpc::Code::unknown, std::move(text)}, ""}; }

rpc::Reply garbled() { return {{rpc::Code::internal, "grpc: error unmarshalling request"}, ""}; }

/// Each once: an agent of the classic model names a claim once per handle.
template <typename Request>
std::vector<ClaimName> names_in(const Request& request) {
  std::vector<ClaimName> names;
  for (const auto& claim : request.claims()) {
    const bool known = std::any_of(names.begin(), names.end(),
                                   [&](const ClaimName& name) { return name.uid == claim.uid(); });
    if (!known) names.push_back({claim.namespace_(), claim.name(), claim.uid()});
  }
  return names;
}

bool carries_handle(const old::NodePrepareResourcesRequest& request) {
  return std::any_of(request.claims().begin(), request.claims().end(), [](const auto& claim) {
    return !claim.resource_handle().empty() || claim.structured_resource_handle_size() > 0;
  });
}

/// All that a classic agent wants to know.
template <typename Response>
void add_ids(const std::vector<Answer>& answers, Response& response) {
  std::vector<std::string> seen;
  for (const auto& answer : answers) {
    for (const auto& id : answer.cdi_ids) {
      if (std::find(seen.begin(), seen.end(), id) != seen.end()) continue;
      seen.push_back(id);
      response.add_cdi_devices(mend_utf8(id));
    }
  }
}

void add_devices(const std::vector<Answer>& answers, bool with_shares,
                 dra::NodePrepareResourceResponse& response) {
  for (const auto& answer : answers) {
    auto* device = response.add_devices();
    device->add_request_names(mend_utf8(answer.request));
    device->set_pool_name(mend_utf8(answer.pool));
    device->set_device_name(mend_utf8(answer.device));
    for (const auto& id : answer.cdi_ids) device->add_cdi_device_ids(mend_utf8(id));
    if (with_shares && !answer.share_id.empty()) device->set_share_id(mend_utf8(answer.share_id));
  }
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

std::vector<std::string> supported_versions(const PluginOptions& options, bool with_health) {
  const std::string number = "1.0.0";
  if (options.named_resources) return {number};
  std::vector<std::string> versions = {"v1.DRAPlugin", "v1beta1.DRAPlugin"};
  if (with_health) {
    versions.insert(versions.end(), {"v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"});
  }
  if (options.classic) versions.push_back(number);
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

rpc::Methods DraService::methods(bool named_resources) {
  rpc::Methods methods;
  const auto add = [&](const std::string& name, auto call) {
    methods.unary[name] = [this, call](std::string_view request) { return (this->*call)(request); };
  };
  const std::string v1 = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/";
  const std::string v1beta1 = "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/";
  for (const bool with_shares : {true, false}) {
    methods.unary[cat(with_shares ? v1 : v1beta1, "NodePrepareResources")] =
        [this, with_shares](std::string_view request) { return prepare(request, with_shares); };
  }
  add("/v1alpha3.Node/NodePrepareResources", &DraService::prepare_of_either_model);
  for (const auto& service : {v1, v1beta1, std::string("/v1alpha3.Node/")}) {
    add(cat(service, "NodeUnprepareResources"), &DraService::unprepare);
  }
  for (const char* service : {"/v1alpha2.Node/", "/v1alpha1.Node/"}) {
    add(cat(service, "NodePrepareResource"), &DraService::prepare_one);
    add(cat(service, "NodeUnprepareResource"), &DraService::unprepare_one);
  }
  if (named_resources) {
    methods.streams["/v1alpha3.Node/NodeListAndWatchResources"] =
        [this](std::string_view, rpc::StreamWriter& writer) { return watch_devices(writer); };
  }
  if (driver_.reports_health()) {
    for (const char* service : {"/v1.DRAResourceHealth/", "/v1alpha1.DRAResourceHealth/"}) {
      methods.streams[cat(service, "NodeWatchResources")] =
          [this](std::string_view, rpc::StreamWriter& writer) { return watch_health(writer); };
    }
  }
  return methods;
}

Result<std::vector<Claim>> DraService::fetch(const std::vector<ClaimName>& names, bool classic) {
  std::vector<Claim> claims;
  for (const auto& name : names) {
    DIBS_CHECK(check_name(name));
    const std::string key = cat(name.name_space, "/", name.name);
    auto object = api_.get(classic ? kClassicClaims : kClaims, name.name_space, name.name);
    if (!object) return object.error().within(cat("retrieve claim ", key));
    DIBS_TRY(auto claim, read_claim(std::move(object).value(), claims_.options().driver_name));
    if (claim.id.uid != name.uid) return Error::conflict(cat("claim ", key, " got replaced"));
    claims.push_back(std::move(claim));
  }
  return claims;
}

Result<std::vector<DraService::Prepared>> DraService::prepare_all(std::vector<Claim> claims) {
  std::vector<Prepared> out;
  std::unique_ptr<ClaimsLock::Held> held;
  if (lock_ != nullptr && !claims.empty()) {
    DIBS_TRY(held, lock_->acquire());
  }
  for (auto& claim : claims) {
    const Duration start = runtime_.clock.steady();
    const std::string uid = claim.id.uid;
    auto answers = claims_.prepare(std::move(claim));
    metrics_.prepared(answers.ok(), runtime_.clock.steady() - start);
    if (answers) {
      log::info("claim prepared", {{"claim", uid}, {"devices", answers->size()}});
    } else {
      log::warn("claim not prepared", {{"claim", uid}, {"error", answers.error()}});
      answers = answers.error().within(cat("error preparing devices for claim ", uid));
    }
    out.push_back({uid, std::move(answers)});
  }
  return out;
}

rpc::Reply DraService::prepare(std::string_view bytes, bool with_shares) {
  dra::NodePrepareResourcesRequest request;
  if (!parse(bytes, request)) return garbled();
  // Before the lock: an API server that is slow holds up nobody else.
  auto fetched = fetch(names_in(request), false);
  if (!fetched) return failure(fetched.error().within("get resource claims").message());
  const auto prepared = prepare_all(std::move(fetched).value());
  if (!prepared) return failure(prepared.error().message());
  dra::NodePrepareResourcesResponse response;
  for (const auto& [uid, answers] : *prepared) {
    auto& entry = (*response.mutable_claims())[uid];
    if (answers) {
      add_devices(*answers, with_shares, entry);
    } else {
      entry.set_error(mend_utf8(answers.error().message()));
    }
  }
  return {{}, response.SerializeAsString()};
}

rpc::Reply DraService::prepare_of_either_model(std::string_view bytes) {
  old::NodePrepareResourcesRequest request;
  if (!parse(bytes, request)) return garbled();
  auto fetched = fetch(names_in(request), carries_handle(request));
  if (!fetched) return failure(fetched.error().within("get resource claims").message());
  const bool classic = std::any_of(fetched->begin(), fetched->end(),
                                   [](const Claim& claim) { return !claim.handles.empty(); });
  if (!classic) return prepare(bytes, false);
  const auto prepared = prepare_all(std::move(fetched).value());
  if (!prepared) return failure(prepared.error().message());
  old::NodePrepareResourcesResponse response;
  for (const auto& [uid, answers] : *prepared) {
    auto& entry = (*response.mutable_claims())[uid];
    if (answers) {
      add_ids(*answers, entry);
    } else {
      entry.set_error(mend_utf8(answers.error().message()));
    }
  }
  return {{}, response.SerializeAsString()};
}

rpc::Reply DraService::prepare_one(std::string_view bytes) {
  old::NodePrepareResourceRequest request;
  if (!parse(bytes, request)) return garbled();
  auto fetched = fetch({{request.namespace_(), request.claim_name(), request.claim_uid()}}, true);
  if (!fetched) return failure(fetched.error().within("get resource claims").message());
  const auto prepared = prepare_all(std::move(fetched).value());
  if (!prepared) return failure(prepared.error().message());
  const auto& answers = prepared->front().answers;
  if (!answers) return failure(answers.error().message());
  old::NodePrepareResourceAnswer response;
  add_ids(*answers, response);
  return {{}, response.SerializeAsString()};
}

Result<std::vector<Result<>>> DraService::unprepare_all(const std::vector<ClaimName>& names) {
  std::vector<Result<>> out;
  std::unique_ptr<ClaimsLock::Held> held;
  if (lock_ != nullptr && !names.empty()) {
    DIBS_TRY(held, lock_->acquire());
  }
  for (const auto& name : names) {
    const Duration start = runtime_.clock.steady();
    auto done = claims_.unprepare(name);
    metrics_.unprepared(done.ok(), runtime_.clock.steady() - start);
    if (done) {
      log::info("claim unprepared", {{"claim", name.uid}});
    } else {
      log::warn("claim not unprepared", {{"claim", name.uid}, {"error", done.error()}});
      done = done.error().within(cat("error unpreparing devices for claim ", name.uid));
    }
    out.push_back(std::move(done));
  }
  return out;
}

rpc::Reply DraService::unprepare(std::string_view bytes) {
  dra::NodeUnprepareResourcesRequest request;
  if (!parse(bytes, request)) return garbled();
  const auto names = names_in(request);
  const auto done = unprepare_all(names);
  if (!done) return failure(done.error().message());
  dra::NodeUnprepareResourcesResponse response;
  for (std::size_t i = 0; i < names.size(); ++i) {
    auto& entry = (*response.mutable_claims())[names[i].uid];
    if (!(*done)[i]) entry.set_error(mend_utf8((*done)[i].error().message()));
  }
  return {{}, response.SerializeAsString()};
}

rpc::Reply DraService::unprepare_one(std::string_view bytes) {
  // The fourth field, a handle or CDI ids, is not needed: the versions agree on the others.
  old::NodeUnprepareResourceRequest request;
  if (!parse(bytes, request)) return garbled();
  const auto done =
      unprepare_all({{request.namespace_(), request.claim_name(), request.claim_uid()}});
  if (!done) return failure(done.error().message());
  if (!done->front()) return failure(done->front().error().message());
  return {{}, old::NodeUnprepareResourceAnswer().SerializeAsString()};
}

rpc::Status DraService::watch_devices(rpc::StreamWriter& writer) {
  for (;;) {
    const std::uint64_t version = devices_version_;
    const auto pools = driver_.devices();
    // The agent asks again after a while.
    if (!pools) return {rpc::Code::unavailable, pools.error().message()};
    if (!writer.write(named_resources(*pools))) return {};
    while (devices_version_ == version) {
      if (writer.wait_gone(kPoll)) return {};
    }
  }
}

std::string DraService::health_report() {
  dra_health::NodeWatchResourcesResponse report;
  const Time now = runtime_.clock.now();
  for (const auto& health : driver_.health()) {
    auto* device = report.add_devices();
    device->mutable_device()->set_pool_name(mend_utf8(health.pool));
    device->mutable_device()->set_device_name(mend_utf8(health.device));
    device->set_health(status_of(health.health));
    device->set_last_updated_time((health.updated == Time{} ? now : health.updated).seconds());
    device->set_health_check_timeout_seconds(
        std::chrono::duration_cast<std::chrono::seconds>(health.timeout).count());
    device->set_message(mend_utf8(health.message));
  }
  return report.SerializeAsString();
}

rpc::Status DraService::watch_health(rpc::StreamWriter& writer) {
  for (;;) {
    const std::uint64_t version = health_version_;
    if (!writer.write(health_report())) return {};
    const Duration again = runtime_.clock.steady() + kHealthRepeat;
    while (health_version_ == version && runtime_.clock.steady() < again) {
      if (writer.wait_gone(kPoll)) return {};
    }
  }
}

}  // namespace dibs::driver
