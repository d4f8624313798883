// Bootstrap tokens: Secrets of kube-system by which machines join. They go when their time is up,
// and those that may sign do so: the ConfigMap cluster-info of kube-public has a signature of each,
// so that a machine which knows a token and nothing else can believe where the cluster is.
#include <map>

#include "base/strings.h"
#include "controllers/controllers.h"
#include "net/jwt.h"

namespace dibs::controllers {
namespace {

const Gvr kSecrets = {"", "v1", "secrets"};
const Gvr kConfigMaps = {"", "v1", "configmaps"};
constexpr const char* kNamespace = "kube-system";
constexpr std::string_view kType = "bootstrap.kubernetes.io/token";
constexpr std::string_view kNamePrefix = "bootstrap-token-";
constexpr const char* kInfo = "kube-public/cluster-info";
constexpr std::string_view kContent = "kubeconfig";
constexpr std::string_view kSignature = "jws-kubeconfig-";

bool is_token(const Value& secret) {
  return secret["type"].as_string() == kType && namespace_of(secret) == kNamespace;
}

std::string data_of(const Value& secret, std::string_view key) {
  std::string bytes;
  if (!base64_decode(secret["data"][key].as_string(), bytes)) bytes.clear();
  return bytes;
}

/// How long it is still good; nothing for one without an end. A time that cannot be read is over.
std::optional<Duration> time_left(const Value& secret, Time now) {
  const std::string text = data_of(secret, "expiration");
  if (text.empty()) return std::nullopt;
  const auto end = parse_rfc3339(text);
  return end.ok() && *end > now ? *end - now : Duration(0);
}

class BootstrapTokenCleaner : public Controller {
 public:
  explicit BootstrapTokenCleaner(Environment& environment)
      : environment_(environment),
        secrets_(environment.informers.of(kSecrets)),
        loop_(environment, "bootstrap-tokens",
              [this](const std::string& key) { return reconcile(key); }) {
    loop_.follow(secrets_, [this](const Value& secret) {
      if (is_token(secret)) loop_.add(client::key_of(secret));
    });
  }

  void stop() override { loop_.stop(); }

 private:
  Result<WorkOutcome> reconcile(const std::string& key) {
    const auto secret = secrets_.get(key);
    if (!secret || !is_token(*secret)) return done();
    const auto left = time_left(*secret, environment_.runtime.clock.now());
    if (!left) return done();
    if (*left > Duration(0)) return WorkOutcome::again_after(*left);
    auto removed = environment_.client.remove(kSecrets, kNamespace, name_of(*secret),
                                              {.uid = std::string(uid_of(*secret))});
    if (removed.ok() || is_gone(removed.error()) || removed.error().code() == Code::conflict)
      return done();
    return std::move(removed).error();
  }

  Environment& environment_;
  client::Informer& secrets_;
  Reconciler loop_;
};

class BootstrapSigner : public Controller {
 public:
  explicit BootstrapSigner(Environment& environment)
      : environment_(environment),
        secrets_(environment.informers.of(kSecrets, kByNamespace, client::index_by_namespace)),
        config_maps_(environment.informers.of(kConfigMaps)),
        loop_(
            environment, "bootstrap-signer", [this](const std::string&) { return sign(); }, 1) {
    loop_.follow(secrets_, [this](const Value& secret) {
      if (is_token(secret)) loop_.add(kInfo);
    });
    loop_.follow(config_maps_, [this](const Value& map) {
      if (client::key_of(map) == kInfo) loop_.add(kInfo);
    });
  }

  void stop() override { loop_.stop(); }

 private:
  /// Secrets of tokens that sign, by id.
  std::map<std::string, std::string> signing() const {
    std::map<std::string, std::string> out;
    const Time now = environment_.runtime.clock.now();
    for (const Value& secret : secrets_.by_index(kByNamespace, kNamespace)) {
      if (!is_token(secret) || is_deleting(secret)) continue;
      const std::string id = data_of(secret, "token-id");
      const std::string key = data_of(secret, "token-secret");
      const auto left = time_left(secret, now);
      if (id.empty() || key.empty() || name_of(secret) != cat(kNamePrefix, id) ||
          (left && *left == Duration(0)) || data_of(secret, "usage-bootstrap-signing") != "true")
        continue;
      out[id] = key;
    }
    return out;
  }

  Result<WorkOutcome> sign() {
    const auto map = config_maps_.get(kInfo);
    if (!map || !(*map)["data"].contains(kContent)) return done();
    Value data = Value::object();
    for (const auto& [key, value] : (*map)["data"].members())
      if (!key.starts_with(kSignature)) data.set(key, value);
    const std::string_view content = (*map)["data"][kContent].as_string();
    for (const auto& [id, secret] : signing())
      data.set(cat(kSignature, id), net::detached_signature(content, id, secret));
    if (data == (*map)["data"]) return done();
    Value changed = *map;
    changed.set("data", data);
    auto written = environment_.client.update(kConfigMaps, namespace_of(*map), changed);
    if (written.ok() || is_gone(written.error()) || written.error().code() == Code::conflict)
      return done();
    return std::move(written).error();
  }

  Environment& environment_;
  client::Informer& secrets_;
  client::Informer& config_maps_;
  Reconciler loop_;
};

}  // namespace

ControllerPtr make_bootstrap_token_cleaner(Environment& environment) {
  return std::make_unique<BootstrapTokenCleaner>(environment);
}

ControllerPtr make_bootstrap_signer(Environment& environment) {
  return std::make_unique<BootstrapSigner>(environment);
}

}  // namespace dibs::controllers
