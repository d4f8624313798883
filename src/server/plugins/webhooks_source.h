#pragma once
// The webhooks of the store's configurations of one kind, ready to be asked.
//
// Follows the store by a watch that only leaves a mark; who asks next brings the set up to date on
// his own thread. The mark is there before the write of a configuration is answered, so whoever has
// been answered is judged by it.
//
// Thread-safe. A set is immutable.

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/expressions/policy_match.h"
#include "api/expressions/policy_program.h"
#include "base/mutex.h"
#include "base/time.h"
#include "runtime/runtime.h"
#include "store/store.h"

namespace dibs::server {

using json::Value;

struct Webhook {
  std::string configuration;
  std::string name;
  std::string id;          // of this one among all, also where several have one name
  bool has_rules = false;  // without any it is never asked
  api::MatchResources resources;
  std::shared_ptr<const api::CompiledPolicy> conditions;  // null: none
  bool ignores_failures = false;
  bool may_be_asked_again = false;
  std::string side_effects;
  std::string review_version;  // v1, v1beta1, or "" where it takes neither
  Duration timeout{};
  // One of these.
  std::string url;
  Value service;
  std::string ca_pem;
};
using WebhookSet = std::vector<Webhook>;  // in the order they are asked

/// Those of one configuration.
void read_webhooks(const Value& configuration, WebhookSet& out);

class WebhookSource {
 public:
  /// Without a prefix there are never any.
  WebhookSource(runtime::Clock& clock, store::Store& store, std::string prefix);
  ~WebhookSource();

  /// Null when there is none.
  std::shared_ptr<const WebhookSet> current();

 private:
  void open() DIBS_REQUIRES(mutex_);
  /// False when the watch fell behind.
  bool pump() DIBS_REQUIRES(mutex_);
  /// False when it cannot be read: what was known of it stays.
  bool take(const std::string& key, const store::Record* record) DIBS_REQUIRES(mutex_);
  void rebuild() DIBS_REQUIRES(mutex_);
  bool is_due() const;

  runtime::Clock& clock_;
  store::Store& store_;
  const std::string prefix_;
  std::atomic<Duration> not_before_{Duration::min()};  // the store could not be read
  std::atomic<bool> stale_{true};
  std::atomic<bool> any_{false};
  Mutex mutex_;
  std::unique_ptr<store::Watch> watch_ DIBS_GUARDED_BY(mutex_);
  std::map<std::string, WebhookSet> stored_ DIBS_GUARDED_BY(mutex_);  // by key
  std::shared_ptr<const WebhookSet> set_ DIBS_GUARDED_BY(mutex_);
};

}  // namespace dibs::server
