#include "cli/account_clients.h"

#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "client/https_transport.h"
#include "client/refusals.h"

namespace dibs::cli {
namespace {

using json::Value;

const client::Gvr kAccounts{"", "v1", "serviceaccounts"};
constexpr const char* kNamespace = "kube-system";
constexpr int kLife = 3600;  // seconds that are asked for
constexpr Duration kRenewed = std::chrono::minutes(40);
constexpr Duration kTryAgain = std::chrono::seconds(30);

client::Request token_request(const std::string& account) {
  return client::make_request(
      "POST", client::path_of(kAccounts, kNamespace, account, "token"),
      Value::object({{"apiVersion", "authentication.k8s.io/v1"},
                     {"kind", "TokenRequest"},
                     {"spec", Value::object({{"expirationSeconds", kLife}})}}));
}

}  // namespace

/// A way to the server under an account's token.
struct AccountClients::Account final : client::Transport,
                                       std::enable_shared_from_this<AccountClients::Account> {
  Account(client::Client& maker, runtime::Runtime& world, std::string account)
      : root(maker), runtime(world), name(std::move(account)), client(*this) {}

  client::Client& root;
  runtime::Runtime& runtime;
  const std::string name;
  std::unique_ptr<client::Transport> inner;
  client::Client client;
  Mutex mutex;
  std::string header DIBS_GUARDED_BY(mutex);

  Result<> take(const Result<Value>& answer) {
    if (!answer.ok()) return answer.error();
    const std::string_view token = (*answer)["status"]["token"].as_string();
    if (token.empty()) return Error::internal("the server's answer has no token");
    const MutexLock lock(mutex);
    header = cat("Bearer ", token);
    return success();
  }

  Result<> begin() {
    const Value account = Value::object({{"apiVersion", "v1"},
                                         {"kind", "ServiceAccount"},
                                         {"metadata", Value::object({{"name", name}})}});
    if (const auto made = root.create(kAccounts, kNamespace, account);
        !made.ok() && made.error().code() != Code::already_exists) {
      return made.error();
    }
    DIBS_CHECK(take(root.call(token_request(name))));
    renew_after(kRenewed);
    return success();
  }

  void renew_after(Duration delay) {
    runtime.timers.after(delay, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self == nullptr) return;
      self->root.call(token_request(self->name), [weak](const Result<Value>& answer) {
        const auto alive = weak.lock();
        if (alive == nullptr) return;
        const auto taken = alive->take(answer);
        if (!taken.ok()) {
          log::warn("token cannot be renewed",
                    {{"account", alive->name}, {"error", taken.error()}});
        }
        alive->renew_after(taken.ok() ? kRenewed : kTryAgain);
      });
    });
  }

  client::Request with_token(client::Request request) {
    const MutexLock lock(mutex);
    request.headers.set("Authorization", header);
    return request;
  }

  Result<client::Response> send(client::Request request) override {
    return inner->send(with_token(std::move(request)));
  }
  void send_async(client::Request request,
                  std::function<void(Result<client::Response>)> done) override {
    inner->send_async(with_token(std::move(request)), std::move(done));
  }
  std::unique_ptr<client::TransportStream> open_stream(client::Request request,
                                                       client::StreamHandlers handlers) override {
    return inner->open_stream(with_token(std::move(request)), std::move(handlers));
  }
};

AccountClients::~AccountClients() = default;

Result<std::unique_ptr<AccountClients>> AccountClients::open(
    client::Client& root, client::Access access, runtime::Files& files, runtime::Runtime& runtime,
    const std::vector<std::string>& accounts) {
  // Who shows the certificate or name of the root would be the root.
  access.tls.certificate_pem.clear();
  access.tls.key_pem.clear();
  access.token.clear();
  access.token_file.clear();
  access.username.clear();
  access.password.clear();
  access.impersonate_user.clear();
  auto out = std::unique_ptr<AccountClients>(new AccountClients());
  for (const std::string& name : accounts) {
    auto account = std::make_shared<Account>(root, runtime, name);
    client::HttpsOptions https;
    https.user_agent = cat("kube-controller-manager/", name);
    DIBS_TRY(auto connection, client::make_https_transport(access, files, runtime, https));
    account->inner = client::warn_of_refusals(std::move(connection), runtime);
    if (auto begun = account->begin(); !begun.ok()) {
      return begun.error().within(
          cat("--use-service-account-credentials: ", kNamespace, "/", name));
    }
    out->accounts_.emplace(name, std::move(account));
  }
  return out;
}

std::map<std::string, client::Client*, std::less<>> AccountClients::clients() const {
  std::map<std::string, client::Client*, std::less<>> out;
  for (const auto& [name, account] : accounts_) out.emplace(name, &account->client);
  return out;
}

}  // namespace dibs::cli
