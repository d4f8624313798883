#include "node/streams/pod_lookup.h"

#include <set>

#include "base/strings.h"

namespace dibs::node {
namespace {

const json::Value* status_of(const json::Value& pod, std::string_view container) {
  for (std::string_view list :
       {"containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"}) {
    for (const json::Value& status : pod["status"][list].items()) {
      if (status["name"].as_string() == container) return &status;
    }
  }
  return nullptr;
}

/// "runtime://id": id
std::string bare_id(std::string_view id) {
  const auto mark = id.find("://");
  return std::string(mark == std::string_view::npos ? id : id.substr(mark + 3));
}

}  // namespace

bool has_container(const json::Value& pod, std::string_view name) {
  for (std::string_view list : {"containers", "initContainers", "ephemeralContainers"}) {
    for (const json::Value& container : pod["spec"][list].items()) {
      if (container["name"].as_string() == name) return true;
    }
  }
  return false;
}

Result<std::string> container_with_log(const json::Value& pod, std::string_view container,
                                       bool previous) {
  const std::string who =
      cat("container ", quoted(container), " in pod ", quoted(pod["metadata"]["name"].as_string()));
  const json::Value* status = status_of(pod, container);
  if (status == nullptr) return Error::bad_request(cat(who, " is not available"));
  const json::Value& state = (*status)["state"];
  const json::Value& last = (*status)["lastState"]["terminated"];
  const std::string last_id = bare_id(last["containerID"].as_string());
  if (previous) {
    if (last_id.empty()) return Error::bad_request(cat("previous terminated ", who, " not found"));
    return last_id;
  }
  if (state.contains("running")) return bare_id((*status)["containerID"].as_string());
  if (state.contains("terminated")) {
    if (auto id = bare_id(state["terminated"]["containerID"].as_string()); !id.empty()) return id;
    // The next container never started: the one before it is of interest.
    if (!last_id.empty()) return last_id;
    return Error::bad_request(cat(who, " is terminated"));
  }
  if (!last.is_null()) {
    if (last_id.empty()) return Error::bad_request(cat(who, " is terminated"));
    return last_id;
  }
  if (state.contains("waiting")) {
    const std::string_view reason = state["waiting"]["reason"].as_string();
    std::string why(reason);
    if (reason == "ErrImagePull") why = "image can't be pulled";
    if (reason == "ImagePullBackOff") why = "trying and failing to pull image";
    return Error::bad_request(cat(who, " is waiting to start: ", why));
  }
  return Error::bad_request(cat(who, " is waiting to start - no logs yet"));
}

Result<std::optional<ContainerStatus>> running_container(ContainerRuntime& containers,
                                                         const json::Value& pod,
                                                         std::string_view container) {
  const std::string_view uid = pod["metadata"]["uid"].as_string();
  DIBS_TRY(const auto sandboxes, containers.list_sandboxes());
  std::set<std::string> own;
  for (const SandboxStatus& sandbox : sandboxes) {
    if (sandbox.uid == uid) own.insert(sandbox.id);
  }
  DIBS_TRY(const auto all, containers.list_containers());
  std::optional<ContainerStatus> out;
  for (const ContainerStatus& one : all) {
    if (one.name != container || !own.contains(one.sandbox_id)) continue;
    if (one.state != ContainerState::running) continue;
    if (!out || one.attempt > out->attempt) out = one;
  }
  return out;
}

Result<std::optional<SandboxStatus>> ready_sandbox(ContainerRuntime& containers,
                                                   const json::Value& pod) {
  const std::string_view uid = pod["metadata"]["uid"].as_string();
  DIBS_TRY(const auto sandboxes, containers.list_sandboxes());
  std::optional<SandboxStatus> out;
  for (const SandboxStatus& sandbox : sandboxes) {
    if (sandbox.uid != uid || sandbox.state != SandboxState::ready) continue;
    if (!out || sandbox.attempt > out->attempt) out = sandbox;
  }
  return out;
}

}  // namespace dibs::node
