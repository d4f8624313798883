#pragma once
// One instance of a driver: the socket it serves, and prepare and unprepare in the version that it
// speaks.
//
// Claims of the classic model carry a handle, the driver's own data; they are spoken in v1alpha3,
// and from the first "unimplemented" on in v1alpha2, then v1alpha1, which take one claim a call.
// All others go in the version that was negotiated.
//
// Thread-safe.

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "node/plugins/plugin_metrics.h"
#include "node/plugins/plugin_registry.h"
#include "node/plugins/pod_claims.h"
#include "node/plugins/versions.h"
#include "rpc/channel.h"

namespace dibs::node {

/// How long a driver may take for a call.
inline constexpr Duration kDriverDeadline = std::chrono::seconds(45);

/// A claim as drivers are told of it.
struct ClaimRef {
  std::string name_space = {};
  std::string uid = {};
  std::string name = {};
  /// Of the classic model.
  bool classic = false;
  std::string handle = {};
  json::Value structured = {};                 // a StructuredResourceHandle, or null
  std::vector<std::string> prepared_ids = {};  // v1alpha1 is told them again at unprepare
};

struct PrepareAnswer {
  std::vector<PreparedDevice> devices = {};  // without the driver's name
  std::string error = {};
};

/// By claim uid. A batch that failed as a whole is an Error with gRPC's text.
using PrepareAnswers = std::map<std::string, PrepareAnswer>;
using UnprepareAnswers = std::map<std::string, std::string>;

class DraPlugin {
 public:
  DraPlugin(PluginInfo info, Negotiated spoken, std::unique_ptr<rpc::Channel> channel,
            runtime::Clock& clock, PluginMetrics& metrics, Duration deadline = kDriverDeadline);

  const PluginInfo& info() const { return info_; }
  const Negotiated& spoken() const { return spoken_; }
  rpc::Channel& channel() { return *channel_; }

  bool connected() const { return connected_; }
  /// Connects, and calls back on every change once `connected()` says so.
  void watch(std::function<void()> changed);

  /// All claims are of one model.
  Result<PrepareAnswers> prepare(const std::vector<ClaimRef>& claims);
  Result<UnprepareAnswers> unprepare(const std::vector<ClaimRef>& claims);

 private:
  enum class Classic : std::uint8_t { v1alpha3, v1alpha2, v1alpha1 };

  rpc::Reply call(const std::string& method, const std::string& request);
  std::string path(bool unprepare) const;
  Result<PrepareAnswers> prepare_classic(const std::vector<ClaimRef>& claims);
  Result<PrepareAnswers> prepare_singly(const std::vector<ClaimRef>& claims);
  Result<UnprepareAnswers> unprepare_classic(const std::vector<ClaimRef>& claims);
  Result<UnprepareAnswers> unprepare_singly(const std::vector<ClaimRef>& claims);
  rpc::Reply prepare_one(const ClaimRef& claim);
  rpc::Reply unprepare_one(const ClaimRef& claim);

  const PluginInfo info_;
  const Negotiated spoken_;
  runtime::Clock& clock_;
  PluginMetrics& metrics_;
  const Duration deadline_;
  std::atomic<bool> connected_ = false;
  std::atomic<Classic> classic_ = Classic::v1alpha3;
  std::unique_ptr<rpc::Channel> channel_;  // last: its handlers use what stands above
};

}  // namespace dibs::node
