#include "server/plugins/webhooks_source.h"

#include <utility>

#include "base/log.h"
#include "base/span.h"
#include "base/strings.h"
#include "server/stored.h"

namespace dibs::server {
namespace {

constexpr Duration kRetry = std::chrono::milliseconds(100);
constexpr std::int64_t kDefaultTimeout = 10;

/// The first that is known counts.
std::string review_version(const Value& versions) {
  for (const Value& version : versions.items()) {
    if (version.as_string() == "v1" || version.as_string() == "v1beta1") return version.str();
  }
  return {};
}

Webhook read_webhook(const Value& hook, std::string_view configuration) {
  Webhook out;
  out.configuration = configuration;
  out.name = hook["name"].str();
  out.has_rules = !hook["rules"].empty();
  Value resources = Value::object({{"matchPolicy", hook["matchPolicy"].as_string("Equivalent")},
                                   {"resourceRules", hook["rules"]}});
  for (std::string_view key : {"namespaceSelector", "objectSelector"}) {
    if (!hook[key].is_null()) resources.set(key, hook[key]);
  }
  out.resources = api::MatchResources::parse(resources);
  if (!hook["matchConditions"].empty()) {
    out.conditions = api::CompiledPolicy::compile(
        Value::object({{"spec", Value::object({{"matchConditions", hook["matchConditions"]}})}}));
  }
  out.ignores_failures = hook["failurePolicy"].as_string() == "Ignore";
  out.may_be_asked_again = hook["reinvocationPolicy"].as_string() == "IfNeeded";
  out.side_effects = hook["sideEffects"].str();
  out.review_version = review_version(hook["admissionReviewVersions"]);
  out.timeout = seconds_of(hook["timeoutSeconds"].as_int(kDefaultTimeout));
  const Value& client = hook["clientConfig"];
  out.url = client["url"].str();
  out.service = client["service"];
  (void)base64_decode(client["caBundle"].as_string(), out.ca_pem);
  return out;
}

}  // namespace

void read_webhooks(const Value& configuration, WebhookSet& out) {
  std::map<std::string, int> met;
  const std::string_view name = configuration["metadata"]["name"].as_string();
  for (const Value& hook : configuration["webhooks"].items()) {
    Webhook one = read_webhook(hook, name);
    one.id = cat(name, "/", one.name, "/", met[one.name]++);
    out.push_back(std::move(one));
  }
}

WebhookSource::WebhookSource(runtime::Clock& clock, store::Store& store, std::string prefix)
    : clock_(clock), store_(store), prefix_(std::move(prefix)) {}

WebhookSource::~WebhookSource() = default;

std::shared_ptr<const WebhookSet> WebhookSource::current() {
  const bool due = is_due();
  if (!due && !any_.load(std::memory_order_relaxed)) return nullptr;
  const MutexLock lock(mutex_);
  if (due) {
    // Until it is known who is there, nobody passes by without the lock.
    any_ = true;
    // Cleared first: what changes while the watch is read leaves its mark again.
    if (stale_.exchange(false)) {
      if (watch_ == nullptr || !pump()) open();
      rebuild();
    }
    any_ = set_ != nullptr;
  }
  return set_;
}

bool WebhookSource::is_due() const {
  return stale_.load(std::memory_order_acquire) && clock_.steady() >= not_before_.load();
}

void WebhookSource::open() {
  if (prefix_.empty()) return;
  watch_.reset();
  store::RangeQuery query;
  query.prefix = prefix_;
  auto listing = store_.range(query);
  if (listing.ok()) {
    auto watch = store_.watch(prefix_, listing->revision,
                              [this] { stale_.store(true, std::memory_order_release); });
    if (watch.ok()) {
      // What is known is forgotten only for what takes its place: without its webhooks everything
      // would pass.
      auto known = std::exchange(stored_, {});
      for (const auto& record : listing->records) {
        std::string key(record->key);
        if (take(key, record.get())) continue;
        if (auto before = known.extract(key)) stored_.insert(std::move(before));
      }
      watch_ = std::move(watch).value();
      if (pump()) return;
    }
  }
  log::warn("webhook configurations cannot be read", {{"prefix", prefix_}});
  not_before_ = clock_.steady() + kRetry;
  stale_.store(true, std::memory_order_release);
}

bool WebhookSource::pump() {
  for (;;) {
    auto events = watch_->next(64);
    if (!events.ok()) return false;
    if (events->empty()) return true;
    for (const auto& event : *events) take(std::string(event->key()), event->now.get());
  }
}

bool WebhookSource::take(const std::string& key, const store::Record* record) {
  if (record == nullptr) {
    stored_.erase(key);
    return true;
  }
  auto object = decode_stored(*record);
  if (!object.ok()) {
    log::warn("a webhook configuration cannot be read", {{"key", key}, {"error", object.error()}});
    return false;
  }
  WebhookSet hooks;
  read_webhooks(*object, hooks);
  stored_[key] = std::move(hooks);
  return true;
}

void WebhookSource::rebuild() {
  auto set = std::make_shared<WebhookSet>();
  for (const auto& [key, hooks] : stored_) set->insert(set->end(), hooks.begin(), hooks.end());
  set_ = set->empty() ? nullptr : std::move(set);
}

}  // namespace dibs::server
