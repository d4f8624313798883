#include "client/kubeconfig.h"

#include "base/strings.h"
#include "json/yaml.h"

namespace dibs::client {
namespace {

constexpr const char* kServiceAccount = "/var/run/secrets/kubernetes.io/serviceaccount/";

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return "";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string absolute(const std::string& folder, std::string_view path) {
  if (path.empty() || path.front() == '/' || folder.empty()) return std::string(path);
  return folder == "/" ? cat('/', path) : cat(folder, '/', path);
}

/// The value of `key`-data (base64), else the contents of the file named by `key`, else "".
Result<std::string> data_or_file(runtime::Files& files, const json::Value& body,
                                 const std::string& folder, const std::string& key,
                                 std::string_view owner) {
  if (const auto data = body[key + "-data"].as_string(); !data.empty()) {
    std::string bytes;
    if (!base64_decode(data, bytes)) {
      return Error::invalid(
          cat("invalid configuration: ", key, "-data of ", owner, " is not base64"));
    }
    return bytes;
  }
  const auto path = body[key].as_string();
  if (path.empty()) return std::string();
  const std::string full = absolute(folder, path);
  auto bytes = files.read(full);
  if (!bytes) {
    return Error::invalid(cat("invalid configuration: unable to read ", key, " ", full, " for ",
                              owner, ": ", bytes.error().message()));
  }
  return bytes;
}

}  // namespace

Kubeconfig::Kubeconfig()
    : document_(json::Value::object(
          {{"apiVersion", "v1"}, {"kind", "Config"}, {"preferences", json::Value::object()}})) {}

Result<Kubeconfig> Kubeconfig::parse(std::string_view text, const std::string& folder) {
  Kubeconfig out;
  DIBS_TRY(auto document, json::parse_yaml(text));
  if (document.is_null()) return out;
  if (!document.is_object()) return Error::invalid("a kubeconfig must be a mapping");
  if (const auto kind = document["kind"].as_string("Config"); kind != "Config" && !kind.empty()) {
    return Error::invalid(cat("kind must be Config, not ", quoted(kind)));
  }
  const auto take = [&](const char* list, const char* member,
                        std::vector<Entry>& entries) -> Result<> {
    const json::Value& items = document[list];
    if (!items.is_null() && !items.is_array()) {
      return Error::invalid(cat(list, ": must be a list"));
    }
    for (const auto& item : items.items()) {
      const auto name = item["name"].as_string();
      if (find(entries, name) != nullptr) continue;
      entries.push_back({std::string(name), item[member], folder});
    }
    return success();
  };
  DIBS_CHECK(take("clusters", "cluster", out.clusters_));
  DIBS_CHECK(take("users", "user", out.users_));
  DIBS_CHECK(take("contexts", "context", out.contexts_));
  for (const auto* list : {"clusters", "users", "contexts"}) document.erase(list);
  out.document_ = std::move(document);
  return out;
}

Result<Kubeconfig> Kubeconfig::load(runtime::Files& files, const std::vector<std::string>& paths) {
  Kubeconfig out;
  for (const auto& path : paths) {
    auto text = files.read(path);
    if (!text) {
      if (text.error().code() == Code::not_found && paths.size() > 1) continue;
      return text.error().within(cat("error loading config file ", quoted(path)));
    }
    auto parsed = parse(*text, folder_of(path));
    if (!parsed) return parsed.error().within(cat("error loading config file ", quoted(path)));
    out.merge(*parsed);
  }
  return out;
}

std::vector<std::string> Kubeconfig::paths(std::string_view explicit_path,
                                           std::string_view variable, std::string_view home) {
  if (!explicit_path.empty()) return {std::string(explicit_path)};
  std::vector<std::string> out;
  if (!variable.empty()) {
    for (const auto path : split(variable, ':')) {
      if (!path.empty()) out.emplace_back(path);
    }
    return out;
  }
  out.push_back(cat(home, "/.kube/config"));
  return out;
}

void Kubeconfig::merge(const Kubeconfig& other) {
  const auto add = [](std::vector<Entry>& to, const std::vector<Entry>& from) {
    for (const auto& entry : from) {
      if (find(to, entry.name) == nullptr) to.push_back(entry);
    }
  };
  add(clusters_, other.clusters_);
  add(users_, other.users_);
  add(contexts_, other.contexts_);
  for (const auto& member : other.document_.members()) {
    const json::Value* mine = document_.find(member.key());
    if (mine == nullptr || (mine->is_string() && mine->as_string().empty())) {
      document_.set(member.key(), member.value());
    }
  }
}

const Kubeconfig::Entry* Kubeconfig::find(const std::vector<Entry>& entries,
                                          std::string_view name) {
  for (const auto& entry : entries) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

std::string Kubeconfig::current_context() const { return document_["current-context"].str(); }

Result<Access> Kubeconfig::resolve(runtime::Files& files, std::string_view context_name) const {
  const std::string current = current_context();
  if (context_name.empty()) context_name = current;
  if (context_name.empty()) {
    return Error::not_found("no context is chosen: current-context is not set");
  }
  const Entry* context = find(contexts_, context_name);
  if (context == nullptr) {
    return Error::not_found(cat("context ", quoted(context_name), " does not exist"));
  }
  const auto cluster_name = context->body["cluster"].as_string();
  const Entry* cluster = find(clusters_, cluster_name);
  if (cluster == nullptr) {
    return Error::not_found(cat("cluster ", quoted(cluster_name), " of context ",
                                quoted(context_name), " does not exist"));
  }

  Access out;
  out.server = cluster->body["server"].as_string();
  if (out.server.empty()) {
    return Error::invalid(
        cat("invalid configuration: no server found for cluster ", quoted(cluster_name)));
  }
  if (out.server.find("://") == std::string::npos) out.server = cat("http://", out.server);
  if (!cluster->body["proxy-url"].as_string().empty()) {
    return Error::invalid(cat("cluster ", quoted(cluster_name), ": proxy-url is not supported"));
  }
  const std::string cluster_owner = cat("cluster ", quoted(cluster_name));
  out.tls.insecure = cluster->body["insecure-skip-tls-verify"].as_bool();
  out.tls.server_name = cluster->body["tls-server-name"].as_string();
  DIBS_TRY(out.tls.ca_pem, data_or_file(files, cluster->body, cluster->folder,
                                        "certificate-authority", cluster_owner));
  if (out.tls.insecure && !out.tls.ca_pem.empty()) {
    return Error::invalid(
        "specifying a root certificates file with the insecure flag is not allowed");
  }
  if (const auto name = context->body["namespace"].as_string(); !name.empty()) {
    out.default_namespace = name;
  }

  const auto user_name = context->body["user"].as_string();
  if (user_name.empty()) return out;
  const Entry* user = find(users_, user_name);
  if (user == nullptr) {
    return Error::not_found(
        cat("user ", quoted(user_name), " of context ", quoted(context_name), " does not exist"));
  }
  const json::Value& body = user->body;
  const std::string user_owner = cat("user ", quoted(user_name));
  DIBS_TRY(out.tls.certificate_pem,
           data_or_file(files, body, user->folder, "client-certificate", user_owner));
  DIBS_TRY(out.tls.key_pem, data_or_file(files, body, user->folder, "client-key", user_owner));
  if (out.tls.certificate_pem.empty() != out.tls.key_pem.empty()) {
    return Error::invalid(cat("invalid configuration: ", user_owner,
                              " needs both client-certificate and client-key"));
  }
  out.token = body["token"].as_string();
  if (const auto file = body["tokenFile"].as_string(); !file.empty()) {
    out.token_file = absolute(user->folder, file);
  }
  out.username = body["username"].as_string();
  out.password = body["password"].as_string();
  out.impersonate_user = body["as"].as_string();
  out.impersonate_uid = body["as-uid"].as_string();
  for (const auto& group : body["as-groups"].items()) out.impersonate_groups.push_back(group.str());
  if (body.contains("exec") || body.contains("auth-provider")) {
    return Error::invalid(
        cat(user_owner, ": credential plugins (exec, auth-provider) are not supported"));
  }
  return out;
}

Result<Access> in_cluster_access(runtime::Files& files, std::string_view host,
                                 std::string_view port) {
  if (host.empty() || port.empty()) {
    return Error::not_found(
        "unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and "
        "KUBERNETES_SERVICE_PORT must be defined");
  }
  Access out;
  out.server = host.find(':') == std::string_view::npos ? cat("https://", host, ':', port)
                                                        : cat("https://[", host, "]:", port);
  out.token_file = cat(kServiceAccount, "token");
  DIBS_TRY(out.token, files.read(out.token_file));
  DIBS_TRY(out.tls.ca_pem, files.read(cat(kServiceAccount, "ca.crt")));
  if (auto name = files.read(cat(kServiceAccount, "namespace")); name.ok()) {
    out.default_namespace = trim(*name);
  }
  return out;
}

Result<Access> find_access(runtime::Files& files, const std::string& kubeconfig,
                           const std::string& context,
                           const std::function<std::string(const char*)>& variable) {
  const std::string listed = variable("KUBECONFIG");
  const auto paths = Kubeconfig::paths(kubeconfig, listed, variable("HOME"));
  const bool named = !kubeconfig.empty() || !listed.empty();
  if (!named && !files.exists(paths.front())) {
    auto inside = in_cluster_access(files, variable("KUBERNETES_SERVICE_HOST"),
                                    variable("KUBERNETES_SERVICE_PORT"));
    if (inside) return inside;
  }
  auto config = Kubeconfig::load(files, paths);
  if (!config) return kubeconfig.empty() ? config.error() : config.error().within("--kubeconfig");
  return config->resolve(files, context);
}

}  // namespace dibs::client
