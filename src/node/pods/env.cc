#include "node/pods/env.h"

#include <unordered_map>

#include "base/strings.h"
#include "node/pods/env_file.h"
#include "node/pods/env_services.h"
#include "node/pods/volume_subpath.h"

namespace dibs::node {
namespace {

using json::Value;

/// Names in the order in which they first came, with their last values.
class Variables {
 public:
  void set(const std::string& name, std::string value) {
    const auto [at, fresh] = index_.try_emplace(name, list_.size());
    if (fresh) {
      list_.emplace_back(name, std::move(value));
    } else {
      list_[at->second].second = std::move(value);
    }
  }
  const EnvList& list() const { return list_; }
  EnvList take() { return std::move(list_); }

 private:
  EnvList list_;
  std::unordered_map<std::string, std::size_t> index_;
};

/// What a process can be given: no "=", nothing that does not print.
bool is_variable_name(std::string_view name) {
  if (name.empty()) return false;
  for (const char c : name) {
    if (c < ' ' || c > '~' || c == '=') return false;
  }
  return true;
}

std::string decoded(PodObjectKind kind, const Value& value) {
  if (kind == PodObjectKind::config_map) return value.str();
  std::string bytes;
  if (!base64_decode(value.as_string(), bytes)) bytes.clear();
  return bytes;
}

std::string_view title_of(PodObjectKind kind) {
  return kind == PodObjectKind::config_map ? "ConfigMap" : "Secret";
}

Result<> add_all(PodObjectKind kind, const Value& ref, const std::string& prefix, const Value& pod,
                 const EnvSources& sources, Variables& variables) {
  auto object = sources.objects.get(kind, pod["metadata"]["namespace"].str(), ref["name"].str());
  if (!object) {
    if (object.error().code() == Code::not_found && ref["optional"].as_bool()) return success();
    return object.error();
  }
  for (const auto& [key, value] : (*object)["data"].members()) {
    const std::string name = cat(prefix, key);
    if (is_variable_name(name)) variables.set(name, decoded(kind, value));
  }
  return success();
}

/// Nothing: the reference is optional and leads nowhere.
Result<std::optional<std::string>> from_key(PodObjectKind kind, const Value& ref, const Value& pod,
                                            const EnvSources& sources) {
  const std::string name_space = pod["metadata"]["namespace"].str();
  const std::string name = ref["name"].str();
  const std::string key = ref["key"].str();
  const bool optional = ref["optional"].as_bool();
  auto object = sources.objects.get(kind, name_space, name);
  if (!object) {
    if (object.error().code() == Code::not_found && optional) return std::optional<std::string>();
    return object.error();
  }
  const Value* value = (*object)["data"].find(key);
  if (value != nullptr) return std::optional<std::string>(decoded(kind, *value));
  if (optional) return std::optional<std::string>();
  return Error::invalid(
      cat("couldn't find key ", key, " in ", title_of(kind), ' ', name_space, '/', name));
}

const Value& named_container(const Value& pod, std::string_view name, const Value& fallback) {
  if (name.empty()) return fallback;
  for (const char* list : {"containers", "initContainers"}) {
    for (const auto& container : pod["spec"][list].items()) {
      if (container["name"].as_string() == name) return container;
    }
  }
  return json::null_value();
}

/// From a file that another container wrote into an emptyDir.
Result<std::optional<std::string>> from_file(const Value& ref, const Value& pod,
                                             const NodeFacts& facts) {
  constexpr std::size_t kMaxFile = 1 << 20;
  const bool optional = ref["optional"].as_bool();
  const std::string folder =
      cat(pod_folder(facts, pod["metadata"]["uid"].str()), "/volumes/kubernetes.io~empty-dir/",
          ref["volumeName"].as_string());
  auto text = read_sub_path(folder, ref["path"].str(), kMaxFile);
  if (!text) {
    if (optional) return std::optional<std::string>();
    return text.error();
  }
  DIBS_TRY(auto value, env_file_value(*text, ref["key"].as_string()));
  if (value || optional) return value;
  return Error::invalid(cat("environment variable key ", quoted(ref["key"].as_string()),
                            " not found in file ", quoted(ref["path"].as_string())));
}

Result<std::optional<std::string>> from_source(const Value& source, const Value& pod,
                                               const Value& container, const NodeFacts& facts,
                                               const PodAddresses& addresses,
                                               const EnvSources& sources) {
  if (const Value& ref = source["configMapKeyRef"]; ref.is_object()) {
    return from_key(PodObjectKind::config_map, ref, pod, sources);
  }
  if (const Value& ref = source["secretKeyRef"]; ref.is_object()) {
    return from_key(PodObjectKind::secret, ref, pod, sources);
  }
  if (const Value& ref = source["fieldRef"]; ref.is_object()) {
    DIBS_TRY(auto text, pod_field(pod, ref["fieldPath"].as_string(), facts, addresses));
    return std::optional<std::string>(std::move(text));
  }
  if (const Value& ref = source["resourceFieldRef"]; ref.is_object()) {
    const Value& from = named_container(pod, ref["containerName"].as_string(), container);
    if (from.is_null()) {
      return Error::invalid(cat("container ", ref["containerName"].as_string(), " not found"));
    }
    DIBS_TRY(auto text,
             resource_field(from, ref["resource"].as_string(), ref["divisor"].as_string(), facts));
    return std::optional<std::string>(std::move(text));
  }
  if (const Value& ref = source["fileKeyRef"]; ref.is_object()) return from_file(ref, pod, facts);
  for (const auto& [kind, what] : source.members()) {
    return Error::invalid(cat("env values from ", kind, " are not supported by this node"));
  }
  return std::optional<std::string>(std::string());
}

}  // namespace

Result<EnvList> make_environment(const Value& pod, const Value& container, const NodeFacts& facts,
                                 const PodAddresses& addresses, const EnvSources& sources) {
  Variables variables;
  const Value* links = pod["spec"].find("enableServiceLinks");
  if (sources.services) {
    for (auto& [name, value] :
         service_variables(sources.services(), pod["metadata"]["namespace"].as_string(),
                           links == nullptr || links->as_bool(true))) {
      variables.set(name, std::move(value));
    }
  }
  for (const auto& from : container["envFrom"].items()) {
    const std::string prefix = from["prefix"].str();
    if (const Value& ref = from["configMapRef"]; ref.is_object()) {
      DIBS_CHECK(add_all(PodObjectKind::config_map, ref, prefix, pod, sources, variables));
    } else if (const Value& secret = from["secretRef"]; secret.is_object()) {
      DIBS_CHECK(add_all(PodObjectKind::secret, secret, prefix, pod, sources, variables));
    }
  }
  for (const auto& entry : container["env"].items()) {
    const std::string name = entry["name"].str();
    if (!entry["valueFrom"].is_object()) {
      variables.set(name, expand_references(entry["value"].as_string(), variables.list()));
      continue;
    }
    DIBS_TRY(auto value,
             from_source(entry["valueFrom"], pod, container, facts, addresses, sources));
    if (value) variables.set(name, std::move(*value));
  }
  return variables.take();
}

std::string expand_references(std::string_view text, const EnvList& env, std::string* missing) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$' || i + 1 == text.size()) {
      out.push_back(text[i]);
      continue;
    }
    if (text[i + 1] == '$') {
      out.push_back('$');
      ++i;
      continue;
    }
    const auto end = text[i + 1] == '(' ? text.find(')', i + 2) : std::string_view::npos;
    if (end == std::string_view::npos) {
      out.push_back('$');
      continue;
    }
    const auto name = text.substr(i + 2, end - i - 2);
    const std::string* value = nullptr;
    for (const auto& [known, what] : env) {
      if (known == name) value = &what;
    }
    if (value != nullptr) {
      out.append(*value);
    } else {
      append(out, "$(", name, ')');
      if (missing != nullptr && missing->empty()) *missing = name;
    }
    i = end;
  }
  return out;
}

}  // namespace dibs::node
