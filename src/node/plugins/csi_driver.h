#pragma once
// A storage driver on this node, over its socket: the node's half of the Container Storage
// Interface.
//
// Drivers in pods know the node's folder as /var/lib/kubelet, wherever it lies; they register with
// an endpoint below that, and are told of paths in the same way. One that registers with a real
// path is told real paths.
//
// Calls block. An error with the code `unavailable` leaves open whether the driver did what it was
// asked; any other says that it did not: `not_found` that it knows no such volume, `invalid` that
// it never will, `conflict` that it cannot while things are as they are. Thread-safe.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "node/plugins/plugin_registry.h"
#include "rpc/channel.h"

namespace dibs::node {

/// What the driver says of itself on this node.
struct CsiNodeInfo {
  std::string node_id = {};
  std::int64_t max_volumes = 0;  // 0: as many as come
  std::map<std::string, std::string> topology = {};
};

/// What the driver can do beside publishing.
struct CsiAbilities {
  bool stage = false;
  bool single_node_multi_writer = false;
  bool mount_group = false;
  bool expand = false;
};

/// A volume, as the calls that mount it name it.
struct CsiVolume {
  std::string id = {};
  std::string access_mode = "ReadWriteOnce";
  bool block = false;
  std::string fs_type = {};
  std::vector<std::string> mount_options = {};
  /// For drivers that apply it themselves.
  std::optional<std::int64_t> group = {};
  bool read_only = false;
  std::map<std::string, std::string> context = {};
  std::map<std::string, std::string> publish_context = {};
  std::map<std::string, std::string> secrets = {};
};

/// Between the paths of this machine and those that pods on the node have; empty: the same.
struct CsiPaths {
  std::function<std::string(const std::string& path)> here = {};
  std::function<std::string(const std::string& path)> in_pods = {};
};

class CsiDriver {
 public:
  /// `connect` gets the socket's real path.
  CsiDriver(PluginInfo info, CsiPaths paths, const Connect& connect);

  const PluginInfo& info() const { return info_; }
  /// A path of this machine as the driver sees it.
  std::string seen(const std::string& path) const;

  Result<CsiNodeInfo> node_info();
  Result<CsiAbilities> abilities();
  Result<> stage(const CsiVolume& volume, const CsiAbilities& able, const std::string& staging);
  Result<> unstage(const std::string& volume_id, const std::string& staging);
  /// `staging` "": the driver does not stage.
  Result<> publish(const CsiVolume& volume, const CsiAbilities& able, const std::string& staging,
                   const std::string& target);
  Result<> unpublish(const std::string& volume_id, const std::string& target);
  /// What is published at `path` becomes as large as the volume.
  Result<> expand(const CsiVolume& volume, const CsiAbilities& able, const std::string& staging,
                  const std::string& path, std::int64_t bytes);

 private:
  const PluginInfo info_;
  const CsiPaths paths_;
  const std::string endpoint_;  // on this machine
  const bool in_pod_;
  const std::unique_ptr<rpc::Channel> channel_;
};

}  // namespace dibs::node
