#pragma once
// A storage driver for tests, in this process: volumes are folders of its own, mounted by bind
// mounts where that is allowed and made believe elsewhere. It writes down what it is asked, can
// refuse, and forgets nothing that it has mounted.

#include <sys/mount.h>

#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/strings.h"
#include "node/plugins/csi_driver.h"
#include "proto/csi.pb.h"
#include "rpc/memory_network.h"

namespace dibs::node::test {

class FakeCsiDriver {
 public:
  /// `root`: the node's folder, that the driver knows as /var/lib/kubelet.
  FakeCsiDriver(rpc::MemoryNetwork& network, std::string root, std::string data)
      : root_(std::move(root)), data_(std::move(data)) {
    std::filesystem::create_directories(data_);
    rpc::Methods methods;
    methods.unary["/csi.v1.Node/NodeGetInfo"] = [this](std::string_view) {
      csi::v1::NodeGetInfoResponse answer;
      answer.set_node_id(node_id);
      answer.set_max_volumes_per_node(max_volumes);
      for (const auto& [key, value] : topology) {
        (*answer.mutable_accessible_topology()->mutable_segments())[key] = value;
      }
      return reply(answer);
    };
    methods.unary["/csi.v1.Node/NodeGetCapabilities"] = [this](std::string_view) {
      csi::v1::NodeGetCapabilitiesResponse answer;
      for (const auto type : abilities) {
        answer.add_capabilities()->mutable_rpc()->set_type(type);
      }
      return reply(answer);
    };
    methods.unary["/csi.v1.Node/NodeStageVolume"] = [this](std::string_view bytes) {
      csi::v1::NodeStageVolumeRequest asked;
      asked.ParseFromString(std::string(bytes));
      last_stage = asked;
      return act(cat("stage ", asked.volume_id(), " ", asked.staging_target_path()), [&] {
        mount(data_, real(asked.staging_target_path()));
        staged.insert(asked.staging_target_path());
      });
    };
    methods.unary["/csi.v1.Node/NodeUnstageVolume"] = [this](std::string_view bytes) {
      csi::v1::NodeUnstageVolumeRequest asked;
      asked.ParseFromString(std::string(bytes));
      return act(cat("unstage ", asked.volume_id(), " ", asked.staging_target_path()), [&] {
        unmount(real(asked.staging_target_path()));
        staged.erase(asked.staging_target_path());
      });
    };
    methods.unary["/csi.v1.Node/NodePublishVolume"] = [this](std::string_view bytes) {
      csi::v1::NodePublishVolumeRequest asked;
      asked.ParseFromString(std::string(bytes));
      last_publish = asked;
      return act(cat("publish ", asked.volume_id(), " ", asked.target_path()), [&] {
        std::filesystem::create_directory(real(asked.target_path()));
        mount(data_, real(asked.target_path()));
        published.insert(asked.target_path());
      });
    };
    methods.unary["/csi.v1.Node/NodeUnpublishVolume"] = [this](std::string_view bytes) {
      csi::v1::NodeUnpublishVolumeRequest asked;
      asked.ParseFromString(std::string(bytes));
      return act(cat("unpublish ", asked.volume_id(), " ", asked.target_path()), [&] {
        unmount(real(asked.target_path()));
        std::error_code error;
        std::filesystem::remove(real(asked.target_path()), error);
        published.erase(asked.target_path());
      });
    };
    methods.unary["/csi.v1.Node/NodeExpandVolume"] = [this](std::string_view bytes) {
      last_expand.ParseFromString(std::string(bytes));
      return act(cat("expand ", last_expand.volume_id(), " ", last_expand.volume_path(), " ",
                     last_expand.capacity_range().required_bytes()),
                 [] {});
    };
    server_ = network.serve(cat(root_, "/plugins/fake/csi.sock"), std::move(methods));
  }

  /// For the agent of that node.
  static CsiPaths paths(const std::string& root) {
    const auto moved = [](const std::string& path, const std::string& from, const std::string& to) {
      return path.starts_with(from + "/") ? to + path.substr(from.size()) : path;
    };
    return {[=](const std::string& path) { return moved(path, "/var/lib/kubelet", root); },
            [=](const std::string& path) { return moved(path, root, "/var/lib/kubelet"); }};
  }
  static constexpr const char* kEndpoint = "/var/lib/kubelet/plugins/fake/csi.sock";

  using Rpc = csi::v1::NodeServiceCapability::Rpc;
  std::vector<Rpc::Type> abilities = {Rpc::STAGE_UNSTAGE_VOLUME};
  std::string node_id = "node-0-id";
  std::int64_t max_volumes = 0;
  std::map<std::string, std::string> topology = {};

  std::vector<std::string> log;
  std::set<std::string> staged;
  std::set<std::string> published;
  csi::v1::NodeStageVolumeRequest last_stage;
  csi::v1::NodePublishVolumeRequest last_publish;
  csi::v1::NodeExpandVolumeRequest last_expand;
  /// The answer to a call that begins so; after the deed, or in its place.
  std::map<std::string, rpc::Status> refuse;
  std::map<std::string, rpc::Status> refuse_after;

 private:
  template <typename Message>
  static rpc::Reply reply(const Message& message) {
    return {{}, message.SerializeAsString()};
  }

  template <typename Deed>
  rpc::Reply act(const std::string& what, Deed deed) {
    log.push_back(what);
    if (const auto* status = find(refuse, what)) return {*status, ""};
    deed();
    if (const auto* status = find(refuse_after, what)) return {*status, ""};
    return {{}, ""};
  }

  static const rpc::Status* find(const std::map<std::string, rpc::Status>& table,
                                 const std::string& what) {
    for (const auto& [begin, status] : table) {
      if (what.starts_with(begin)) return &status;
    }
    return nullptr;
  }

  std::string real(const std::string& path) const {
    constexpr std::string_view kKubelet = "/var/lib/kubelet";
    return path.starts_with(kKubelet) ? root_ + path.substr(kKubelet.size()) : path;
  }
  void mount(const std::string& from, const std::string& to) {
    if (mounted_.contains(to)) return;
    if (::mount(from.c_str(), to.c_str(), nullptr, MS_BIND, nullptr) == 0) mounted_.insert(to);
  }
  void unmount(const std::string& at) {
    if (mounted_.erase(at) > 0) ::umount2(at.c_str(), UMOUNT_NOFOLLOW);
  }

  const std::string root_;
  const std::string data_;
  std::set<std::string> mounted_;
  std::unique_ptr<rpc::Server> server_;
};

}  // namespace dibs::node::test
