#include "node/plugins/dra_plugin.h"

#include "base/strings.h"
#include "json/parse.h"
#include "proto/dra_v1.pb.h"
#include "proto/dra_v1alpha3.pb.h"

namespace dibs::node {
namespace {

namespace dra = k8s::io::kubelet::pkg::apis::dra::v1;
namespace old = v1alpha3;

Error undecodable() {
  return Error::internal(
      rpc::Status{rpc::Code::internal, "grpc: failed to unmarshal the received message"}.text());
}

template <typename Response>
Result<Response> response_of(const rpc::Reply& reply) {
  if (!reply.status.ok()) return Error::internal(reply.status.text());
  Response response;
  if (!response.ParseFromString(reply.bytes)) return undecodable();
  return response;
}

template <typename Response>
UnprepareAnswers unprepare_answers(const Response& response) {
  UnprepareAnswers out;
  for (const auto& [uid, claim] : response.claims()) out[uid] = claim.error();
  return out;
}

template <typename Request>
auto* add_claim(const ClaimRef& claim, Request& request) {
  auto* entry = request.add_claims();
  entry->set_namespace_(claim.name_space);
  entry->set_uid(claim.uid);
  entry->set_name(claim.name);
  return entry;
}

template <typename Request>
std::string batch_of(const std::vector<ClaimRef>& claims) {
  Request request;
  for (const auto& claim : claims) add_claim(claim, request);
  return request.SerializeAsString();
}

/// Parameters of a class or claim travel as the JSON that the API shows.
void set_raw(const json::Value& value, old::RawExtension* out) { out->set_raw(json::write(value)); }

void add_structured(const json::Value& handle,
                    google::protobuf::RepeatedPtrField<old::StructuredResourceHandle>* out) {
  if (!handle.is_object()) return;
  auto* to = out->Add();
  if (const auto* raw = handle.find("vendorClassParameters")) {
    set_raw(*raw, to->mutable_vendor_class_parameters());
  }
  if (const auto* raw = handle.find("vendorClaimParameters")) {
    set_raw(*raw, to->mutable_vendor_claim_parameters());
  }
  to->set_node_name(handle["nodeName"].str());
  for (const auto& result : handle["results"].items()) {
    auto* entry = to->add_results();
    if (const auto* raw = result.find("vendorRequestParameters")) {
      set_raw(*raw, entry->mutable_vendor_request_parameters());
    }
    entry->mutable_model()->mutable_named_resources()->set_name(
        result["namedResources"]["name"].str());
  }
}

template <typename Request>
std::string classic_batch_of(const std::vector<ClaimRef>& claims) {
  Request request;
  for (const auto& claim : claims) {
    auto* entry = add_claim(claim, request);
    entry->set_resource_handle(claim.handle);
    add_structured(claim.structured, entry->mutable_structured_resource_handle());
  }
  return request.SerializeAsString();
}

template <typename Request>
Request single(const ClaimRef& claim) {
  Request request;
  request.set_namespace_(claim.name_space);
  request.set_claim_uid(claim.uid);
  request.set_claim_name(claim.name);
  return request;
}

PreparedDevice classic_device(const google::protobuf::RepeatedPtrField<std::string>& ids) {
  PreparedDevice device;
  device.cdi_ids.assign(ids.begin(), ids.end());
  return device;
}

}  // namespace

DraPlugin::DraPlugin(PluginInfo info, Negotiated spoken, std::unique_ptr<rpc::Channel> channel,
                     runtime::Clock& clock, PluginMetrics& metrics, Duration deadline)
    : info_(std::move(info)),
      spoken_(std::move(spoken)),
      clock_(clock),
      metrics_(metrics),
      deadline_(deadline),
      channel_(std::move(channel)) {}

void DraPlugin::watch(std::function<void()> changed) {
  channel_->watch_connection([this, changed = std::move(changed)](bool connected) {
    connected_ = connected;
    changed();
  });
}

rpc::Reply DraPlugin::call(const std::string& method, const std::string& request) {
  const Duration begin = clock_.steady();
  rpc::Reply reply = channel_->call(method, request, deadline_);
  metrics_.call(info_.name, method, reply.status.code, clock_.steady() - begin);
  return reply;
}

std::string DraPlugin::path(bool unprepare) const {
  const char* method = unprepare ? "NodeUnprepareResources" : "NodePrepareResources";
  switch (spoken_.api) {
    case DraApi::v1:
      return cat("/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/", method);
    case DraApi::v1beta1:
      return cat("/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/", method);
    case DraApi::v1alpha4:
      break;
  }
  return cat("/v1alpha3.Node/", method);
}

Result<PrepareAnswers> DraPlugin::prepare(const std::vector<ClaimRef>& claims) {
  if (!claims.empty() && claims[0].classic) return prepare_classic(claims);
  DIBS_TRY(const auto response,
           response_of<dra::NodePrepareResourcesResponse>(
               call(path(false), batch_of<dra::NodePrepareResourcesRequest>(claims))));
  PrepareAnswers out;
  for (const auto& [uid, claim] : response.claims()) {
    PrepareAnswer& answer = out[uid];
    answer.error = claim.error();
    for (const auto& from : claim.devices()) {
      PreparedDevice device;
      device.pool = from.pool_name();
      device.device = from.device_name();
      // Older versions have no such field; what stands there is not a share.
      if (spoken_.api == DraApi::v1) device.share_id = from.share_id();
      device.requests.assign(from.request_names().begin(), from.request_names().end());
      device.cdi_ids.assign(from.cdi_device_ids().begin(), from.cdi_device_ids().end());
      answer.devices.push_back(std::move(device));
    }
  }
  return out;
}

Result<UnprepareAnswers> DraPlugin::unprepare(const std::vector<ClaimRef>& claims) {
  if (!claims.empty() && claims[0].classic) return unprepare_classic(claims);
  DIBS_TRY(const auto response,
           response_of<dra::NodeUnprepareResourcesResponse>(
               call(path(true), batch_of<dra::NodeUnprepareResourcesRequest>(claims))));
  return unprepare_answers(response);
}

Result<PrepareAnswers> DraPlugin::prepare_classic(const std::vector<ClaimRef>& claims) {
  if (classic_ != Classic::v1alpha3) return prepare_singly(claims);
  const auto reply = call("/v1alpha3.Node/NodePrepareResources",
                          classic_batch_of<old::NodePrepareResourcesRequest>(claims));
  if (reply.status.code == rpc::Code::unimplemented) {
    classic_ = Classic::v1alpha2;
    return prepare_singly(claims);
  }
  DIBS_TRY(const auto response, response_of<old::NodePrepareResourcesResponse>(reply));
  PrepareAnswers out;
  for (const auto& [uid, claim] : response.claims()) {
    out[uid] = {{classic_device(claim.cdi_devices())}, claim.error()};
  }
  return out;
}

rpc::Reply DraPlugin::prepare_one(const ClaimRef& claim) {
  auto request = single<old::NodePrepareResourceRequest>(claim);
  request.set_resource_handle(claim.handle);
  if (classic_ != Classic::v1alpha1) {
    add_structured(claim.structured, request.mutable_structured_resource_handle());
    auto reply = call("/v1alpha2.Node/NodePrepareResource", request.SerializeAsString());
    if (reply.status.code != rpc::Code::unimplemented) return reply;
    classic_ = Classic::v1alpha1;
    request.clear_structured_resource_handle();
  }
  return call("/v1alpha1.Node/NodePrepareResource", request.SerializeAsString());
}

Result<PrepareAnswers> DraPlugin::prepare_singly(const std::vector<ClaimRef>& claims) {
  PrepareAnswers out;
  for (const auto& claim : claims) {
    const auto response = response_of<old::NodePrepareResourceAnswer>(prepare_one(claim));
    PrepareAnswer& answer = out[claim.uid];
    if (response) {
      answer.devices.push_back(classic_device(response->cdi_devices()));
    } else {
      answer.error = response.error().message();
    }
  }
  return out;
}

Result<UnprepareAnswers> DraPlugin::unprepare_classic(const std::vector<ClaimRef>& claims) {
  if (classic_ != Classic::v1alpha3) return unprepare_singly(claims);
  const auto reply = call("/v1alpha3.Node/NodeUnprepareResources",
                          classic_batch_of<old::NodeUnprepareResourcesRequest>(claims));
  if (reply.status.code == rpc::Code::unimplemented) {
    classic_ = Classic::v1alpha2;
    return unprepare_singly(claims);
  }
  DIBS_TRY(const auto response, response_of<old::NodeUnprepareResourcesResponse>(reply));
  return unprepare_answers(response);
}

rpc::Reply DraPlugin::unprepare_one(const ClaimRef& claim) {
  if (classic_ != Classic::v1alpha1) {
    auto request = single<old::NodeUnprepareResourceRequest>(claim);
    request.set_resource_handle(claim.handle);
    add_structured(claim.structured, request.mutable_structured_resource_handle());
    auto reply = call("/v1alpha2.Node/NodeUnprepareResource", request.SerializeAsString());
    if (reply.status.code != rpc::Code::unimplemented) return reply;
    classic_ = Classic::v1alpha1;
  }
  auto request = single<old::NodeUnprepareResourceRequestV1alpha1>(claim);
  for (const auto& id : claim.prepared_ids) request.add_cdi_devices(id);
  return call("/v1alpha1.Node/NodeUnprepareResource", request.SerializeAsString());
}

Result<UnprepareAnswers> DraPlugin::unprepare_singly(const std::vector<ClaimRef>& claims) {
  UnprepareAnswers out;
  for (const auto& claim : claims) {
    const auto reply = unprepare_one(claim);
    out[claim.uid] = reply.status.ok() ? std::string() : reply.status.text();
  }
  return out;
}

}  // namespace dibs::node
