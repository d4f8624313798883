#pragma once
// Reading a pod's spec: its containers in the order in which they start, and what becomes of one
// that ends.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "client/client.h"
#include "json/value.h"

namespace dibs::node {

/// A sidecar is an init container that stays: restartPolicy Always.
enum class ContainerKind : std::uint8_t { init, sidecar, regular, ephemeral };

struct SpecContainer {
  ContainerKind kind = ContainerKind::regular;
  json::Value spec = {};

  std::string_view name() const { return spec["name"].as_string(); }
};

/// Init containers and sidecars in their order, then regular, then ephemeral ones.
std::vector<SpecContainer> containers_of(const json::Value& pod);
/// Where the container of that name stands, as events name it: spec.containers{c}.
std::string field_path(const json::Value& pod, std::string_view container);

using client::name_of;
using client::namespace_of;
using client::uid_of;
bool is_deleting(const json::Value& pod);
/// Phase Succeeded or Failed.
bool is_terminal(const json::Value& pod);

/// Whether a container that ended with this code is started again, by its own policy and rules or
/// by the pod's.
bool restarts_after(const json::Value& pod, const SpecContainer& container, int exit_code);

/// How long its containers have to end: of the deletion, else of the spec.
Duration grace_period(const json::Value& pod);

/// status.conditions of that type, or null.
const json::Value& find_condition(const json::Value& status, std::string_view type);

/// RFC 3339 in the API, or the fallback when absent or wrong.
Time time_of(const json::Value& text, Time fallback = {});

}  // namespace dibs::node
