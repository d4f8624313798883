#include "node/pods/pod_certificates.h"

#include <algorithm>

#include "base/log.h"
#include "base/strings.h"
#include "net/key_pair.h"

namespace dibs::node {
namespace {

using json::Value;

const client::Gvr kRequests{"certificates.k8s.io", "v1", "podcertificaterequests"};
const client::Gvr kAccounts{"", "v1", "serviceaccounts"};
const client::Gvr kNodes{"", "v1", "nodes"};
constexpr std::string_view kMetric = "kubelet_podcertificate_states";
constexpr Duration kMostJitter = std::chrono::minutes(5);

}  // namespace

Value certificate_request(const Value& pod, const Value& source, const Value& account,
                          const Value& node, const std::string& request_der) {
  const Value& metadata = pod["metadata"];
  Value spec = Value::object({{"signerName", source["signerName"]},
                              {"podName", metadata["name"]},
                              {"podUID", metadata["uid"]},
                              {"serviceAccountName", account["metadata"]["name"]},
                              {"serviceAccountUID", account["metadata"]["uid"]},
                              {"nodeName", node["metadata"]["name"]},
                              {"nodeUID", node["metadata"]["uid"]},
                              {"stubPKCS10Request", base64_encode(request_der)}});
  if (source["maxExpirationSeconds"].is_integer()) {
    spec.set("maxExpirationSeconds", source["maxExpirationSeconds"]);
  }
  if (!source["userAnnotations"].empty()) {
    spec.set("unverifiedUserAnnotations", source["userAnnotations"]);
  }
  const Value owner = Value::object({{"apiVersion", "v1"},
                                     {"kind", "Pod"},
                                     {"name", metadata["name"]},
                                     {"uid", metadata["uid"]}});
  return Value::object({{"apiVersion", "certificates.k8s.io/v1"},
                        {"kind", "PodCertificateRequest"},
                        {"metadata", Value::object({{"generateName", "req-"},
                                                    {"namespace", metadata["namespace"]},
                                                    {"ownerReferences", Value::array({owner})}})},
                        {"spec", std::move(spec)}});
}

PodCertificates::PodCertificates(client::Client& client, runtime::Runtime& runtime,
                                 PodCertificatesOptions options)
    : client_(client), runtime_(runtime), options_(std::move(options)) {}

PodCertificates::~PodCertificates() {
  std::shared_ptr<client::Informer> informer;
  {
    const MutexLock lock(mutex_);
    informer = std::move(informer_);
  }
  if (informer) informer->stop();
}

void PodCertificates::on_change(std::function<void(const std::string&)> changed) {
  const MutexLock lock(mutex_);
  changed_ = std::move(changed);
}

void PodCertificates::follow() {
  std::shared_ptr<client::Informer> fresh;
  {
    const MutexLock lock(mutex_);
    if (informer_) return;
    client::InformerOptions options;
    options.gvr = kRequests;
    // All that a node may see.
    options.field_selector = cat("spec.nodeName=", options_.node_name);
    informer_ = std::make_shared<client::Informer>(client_, runtime_, std::move(options));
    client::InformerHandlers handlers;
    handlers.added = [this](const Value& request, bool) { on_seen(request, false); };
    handlers.updated = [this](const Value&, const Value& request) { on_seen(request, false); };
    handlers.removed = [this](const Value& request) { on_seen(request, true); };
    informer_->add_handler(std::move(handlers));
    fresh = informer_;
  }
  fresh->start();
}

void PodCertificates::on_seen(const Value& request, bool removed) {
  // One that nobody has answered yet changes nothing.
  if (!removed && request["status"]["conditions"].empty()) return;
  const std::string uid = request["spec"]["podUID"].str();
  const std::string name = request["metadata"]["name"].str();
  std::function<void(const std::string&)> changed;
  {
    const MutexLock lock(mutex_);
    const auto places = pods_.find(uid);
    if (places == pods_.end()) return;
    for (const auto& [place, entry] : places->second) {
      if (entry.state.is_waiting() && entry.state.request == name) changed = changed_;
    }
  }
  if (changed) changed(uid);
}

Result<std::pair<std::string, std::string>> PodCertificates::request(const Value& pod,
                                                                     const Value& source) {
  const std::string name_space = pod["metadata"]["namespace"].str();
  std::string account_name = pod["spec"]["serviceAccountName"].str();
  if (account_name.empty()) account_name = "default";
  const auto account = client_.get(kAccounts, name_space, account_name);
  if (!account) return account.error().within("while fetching service account");
  const auto node = client_.get(kNodes, "", options_.node_name);
  if (!node) return node.error().within("while getting node object");
  auto made = net::make_key_and_proof(source["keyType"].as_string());
  if (!made) return made.error().within("while generating keypair");
  const auto created = client_.create(
      kRequests, name_space, certificate_request(pod, source, *account, *node, made->request_der));
  if (!created) return created.error().within("while creating on API");
  return std::pair((*created)["metadata"]["name"].str(), std::move(made->key_pem));
}

Result<Value> PodCertificates::look(const std::string& name_space, const std::string& name) {
  std::shared_ptr<client::Informer> informer;
  {
    const MutexLock lock(mutex_);
    informer = informer_;
  }
  if (!informer || !informer->synced()) return Value();
  if (auto known = informer->get(client::key_of(name_space, name))) return *known;
  // Not seen yet, or gone: the server knows. It would not tell a node that reads a request by its
  // name, since one that is gone is nobody's.
  client::ListOptions options;
  options.field_selector = cat("metadata.name=", name, ",spec.nodeName=", options_.node_name);
  const auto listed = client_.list(kRequests, name_space, options);
  if (!listed) return Value();
  for (const Value& request : listed->items) {
    if (request["metadata"]["name"].as_string() == name) return request;
  }
  return Error::not_found(cat("PodCertificateRequest ", quoted(name), " not found"));
}

void PodCertificates::take_answer(const Value& pod, CertificateState& state) {
  const auto answer = look(pod["metadata"]["namespace"].str(), state.request);
  if (!answer) return note_lost(state, runtime_.clock.now());
  const Duration jitter(static_cast<Duration::rep>(
      runtime_.random.below(static_cast<std::uint64_t>(kMostJitter.count()))));
  if (auto note = note_answer(state, *answer, jitter); note && options_.warn) {
    options_.warn(pod, std::move(note->reason), std::move(note->text));
  }
}

Result<PodCredential> PodCertificates::get(const Value& pod, const std::string& volume,
                                           std::size_t index, const Value& source) {
  const std::string uid = pod["metadata"]["uid"].str();
  const Place place(volume, index);
  CertificateState state;
  {
    const MutexLock lock(mutex_);
    Entry& entry = pods_[uid][place];
    entry.signer = source["signerName"].str();
    state = entry.state;
  }
  const auto keep = [&] {
    const MutexLock lock(mutex_);
    pods_[uid][place].state = state;
  };
  follow();
  if (state.is_waiting()) {
    take_answer(pod, state);
    keep();
  }
  const Time now = runtime_.clock.now();
  Result<> asked = success();
  if (state.wants_request(now)) {
    auto made = request(pod, source);
    if (made) {
      note_requested(state, std::move(made->first), std::move(made->second));
      // An answer that comes from here on wakes the pod; one that has come already is there.
      keep();
      take_answer(pod, state);
    } else {
      asked = made.error().within(state.credential.key.empty()
                                      ? "while creating initial PodCertificateRequest"
                                      : "while creating refresh PodCertificateRequest");
      note_failure(state, now);
      log::warn("certificate of a pod cannot be asked for",
                {{"pod", cat(pod["metadata"]["namespace"].as_string(), "/",
                             pod["metadata"]["name"].as_string())},
                 {"error", asked.error().message()}});
    }
  }
  for (CertificateNote& note : note_age(state, now)) {
    if (options_.warn) options_.warn(pod, std::move(note.reason), std::move(note.text));
  }
  keep();
  if (!asked && state.phase == CertificateState::Phase::initial) return asked.error();
  return state.get();
}

std::optional<Time> PodCertificates::next_look(const std::string& pod_uid) const {
  const MutexLock lock(mutex_);
  std::optional<Time> first;
  const auto places = pods_.find(pod_uid);
  if (places == pods_.end()) return first;
  for (const auto& [place, entry] : places->second) {
    const auto next = entry.state.next_look();
    if (next && (!first || *next < *first)) first = next;
  }
  return first;
}

std::string PodCertificates::metrics() const {
  const Time now = runtime_.clock.now();
  std::map<std::pair<std::string, std::string>, int> counts;
  {
    const MutexLock lock(mutex_);
    for (const auto& [uid, places] : pods_) {
      for (const auto& [place, entry] : places) {
        ++counts[{entry.signer, std::string(entry.state.word(now))}];
      }
    }
  }
  if (counts.empty()) return {};
  std::string out = cat("# HELP ", kMetric,
                        " [ALPHA] Gauge vector reporting the number of pod certificate projected "
                        "volume sources, faceted by signer_name and state.\n# TYPE ",
                        kMetric, " gauge\n");
  for (const auto& [what, count] : counts) {
    append(out, kMetric, "{signer_name=", quoted(what.first), ",state=", quoted(what.second), "} ",
           count, "\n");
  }
  return out;
}

void PodCertificates::forget(const std::string& pod_uid) {
  std::shared_ptr<client::Informer> unused;
  {
    const MutexLock lock(mutex_);
    pods_.erase(pod_uid);
    if (pods_.empty()) unused = std::move(informer_);
  }
  // A handler may wait for the mutex: it is ended without it.
  if (unused) unused->stop();
}

}  // namespace dibs::node
