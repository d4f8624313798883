#pragma once
// Claims of groups of pods: which claims of a pod are those of its PodGroup, and who holds them.
//
// An entry of a pod is the group's when the group has one of the same name that names the same
// claim or template. Such a claim is made once, for the group; the group is its owner and its user.

#include <string>
#include <string_view>

#include "client/client.h"
#include "controllers/pod_claims.h"
#include "json/value.h"

namespace dibs::controllers {

/// The name of the pod's PodGroup; "" for most pods.
std::string_view group_of_pod(const json::Value& pod);
/// "namespace/name" of it; "" where there is none.
std::string group_key_of(const json::Value& pod);
/// The group's own entry for what the pod asks for; null where it has none.
const json::Value& group_entry(const json::Value& group, const PodClaim& entry);
/// The claim that the group's status, or its entry, names; "" while there is none.
std::string group_claim_name(const json::Value& group, const json::Value& entry);
bool is_group(const json::Value& object);
/// An entry of status.reservedFor for a pod or a group.
json::Value consumer_of(const json::Value& user);
/// The entry names a PodGroup.
bool is_group_consumer(const json::Value& consumer);

}  // namespace dibs::controllers
