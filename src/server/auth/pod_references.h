#pragma once
// Which other objects a pod names.

#include <functional>
#include <string>
#include <string_view>

#include "json/value.h"

namespace dibs::server::auth {

/// Of what the pod names: "secrets", "configmaps", "serviceaccounts", "persistentvolumeclaims",
/// "resourceclaims"; all in the pod's namespace. A name may come several times.
using VisitReference = std::function<void(std::string_view resource, std::string_view name)>;
void visit_references(const json::Value& pod, const VisitReference& visitor);

/// In the words of a message, the first kind of object that a pod depends on, "" for none: a pod
/// that a node makes by itself may have none.
std::string first_reference(const json::Value& pod);

/// The mark of a pod that a node runs by itself and only shows to the API.
bool is_mirror_pod(const json::Value& pod);

}  // namespace dibs::server::auth
