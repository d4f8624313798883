#pragma once
// What the provisioner of folders on nodes makes: a volume for a claim, and the pod that removes
// the folder of a volume that is gone.
//
// The folder's path follows from the volume's name alone and is checked against what the volume
// says, so nobody has another folder of a node removed by writing a path into a volume.
//
// Pure functions.

#include <string>

#include "base/result.h"
#include "json/value.h"

namespace dibs::controllers {

/// Of a volume: its folder is still to be removed.
inline constexpr std::string_view kFolderFinalizer = "dibs.io/local-path";
/// Of the pod that removes a folder: the volume.
inline constexpr const char* kFolderLabel = "dibs.io/local-path-volume";
inline constexpr const char* kFolderNamespace = "kube-system";

/// "pvc-" and the uid, as all provisioners have it.
std::string volume_name_for(const json::Value& claim);
/// Errors say what a folder on a node cannot be.
Result<json::Value> folder_volume(const json::Value& claim, const json::Value& storage_class,
                                  const json::Value& node);
/// Made by this provisioner, and to be removed together with its folder.
bool is_folder_to_remove(const json::Value& volume);
/// The value of the label kubernetes.io/hostname of the volume's node. Errors: it is no volume of
/// this provisioner.
Result<std::string> host_of_folder(const json::Value& volume);

std::string removal_pod_name(const json::Value& volume);
json::Value removal_pod(const json::Value& volume, std::string_view node);

}  // namespace dibs::controllers
