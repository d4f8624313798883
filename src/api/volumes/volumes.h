#pragma once
// Volumes, the claims on them and their classes: names that the API gives to annotations, and what
// one of these objects says about another.

#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"

namespace dibs::api {

using json::Value;

/// Of a claim: the binding was finished once, so a volume that is missing now is lost.
inline constexpr std::string_view kBindCompleted = "pv.kubernetes.io/bind-completed";
/// Of either: the binding is the binder's choice, not that of a user, and may be undone.
inline constexpr std::string_view kBoundByController = "pv.kubernetes.io/bound-by-controller";
/// Of a volume: the provisioner that made it, and that removes it.
inline constexpr std::string_view kProvisionedBy = "pv.kubernetes.io/provisioned-by";
inline constexpr std::string_view kMigratedTo = "pv.kubernetes.io/migrated-to";
/// Of a claim: the node that the scheduler wants its volume for.
inline constexpr std::string_view kSelectedNode = "volume.kubernetes.io/selected-node";
/// Of a claim: who is asked to provision.
inline constexpr std::string_view kStorageProvisioner = "volume.kubernetes.io/storage-provisioner";
inline constexpr std::string_view kBetaStorageProvisioner =
    "volume.beta.kubernetes.io/storage-provisioner";
/// Of a volume that is being enlarged: the size that its claim has until that is done.
inline constexpr std::string_view kSizeBeforeResize =
    "volume.alpha.kubernetes.io/pre-resize-capacity";
/// What a StorageClass has for a provisioner when nobody provisions.
inline constexpr std::string_view kNoProvisioner = "kubernetes.io/no-provisioner";

/// The provisioner of folders on nodes that comes with this program, and where they lie. A node
/// makes such a folder when it is first mounted, for everybody to write to.
inline constexpr std::string_view kLocalPathProvisioner = "dibs.io/local-path";
inline constexpr std::string_view kLocalPathFolder = "/var/lib/kubelet/local-path";

const Value& annotation_of(const Value& object, std::string_view name);
bool has_annotation(const Value& object, std::string_view name);

/// "" also where none is named; see claim_names_class().
std::string_view class_of_claim(const Value& claim);
std::string_view class_of_volume(const Value& volume);
/// Even "" counts: it asks for a volume without a class.
bool claim_names_class(const Value& claim);
bool is_default_class(const Value& storage_class);
/// Of those marked as default the youngest, of several of one age the first by name; or null.
Value default_class(const std::vector<Value>& classes);
/// Claims of the class are bound when a pod needs them.
bool waits_for_consumer(const Value& storage_class);

/// The volume is bound to the claim, or reserved for it by a user who did not know its uid.
bool is_bound_to(const Value& volume, const Value& claim);
/// Claim and volume name each other, and the binder said so.
bool is_binding_complete(const Value& claim);
/// "namespace/name" of spec.claimRef; "" where there is none.
std::string claim_key_of(const Value& volume);

/// A volume of a pod that is a claim.
struct PodVolume {
  std::string volume;  // its name in the pod
  std::string claim;
  bool ephemeral = false;  // the claim is made for the pod, and is the pod's own
  bool read_only = false;
};
std::vector<PodVolume> pod_volumes(const Value& pod);
/// The pod controls the claim: no other may use it as its ephemeral volume.
bool is_claim_of_pod(const Value& claim, const Value& pod);

}  // namespace dibs::api
