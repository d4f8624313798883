#include "node/certificate.h"

#include <algorithm>

#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "client/serial_state.h"

namespace dibs::node {
namespace {

using json::Value;

const client::Gvr kRequests{"certificates.k8s.io", "v1", "certificatesigningrequests"};
constexpr Duration kLook = std::chrono::seconds(1);
constexpr Duration kPatience = std::chrono::minutes(5);  // with a request that nobody approves
constexpr Duration kAgain = std::chrono::minutes(1);

}  // namespace

Result<Value> certificate_request(const std::string& node, const std::string& key_pem,
                                  Duration life, runtime::Random& random) {
  DIBS_TRY(const std::string pem,
           net::make_signing_request(key_pem, cat("system:node:", node), {"system:nodes"}));
  Value spec = Value::object({{"signerName", "kubernetes.io/kube-apiserver-client-kubelet"},
                              {"usages", Value::array({"digital signature", "client auth"})},
                              {"request", base64_encode(pem)}});
  if (life > Duration(0)) {
    spec.set("expirationSeconds", static_cast<std::int64_t>(life / std::chrono::seconds(1)));
  }
  // Not of the node's name, which may be too long.
  return Value::object(
      {{"apiVersion", "certificates.k8s.io/v1"},
       {"kind", "CertificateSigningRequest"},
       {"metadata", Value::object({{"name", cat("node-csr-", runtime::make_uuid(random))}})},
       {"spec", std::move(spec)}});
}

Result<std::optional<std::string>> issued_certificate(const Value& request) {
  for (const Value& condition : request["status"]["conditions"].items()) {
    const std::string_view type = condition["type"].as_string();
    if (type != "Denied" && type != "Failed") continue;
    return Error::forbidden(cat("the request for a certificate, ", client::name_of(request),
                                ", was ", type == "Denied" ? "denied" : "not signed", ": ",
                                condition["message"].as_string()));
  }
  std::string pem;
  if (!base64_decode(request["status"]["certificate"].as_string(), pem) || pem.empty()) {
    return std::optional<std::string>();
  }
  return std::optional(std::move(pem));
}

struct CertificateKeeper::State : client::SerialState<CertificateKeeper::State> {
  State(client::Client& api, runtime::Runtime& world, Options how)
      : SerialState(api, world), options(std::move(how)) {}

  const Options options;

  // On `serial` only.
  net::Credential credential = options.credential;
  std::string key;   // of the request that is under way
  std::string name;  // of it
  Duration until{0};

  Mutex mutex;
  std::optional<runtime::TimerId> timer DIBS_GUARDED_BY(mutex);

  void after(Duration wait, void (State::*then)()) {
    if (gate.closed()) return;
    const std::weak_ptr<State> weak = weak_from_this();
    const MutexLock lock(mutex);
    timer = runtime.timers.after(wait, [weak, then] {
      if (const auto self = weak.lock()) self->post([then](State& us) { (us.*then)(); });
    });
  }

  void wait() {
    const auto info = net::parse_certificate(credential.certificate_pem);
    if (!info.ok()) return fail(info.error());
    const Duration life = info->not_after - info->not_before;
    const Duration left = info->not_after - runtime.clock.now() - life / 3;
    if (left <= Duration(0)) return ask();
    // A clock that is set meanwhile is seen at the next look.
    after(std::min<Duration>(left, std::chrono::hours(12)), &State::wait);
  }

  void ask() {
    auto made = net::make_private_key();
    if (!made.ok()) return fail(made.error());
    key = std::move(made).value();
    const auto request = certificate_request(options.node, key, options.life, runtime.random);
    if (!request.ok()) return fail(request.error());
    name = client::name_of(*request);
    until = runtime.clock.steady() + kPatience;
    call(client::create_request(kRequests, "", *request), &State::on_answer);
  }

  void look() {
    call(client::make_request("GET", client::path_of(kRequests, "", name)), &State::on_answer);
  }

  void on_answer(const Result<Value>& answer) {
    if (!answer.ok()) return fail(answer.error());
    const auto pem = issued_certificate(*answer);
    if (!pem.ok()) return fail(pem.error());
    if (!*pem) {
      if (runtime.clock.steady() < until) return after(kLook, &State::look);
      return fail(Error::timeout(cat("request ", name, " is not approved")));
    }
    const net::Credential fresh{**pem, std::exchange(key, {})};
    if (const auto taken = options.renewed(fresh); !taken.ok()) return fail(taken.error());
    credential = fresh;
    log::info("the node's certificate is renewed", {{"node", options.node}});
    wait();
  }

  void fail(const Error& error) {
    log::warn("the node's certificate is not renewed yet",
              {{"node", options.node}, {"error", error}});
    after(kAgain, &State::wait);
  }
};

CertificateKeeper::CertificateKeeper(client::Client& client, runtime::Runtime& runtime,
                                     Options options)
    : state_(std::make_shared<State>(client, runtime, std::move(options))) {}

CertificateKeeper::~CertificateKeeper() { stop(); }

void CertificateKeeper::start() {
  state_->post([](State& us) { us.wait(); });
}

void CertificateKeeper::stop() {
  state_->gate.close();
  const MutexLock lock(state_->mutex);
  if (state_->timer) state_->runtime.timers.cancel(*state_->timer);
}

}  // namespace dibs::node
