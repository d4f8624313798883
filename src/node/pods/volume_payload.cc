#include "node/pods/volume_payload.h"

#include "base/strings.h"

namespace dibs::node {
namespace {

using json::Value;

constexpr unsigned kDefaultMode = 0644;

unsigned mode_of(const Value& item, unsigned fallback) {
  return static_cast<unsigned>(item["mode"].as_int(fallback));
}

/// The value of a key, decoded.
std::optional<std::string> value_of(PodObjectKind kind, const Value& object, std::string_view key) {
  const auto decode = [](const Value& text) {
    std::string bytes;
    if (!base64_decode(text.as_string(), bytes)) bytes.clear();
    return bytes;
  };
  const Value* found = object["data"].find(key);
  if (found != nullptr) {
    return kind == PodObjectKind::secret ? decode(*found) : found->str();
  }
  if (kind == PodObjectKind::config_map) {
    if (const Value* binary = object["binaryData"].find(key)) return decode(*binary);
  }
  return std::nullopt;
}

/// `source`: name (secretName), items, optional.
Result<> add_object(PodObjectKind kind, const Value& pod, const Value& source, unsigned mode,
                    const PayloadSources& sources, VolumeFiles& files) {
  const bool optional = source["optional"].as_bool();
  std::string name = source["name"].str();
  if (source["secretName"].is_string()) name = source["secretName"].str();
  auto object = sources.objects.get(kind, pod["metadata"]["namespace"].str(), name);
  if (!object) {
    if (object.error().code() == Code::not_found && optional) return success();
    return object.error();
  }
  if (source["items"].empty()) {
    for (const char* part : {"data", "binaryData"}) {
      for (const auto& [key, value] : (*object)[part].members()) {
        if (auto bytes = value_of(kind, *object, key)) {
          files[std::string(key)] = {std::move(*bytes), mode, {}};
        }
      }
    }
    return success();
  }
  for (const auto& item : source["items"].items()) {
    const std::string key = item["key"].str();
    auto bytes = value_of(kind, *object, key);
    if (!bytes) {
      if (optional) continue;
      return Error::invalid(kind == PodObjectKind::config_map
                                ? cat("configmap references non-existent config key: ", key)
                                : cat("references non-existent secret key: ", key));
    }
    files[item["path"].str()] = {std::move(*bytes), mode_of(item, mode), {}};
  }
  return success();
}

Result<> add_downward(const Value& pod, const Value& source, unsigned mode,
                      const PayloadSources& sources, VolumeFiles& files) {
  for (const auto& item : source["items"].items()) {
    VolumeFile file;
    file.mode = mode_of(item, mode);
    if (item["fieldRef"].is_object()) {
      DIBS_TRY(file.bytes, pod_field(pod, item["fieldRef"]["fieldPath"].as_string(), sources.facts,
                                     sources.addresses));
    } else if (const Value& ref = item["resourceFieldRef"]; ref.is_object()) {
      const Value* container = nullptr;
      for (const char* list : {"containers", "initContainers", "ephemeralContainers"}) {
        for (const auto& candidate : pod["spec"][list].items()) {
          if (candidate["name"].as_string() == ref["containerName"].as_string()) {
            container = &candidate;
          }
        }
      }
      if (container == nullptr) {
        return Error::invalid(cat("container ", ref["containerName"].as_string(), " not found"));
      }
      DIBS_TRY(file.bytes, resource_field(*container, ref["resource"].as_string(),
                                          ref["divisor"].as_string(), sources.facts));
    }
    files[item["path"].str()] = std::move(file);
  }
  return success();
}

/// Readable for whom it is meant, and nobody else.
VolumeFile private_file(const Value& pod, std::string bytes, unsigned mode) {
  VolumeFile file{std::move(bytes), mode, common_user(pod)};
  if (file.owner || pod["spec"]["securityContext"]["fsGroup"].is_integer()) file.mode = 0600;
  return file;
}

Result<> add_token(const Value& pod, const Value& source, unsigned mode,
                   const PayloadSources& sources, VolumeFiles& files) {
  auto token = sources.token ? sources.token(source)
                             : Result<std::string>(Error::internal("no tokens on this node"));
  if (!token) return token.error().within("failed to fetch token");
  files[source["path"].str()] = private_file(pod, std::move(*token), mode);
  return success();
}

/// A source of a projected volume, and where it stands.
struct Projection {
  const Value& pod;
  const std::string& volume;
  std::size_t index;
  unsigned mode;
};

Result<> add_certificate(const Projection& at, const Value& source, const PayloadSources& sources,
                         VolumeFiles& files) {
  DIBS_TRY(const PodCredential made, sources.certificate(at.volume, at.index, source));
  const auto add = [&](const char* path, std::string bytes) {
    if (source[path].as_string().empty()) return;
    files[source[path].str()] = private_file(at.pod, std::move(bytes), at.mode);
  };
  add("credentialBundlePath", made.key + made.chain);
  add("keyPath", made.key);
  add("certificateChainPath", made.chain);
  return success();
}

Result<> add_projection(const Projection& at, const Value& source, const PayloadSources& sources,
                        VolumeFiles& files) {
  const Value& pod = at.pod;
  const unsigned mode = at.mode;
  for (const auto& [kind, what] : source.members()) {
    if (!what.is_object()) continue;
    if (kind == "configMap") {
      return add_object(PodObjectKind::config_map, pod, what, mode, sources, files);
    }
    if (kind == "secret") {
      return add_object(PodObjectKind::secret, pod, what, mode, sources, files);
    }
    if (kind == "downwardAPI") return add_downward(pod, what, mode, sources, files);
    if (kind == "serviceAccountToken") return add_token(pod, what, mode, sources, files);
    if (kind == "clusterTrustBundle" && sources.trust_anchors) {
      DIBS_TRY(std::string certificates, sources.trust_anchors(what));
      files[what["path"].str()] = {std::move(certificates), mode, {}};
      return success();
    }
    if (kind == "podCertificate" && sources.certificate) {
      return add_certificate(at, what, sources, files);
    }
    return Error::invalid(cat("projected volume source ", kind, " is not supported by this node"));
  }
  return success();
}

Result<VolumeFiles> projected(const Value& pod, const Value& volume, unsigned mode,
                              const PayloadSources& sources) {
  VolumeFiles files;
  std::vector<std::string> failures;
  Code code = Code::internal;
  const std::string name = volume["name"].str();
  std::size_t index = 0;
  for (const auto& source : volume["projected"]["sources"].items()) {
    const Projection at{pod, name, index++, mode};
    if (auto added = add_projection(at, source, sources, files); !added) {
      code = added.error().code();
      failures.push_back(added.error().message());
    }
  }
  if (failures.empty()) return files;
  if (failures.size() == 1) return Error(code, failures.front());
  return Error(code, cat('[', join(failures, ", "), ']'));
}

}  // namespace

bool has_payload(const Value& volume) {
  for (const char* kind : {"configMap", "secret", "downwardAPI", "projected"}) {
    if (volume[kind].is_object()) return true;
  }
  return false;
}

Result<VolumeFiles> volume_payload(const Value& pod, const Value& volume,
                                   const PayloadSources& sources) {
  const auto mode = [](const Value& spec) {
    return static_cast<unsigned>(spec["defaultMode"].as_int(kDefaultMode));
  };
  VolumeFiles files;
  if (const Value& spec = volume["configMap"]; spec.is_object()) {
    DIBS_CHECK(add_object(PodObjectKind::config_map, pod, spec, mode(spec), sources, files));
  } else if (const Value& secret = volume["secret"]; secret.is_object()) {
    DIBS_CHECK(add_object(PodObjectKind::secret, pod, secret, mode(secret), sources, files));
  } else if (const Value& down = volume["downwardAPI"]; down.is_object()) {
    DIBS_CHECK(add_downward(pod, down, mode(down), sources, files));
  } else if (const Value& all = volume["projected"]; all.is_object()) {
    return projected(pod, volume, mode(all), sources);
  }
  return files;
}

std::optional<std::int64_t> common_user(const Value& pod) {
  const Value& spec = pod["spec"];
  std::optional<std::int64_t> user;
  for (const char* list : {"initContainers", "containers", "ephemeralContainers"}) {
    for (const auto& container : spec[list].items()) {
      const Value* own = container["securityContext"].find("runAsUser");
      const Value& mine = own != nullptr ? *own : spec["securityContext"]["runAsUser"];
      if (!mine.is_integer()) return std::nullopt;
      if (user && *user != mine.as_int()) return std::nullopt;
      user = mine.as_int();
    }
  }
  return user;
}

}  // namespace dibs::node
