#include "node/plugins/csi_drivers.h"

#include <optional>

#include "base/log.h"
#include "base/names.h"
#include "base/strings.h"
#include "node/plugins/csi_node.h"

namespace dibs::node {
namespace {

client::WorkQueueOptions queue_options() {
  client::WorkQueueOptions options;
  options.first_delay = std::chrono::milliseconds(100);
  options.longest_delay = std::chrono::seconds(60);
  return options;
}

std::string list_text(const std::vector<std::string>& texts) {
  std::string out = "[";
  for (const auto& text : texts) {
    if (out.size() > 1) out += ' ';
    out += quoted(text);
  }
  return out + "]";
}

/// The highest 1.x that the driver says it speaks.
std::optional<SemanticVersion> highest(const std::vector<std::string>& versions) {
  std::optional<SemanticVersion> best;
  for (const auto& text : versions) {
    auto version = SemanticVersion::parse_tolerant(text);
    if (!version || version->major != 1) continue;
    if (!best || *best < *version) best = std::move(*version);
  }
  return best;
}

}  // namespace

CsiDrivers::CsiDrivers(CsiDriversOptions options, client::Client& client, runtime::Runtime& runtime)
    : options_(std::move(options)),
      client_(client),
      gone_(runtime, queue_options(),
            [this](const std::string& driver) { return take_back(driver); }) {}

CsiDrivers::~CsiDrivers() { stop(); }

Result<SemanticVersion> CsiDrivers::check(const PluginInfo& info) const {
  // It becomes the name of a folder.
  if (!is_dns1123_subdomain(to_lower(info.name)).empty()) {
    return Error::invalid(cat("CSI driver name ", quoted(info.name), " is not a domain name"));
  }
  if (info.versions.empty()) {
    return Error::invalid(cat("kubernetes.io/csi: CSI driver ", quoted(info.name),
                              " failed. Plugin returned an empty list for supported versions"));
  }
  auto version = highest(info.versions);
  if (!version) {
    return Error::invalid(cat("kubernetes.io/csi: CSI driver ", quoted(info.name),
                              " failed. None of the versions specified ", list_text(info.versions),
                              " are supported"));
  }
  const MutexLock lock(mutex_);
  const auto known = drivers_.find(info.name);
  if (known != drivers_.end() && !(known->second.version < *version)) {
    return Error::already_exists(cat("kubernetes.io/csi: CSI driver ", quoted(info.name),
                                     " failed. Another driver with the same name is already "
                                     "registered with a higher supported version: ",
                                     quoted(known->second.version.str())));
  }
  return std::move(*version);
}

Result<> CsiDrivers::validate(const PluginInfo& info) {
  if (auto version = check(info); !version) {
    return version.error().within(
        cat("validation failed for CSI Driver ", info.name, " at endpoint ", info.endpoint));
  }
  return success();
}

Result<> CsiDrivers::add(const PluginInfo& info) {
  DIBS_TRY(auto version, check(info));
  const Connect connect = options_.connect ? options_.connect : [](const std::string& path) {
    return rpc::connect_unix(path);
  };
  auto driver = std::make_shared<CsiDriver>(info, options_.paths, connect);
  DIBS_TRY(const auto node, driver->node_info());
  DIBS_CHECK(install_csi_driver(client_, options_.node_name, info.name, node));
  {
    const MutexLock lock(mutex_);
    drivers_[info.name] = {std::move(driver), std::move(version)};
  }
  if (on_change) on_change(info.name);
  return success();
}

void CsiDrivers::remove(const PluginInfo& info) {
  {
    const MutexLock lock(mutex_);
    const auto known = drivers_.find(info.name);
    // Another one of this name took its place.
    if (known == drivers_.end() || known->second.driver->info().endpoint != info.endpoint) return;
    drivers_.erase(known);
  }
  gone_.add(info.name);
}

client::WorkOutcome CsiDrivers::take_back(const std::string& driver) {
  if (find(driver)) return client::WorkOutcome::done();
  const auto gone = uninstall_csi_driver(client_, options_.node_name, driver);
  if (gone || gone.error().code() == Code::not_found) return client::WorkOutcome::done();
  log::warn("a storage driver's entry stays in the CSINode",
            {{"node", options_.node_name}, {"driver", driver}, {"error", gone.error()}});
  return client::WorkOutcome::retry();
}

Result<std::shared_ptr<CsiDriver>> CsiDrivers::find(const std::string& driver) const {
  const MutexLock lock(mutex_);
  const auto known = drivers_.find(driver);
  if (known != drivers_.end()) return known->second.driver;
  return Error::unavailable(
      cat("driver name ", driver, " not found in the list of registered CSI drivers"));
}

void CsiDrivers::stop() { gone_.stop(); }

}  // namespace dibs::node
