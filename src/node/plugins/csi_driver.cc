#include "node/plugins/csi_driver.h"

#include "base/strings.h"
#include "proto/csi.pb.h"

namespace dibs::node {
namespace {

using csi::v1::VolumeCapability;
using Mode = VolumeCapability::AccessMode;

constexpr Duration kDeadline = std::chrono::minutes(2);

/// "unix:///csi/csi.sock" and "/csi/csi.sock" are the same.
std::string plain(std::string endpoint) {
  for (const std::string_view scheme : {"unix://", "unix:"}) {
    if (endpoint.starts_with(scheme)) return endpoint.substr(scheme.size());
  }
  return endpoint;
}

Error call_error(const rpc::Status& status) {
  switch (status.code) {
    case rpc::Code::cancelled:
    case rpc::Code::deadline_exceeded:
    case rpc::Code::unavailable:
    case rpc::Code::resource_exhausted:
    case rpc::Code::aborted:
      return Error::unavailable(status.text());
    case rpc::Code::not_found:
      return Error::not_found(status.text());
    case rpc::Code::invalid_argument:
    case rpc::Code::out_of_range:
      return Error::invalid(status.text());
    case rpc::Code::failed_precondition:
      return Error::conflict(status.text());
    default:
      return Error::internal(status.text());
  }
}

template <typename Answer, typename Question>
Result<Answer> ask(rpc::Channel& channel, const char* method, const Question& question) {
  const rpc::Reply reply =
      channel.call(cat("/csi.v1.Node/", method), question.SerializeAsString(), kDeadline);
  if (!reply.status.ok()) return call_error(reply.status);
  Answer answer;
  if (!answer.ParseFromString(reply.bytes)) {
    return Error::unavailable(cat("the answer to ", method, " cannot be decoded"));
  }
  return answer;
}

Mode::Mode mode_of(const std::string& access_mode, const CsiAbilities& able) {
  if (access_mode == "ReadOnlyMany") return Mode::MULTI_NODE_READER_ONLY;
  if (access_mode == "ReadWriteMany") return Mode::MULTI_NODE_MULTI_WRITER;
  const bool fine = able.single_node_multi_writer;
  if (access_mode == "ReadWriteOnce") {
    return fine ? Mode::SINGLE_NODE_MULTI_WRITER : Mode::SINGLE_NODE_WRITER;
  }
  if (access_mode == "ReadWriteOncePod") {
    return fine ? Mode::SINGLE_NODE_SINGLE_WRITER : Mode::SINGLE_NODE_WRITER;
  }
  return Mode::UNKNOWN;
}

void describe(const CsiVolume& volume, const CsiAbilities& able, VolumeCapability& out) {
  out.mutable_access_mode()->set_mode(mode_of(volume.access_mode, able));
  if (volume.block) {
    out.mutable_block();
    return;
  }
  auto& mount = *out.mutable_mount();
  mount.set_fs_type(volume.fs_type);
  for (const auto& option : volume.mount_options) mount.add_mount_flags(option);
  if (able.mount_group && volume.group) mount.set_volume_mount_group(cat(*volume.group));
}

template <typename Map>
void fill(const std::map<std::string, std::string>& from, Map& to) {
  for (const auto& [key, value] : from) to[key] = value;
}

}  // namespace

CsiDriver::CsiDriver(PluginInfo info, CsiPaths paths, const Connect& connect)
    : info_(std::move(info)),
      paths_(std::move(paths)),
      endpoint_(paths_.here ? paths_.here(plain(info_.endpoint)) : plain(info_.endpoint)),
      in_pod_(endpoint_ != plain(info_.endpoint)),
      channel_(connect(endpoint_)) {}

std::string CsiDriver::seen(const std::string& path) const {
  return in_pod_ && paths_.in_pods ? paths_.in_pods(path) : path;
}

Result<CsiNodeInfo> CsiDriver::node_info() {
  DIBS_TRY(const auto answer, ask<csi::v1::NodeGetInfoResponse>(*channel_, "NodeGetInfo",
                                                                csi::v1::NodeGetInfoRequest()));
  CsiNodeInfo out{answer.node_id(), answer.max_volumes_per_node(), {}};
  for (const auto& [key, value] : answer.accessible_topology().segments()) {
    out.topology[key] = value;
  }
  return out;
}

Result<CsiAbilities> CsiDriver::abilities() {
  DIBS_TRY(const auto answer,
           ask<csi::v1::NodeGetCapabilitiesResponse>(*channel_, "NodeGetCapabilities",
                                                     csi::v1::NodeGetCapabilitiesRequest()));
  using Rpc = csi::v1::NodeServiceCapability::Rpc;
  CsiAbilities out;
  for (const auto& one : answer.capabilities()) {
    const auto type = one.rpc().type();
    out.stage = out.stage || type == Rpc::STAGE_UNSTAGE_VOLUME;
    out.single_node_multi_writer =
        out.single_node_multi_writer || type == Rpc::SINGLE_NODE_MULTI_WRITER;
    out.mount_group = out.mount_group || type == Rpc::VOLUME_MOUNT_GROUP;
    out.expand = out.expand || type == Rpc::EXPAND_VOLUME;
  }
  return out;
}

Result<> CsiDriver::stage(const CsiVolume& volume, const CsiAbilities& able,
                          const std::string& staging) {
  csi::v1::NodeStageVolumeRequest question;
  question.set_volume_id(volume.id);
  question.set_staging_target_path(seen(staging));
  describe(volume, able, *question.mutable_volume_capability());
  fill(volume.publish_context, *question.mutable_publish_context());
  fill(volume.secrets, *question.mutable_secrets());
  fill(volume.context, *question.mutable_volume_context());
  DIBS_CHECK(ask<csi::v1::NodeStageVolumeResponse>(*channel_, "NodeStageVolume", question));
  return success();
}

Result<> CsiDriver::unstage(const std::string& volume_id, const std::string& staging) {
  csi::v1::NodeUnstageVolumeRequest question;
  question.set_volume_id(volume_id);
  question.set_staging_target_path(seen(staging));
  DIBS_CHECK(ask<csi::v1::NodeUnstageVolumeResponse>(*channel_, "NodeUnstageVolume", question));
  return success();
}

Result<> CsiDriver::publish(const CsiVolume& volume, const CsiAbilities& able,
                            const std::string& staging, const std::string& target) {
  csi::v1::NodePublishVolumeRequest question;
  question.set_volume_id(volume.id);
  if (!staging.empty()) question.set_staging_target_path(seen(staging));
  question.set_target_path(seen(target));
  question.set_readonly(volume.read_only);
  describe(volume, able, *question.mutable_volume_capability());
  fill(volume.publish_context, *question.mutable_publish_context());
  fill(volume.secrets, *question.mutable_secrets());
  fill(volume.context, *question.mutable_volume_context());
  DIBS_CHECK(ask<csi::v1::NodePublishVolumeResponse>(*channel_, "NodePublishVolume", question));
  return success();
}

Result<> CsiDriver::unpublish(const std::string& volume_id, const std::string& target) {
  csi::v1::NodeUnpublishVolumeRequest question;
  question.set_volume_id(volume_id);
  question.set_target_path(seen(target));
  DIBS_CHECK(ask<csi::v1::NodeUnpublishVolumeResponse>(*channel_, "NodeUnpublishVolume", question));
  return success();
}

Result<> CsiDriver::expand(const CsiVolume& volume, const CsiAbilities& able,
                           const std::string& staging, const std::string& path,
                           std::int64_t bytes) {
  csi::v1::NodeExpandVolumeRequest question;
  question.set_volume_id(volume.id);
  question.set_volume_path(seen(path));
  question.mutable_capacity_range()->set_required_bytes(bytes);
  if (!staging.empty()) question.set_staging_target_path(seen(staging));
  describe(volume, able, *question.mutable_volume_capability());
  fill(volume.secrets, *question.mutable_secrets());
  DIBS_CHECK(ask<csi::v1::NodeExpandVolumeResponse>(*channel_, "NodeExpandVolume", question));
  return success();
}

}  // namespace dibs::node
