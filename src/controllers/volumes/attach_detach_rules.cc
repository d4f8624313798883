#include <algorithm>

#include "base/sha256.h"
#include "base/strings.h"
#include "client/client.h"
#include "controllers/volumes/attach_detach.h"

namespace dibs::controllers {

using json::Value;

std::string attachment_name(const Value& volume, std::string_view node) {
  const Value& source = volume["spec"]["csi"];
  return cat("csi-", sha256_hex(cat(source["volumeHandle"].as_string(),
                                    source["driver"].as_string(), node)));
}

std::string attached_volume_name(const Value& volume) {
  const Value& source = volume["spec"]["csi"];
  if (!source.is_object()) return {};
  return cat("kubernetes.io/csi/", source["driver"].as_string(), '^',
             source["volumeHandle"].as_string());
}

bool holds_volumes(const Value& pod) {
  if (pod["spec"]["nodeName"].as_string().empty()) return false;
  const Value& status = pod["status"];
  const auto phase = status["phase"].as_string();
  if (phase == "Failed" || phase == "Succeeded") return false;
  if (pod["metadata"]["deletionTimestamp"].is_null()) return true;
  const auto containers = status["containerStatuses"].items();
  return std::any_of(containers.begin(), containers.end(), [](const Value& container) {
    return container["state"]["terminated"].is_null() && container["state"]["waiting"].is_null();
  });
}

bool is_for_several_nodes(const Value& volume) {
  const auto modes = volume["spec"]["accessModes"].items();
  return std::any_of(modes.begin(), modes.end(), [](const Value& mode) {
    return mode.as_string() == "ReadWriteMany" || mode.as_string() == "ReadOnlyMany";
  });
}

Value attachment_of(const Value& volume, std::string_view node) {
  return Value::object(
      {{"apiVersion", "storage.k8s.io/v1"},
       {"kind", "VolumeAttachment"},
       {"metadata", Value::object({{"name", attachment_name(volume, node)}})},
       {"spec", Value::object({{"attacher", volume["spec"]["csi"]["driver"]},
                               {"nodeName", std::string(node)},
                               {"source", Value::object({{"persistentVolumeName",
                                                          volume["metadata"]["name"]}})}})}});
}

}  // namespace dibs::controllers
