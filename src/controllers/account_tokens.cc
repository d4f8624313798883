// Secrets of type kubernetes.io/service-account-token: the token of the account that they name is
// put into them, and they go with it.
#include <optional>

#include "base/strings.h"
#include "controllers/controllers.h"
#include "controllers/workload_objects.h"
#include "net/jwt.h"

namespace dibs::controllers {
namespace {

const Gvr kSecrets = {"", "v1", "secrets"};
const Gvr kAccounts = {"", "v1", "serviceaccounts"};
constexpr std::string_view kType = "kubernetes.io/service-account-token";
constexpr std::string_view kAccountName = "kubernetes.io/service-account.name";
constexpr std::string_view kAccountUid = "kubernetes.io/service-account.uid";
constexpr const char* kByAccount = "token-of-account";
constexpr char kReference = '-';  // begins the key of a reference that has to go

bool holds_token(const Value& secret) { return secret["type"].as_string() == kType; }

std::string account_key(const Value& secret) {
  return client::key_of(namespace_of(secret), annotation_of(secret, kAccountName));
}

/// What such a token says. It has no end: it is good as long as the Secret holds it.
Value claims_for(const Value& account, const Value& secret) {
  const std::string_view name_space = namespace_of(account);
  Value claims =
      Value::object({{"iss", "kubernetes/serviceaccount"},
                     {"sub", cat("system:serviceaccount:", name_space, ":", name_of(account))}});
  const auto set = [&](std::string_view name, std::string_view value) {
    claims.set(cat("kubernetes.io/serviceaccount/", name), value);
  };
  set("namespace", name_space);
  set("secret.name", name_of(secret));
  set("service-account.name", name_of(account));
  set("service-account.uid", uid_of(account));
  return claims;
}

class AccountTokens : public Controller {
 public:
  AccountTokens(Environment& environment, net::JwtSigner signer)
      : environment_(environment),
        signer_(std::move(signer)),
        secrets_(environment.informers.of(kSecrets, kByAccount,
                                          [](const Value& secret) -> std::vector<std::string> {
                                            if (!holds_token(secret)) return {};
                                            return {account_key(secret)};
                                          })),
        accounts_(environment.informers.of(kAccounts)),
        loop_(environment, "account-tokens",
              [this](const std::string& key) { return reconcile(key); }) {
    secrets_.add_handler({.added = [this](const Value& secret, bool) { seen(secret); },
                          .updated = [this](const Value&, const Value& secret) { seen(secret); },
                          .removed =
                              [this](const Value& secret) {
                                if (holds_token(secret))
                                  loop_.add(
                                      cat(kReference, account_key(secret), "/", name_of(secret)));
                              }});
    loop_.follow(accounts_, [this](const Value& account) {
      for (const Value& secret : secrets_.by_index(kByAccount, client::key_of(account)))
        loop_.add(client::key_of(secret));
    });
  }

  void stop() override { loop_.stop(); }

 private:
  void seen(const Value& secret) {
    if (holds_token(secret)) loop_.add(client::key_of(secret));
  }

  Result<WorkOutcome> reconcile(const std::string& key) {
    if (key.front() == kReference) return drop_reference(key.substr(1));
    const auto secret = secrets_.get(key);
    if (!secret || !holds_token(*secret) || is_deleting(*secret)) return done();
    DIBS_TRY(const std::optional<Value> account, account_of(*secret));
    if (!account) {
      auto removed = environment_.client.remove(kSecrets, namespace_of(*secret), name_of(*secret),
                                                {.uid = std::string(uid_of(*secret))});
      return settled(removed);
    }
    return fill(*secret, *account);
  }

  /// Nothing where there is none, or another by now.
  Result<std::optional<Value>> account_of(const Value& secret) {
    const std::string_view uid = annotation_of(secret, kAccountUid);
    const auto is_meant = [&](const Value& account) {
      return uid.empty() || uid_of(account) == uid;
    };
    const auto known = accounts_.get(account_key(secret));
    if (known && is_meant(*known)) return known;
    // The Secret may have been seen before its account.
    auto live = environment_.client.get(kAccounts, namespace_of(secret),
                                        annotation_of(secret, kAccountName));
    if (live.ok() && is_meant(*live)) return std::optional<Value>(std::move(*live));
    if (live.ok() || is_gone(live.error())) return std::optional<Value>();
    return std::move(live).error();
  }

  Result<WorkOutcome> fill(const Value& secret, const Value& account) {
    Value changed = secret;
    const Value& data = secret["data"];
    const std::string ca = base64_encode(environment_.options.ca_pem);
    bool due = false;
    const auto set = [&](std::string_view key, const std::string& value) {
      changed.mut("data").set(key, value);
      due = true;
    };
    if (!ca.empty() && data["ca.crt"].as_string() != ca) set("ca.crt", ca);
    if (data["namespace"].as_string().empty())
      set("namespace", base64_encode(namespace_of(secret)));
    if (data["token"].as_string().empty()) {
      DIBS_TRY(const std::string token, signer_.sign(claims_for(account, secret)));
      set("token", base64_encode(token));
    }
    if (!due) return done();
    Value& annotations = changed.mut("metadata").mut("annotations");
    annotations.set(kAccountName, name_of(account));
    annotations.set(kAccountUid, uid_of(account));
    return settled(environment_.client.update(kSecrets, namespace_of(secret), changed));
  }

  /// "namespace/account/secret": the account names a Secret that is gone.
  Result<WorkOutcome> drop_reference(const std::string& key) {
    const auto slash = key.rfind('/');
    const std::string name = key.substr(slash + 1);
    const auto account = accounts_.get(key.substr(0, slash));
    if (!account) return done();
    Value kept = Value::array();
    for (const Value& reference : (*account)["secrets"].items())
      if (reference["name"].as_string() != name) kept.push(reference);
    if (kept.size() == (*account)["secrets"].size()) return done();
    if (secrets_.get(client::key_of(namespace_of(*account), name))) return done();
    Value changed = *account;
    changed.set("secrets", kept);
    auto written = environment_.client.update(kAccounts, namespace_of(*account), changed);
    if (written.ok() || is_gone(written.error())) return done();
    return std::move(written).error();
  }

  /// Who was faster starts this again.
  static Result<WorkOutcome> settled(const Result<Value>& written) {
    if (written.ok() || is_gone(written.error()) || written.error().code() == Code::conflict)
      return done();
    return written.error();
  }

  Environment& environment_;
  const net::JwtSigner signer_;
  client::Informer& secrets_;
  client::Informer& accounts_;
  Reconciler loop_;
};

}  // namespace

ControllerPtr make_account_token_controller(Environment& environment) {
  const std::string& key = environment.options.account_key_pem;
  if (key.empty()) return nullptr;
  auto signer = net::JwtSigner::open(key);
  if (!signer.ok()) return nullptr;
  return std::make_unique<AccountTokens>(environment, std::move(*signer));
}

}  // namespace dibs::controllers
