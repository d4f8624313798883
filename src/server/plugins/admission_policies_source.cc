#include "server/plugins/admission_policies_source.h"

#include <utility>

#include "base/log.h"
#include "server/stored.h"

namespace dibs::server {
namespace {

constexpr Duration kSettle = std::chrono::milliseconds(30);

api::GroupVersionKind kind_name(const Value& param_kind) {
  std::string_view version = param_kind["apiVersion"].as_string();
  std::size_t slash = version.find('/');
  std::string group;
  if (slash != std::string_view::npos) {
    group = version.substr(0, slash);
    version.remove_prefix(slash + 1);
  }
  return {std::move(group), std::string(version), param_kind["kind"].str()};
}

std::shared_ptr<const AdmissionPolicy> compile(const Value& object) {
  auto made = std::make_shared<AdmissionPolicy>();
  const Value& spec = object["spec"];
  made->name = object["metadata"]["name"].str();
  made->constraints = api::MatchResources::parse(spec["matchConstraints"]);
  made->param_kind = spec["paramKind"];
  if (!made->param_kind.is_null()) made->param_kind_name = kind_name(made->param_kind);
  made->ignores_failures = spec["failurePolicy"].as_string() == "Ignore";
  made->may_be_asked_again = spec["reinvocationPolicy"].as_string() == "IfNeeded";
  made->program = api::CompiledPolicy::compile(object);
  return made;
}

std::shared_ptr<const PolicyBinding> read_binding(const Value& object) {
  auto made = std::make_shared<PolicyBinding>();
  const Value& spec = object["spec"];
  made->name = object["metadata"]["name"].str();
  made->policy = spec["policyName"].str();
  made->resources = api::MatchResources::parse(spec["matchResources"]);
  made->param_reference = spec["paramRef"];
  made->actions = spec["validationActions"];
  return made;
}

}  // namespace

PolicySource::PolicySource(runtime::Clock& clock, store::Store& store, std::string policy_prefix,
                           std::string binding_prefix)
    : clock_(clock), store_(store), changed_(clock.steady() - kSettle) {
  policies_.prefix = std::move(policy_prefix);
  bindings_.prefix = std::move(binding_prefix);
}

PolicySource::~PolicySource() = default;

std::shared_ptr<const PolicySet> PolicySource::current() {
  bool due = is_due();
  if (!due && !any_.load(std::memory_order_relaxed)) return nullptr;
  MutexLock lock(mutex_);
  if (due) {
    // Until it is known which there are, nobody passes by without the lock.
    any_ = true;
    // Cleared first: what changes while the watches are read leaves its mark again.
    if (stale_.exchange(false)) {
      for (Follower* follower : {&policies_, &bindings_}) {
        if (follower->watch == nullptr || !pump(*follower)) open(*follower);
      }
      rebuild();
    }
    any_ = set_ != nullptr;
  }
  return set_;
}

void PolicySource::mark() {
  changed_ = clock_.steady();
  stale_.store(true, std::memory_order_release);
}

bool PolicySource::is_due() const {
  return stale_.load(std::memory_order_acquire) && clock_.steady() - changed_.load() >= kSettle;
}

void PolicySource::open(Follower& follower) {
  if (follower.prefix.empty()) return;
  follower.watch.reset();
  store::RangeQuery query;
  query.prefix = follower.prefix;
  auto listing = store_.range(query);
  if (listing.ok()) {
    auto watch = store_.watch(follower.prefix, listing->revision, [this] { mark(); });
    if (watch.ok()) {
      // What is known is forgotten only for what takes its place: without its policies everything
      // would pass.
      const bool is_policy = &follower == &policies_;
      auto policies =
          is_policy ? std::exchange(stored_policies_, {}) : decltype(stored_policies_)();
      auto bindings =
          is_policy ? decltype(stored_bindings_)() : std::exchange(stored_bindings_, {});
      for (const auto& record : listing->records) {
        const std::string key(record->key);
        if (take(follower, key, record.get())) continue;
        if (auto known = policies.extract(key)) stored_policies_.insert(std::move(known));
        if (auto known = bindings.extract(key)) stored_bindings_.insert(std::move(known));
      }
      follower.watch = std::move(watch).value();
      if (pump(follower)) return;
    }
  }
  log::warn("admission policies cannot be read", {{"prefix", follower.prefix}});
  mark();
}

bool PolicySource::pump(Follower& follower) {
  for (;;) {
    auto events = follower.watch->next(64);
    if (!events.ok()) return false;
    if (events->empty()) return true;
    for (const auto& event : *events) take(follower, std::string(event->key()), event->now.get());
  }
}

bool PolicySource::take(const Follower& follower, const std::string& key,
                        const store::Record* record) {
  bool is_policy = &follower == &policies_;
  if (record == nullptr) {
    if (is_policy) {
      stored_policies_.erase(key);
    } else {
      stored_bindings_.erase(key);
    }
    return true;
  }
  auto object = decode_stored(*record);
  if (!object.ok()) {
    log::warn("an admission policy cannot be read", {{"key", key}, {"error", object.error()}});
    return false;
  }
  if (is_policy) {
    stored_policies_[key] = {std::move(object).value(), nullptr};
  } else {
    stored_bindings_[key] = read_binding(*object);
  }
  return true;
}

void PolicySource::rebuild() {
  auto set = std::make_shared<PolicySet>();
  std::map<std::string_view, BoundPolicy> by_name;
  for (const auto& [key, binding] : stored_bindings_) {
    by_name[binding->policy].bindings.push_back(binding);
  }
  for (auto& [name, bound] : by_name) {
    auto found = stored_policies_.find(policies_.prefix + std::string(name));
    if (found == stored_policies_.end()) continue;
    Policy& policy = found->second;
    if (policy.compiled == nullptr) policy.compiled = compile(policy.object);
    bound.policy = policy.compiled;
    set->push_back(std::move(bound));
  }
  set_ = set->empty() ? nullptr : std::move(set);
}

}  // namespace dibs::server
