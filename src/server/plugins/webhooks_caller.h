#pragma once
// Calls of webhooks: where they are, how many wait at once, what is counted of them.
//
// A request that waits gives its seat back (fairness.h), since whoever else has that level is not
// to wait for somebody's webhook. So that it does not hold all threads instead, only so many calls
// are waited for at once, and only a part of them for one user; what goes beyond is refused with
// 429. The executor of the server has that many threads more (cluster/world.cc).
//
// Thread-safe.

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/expressions/policy_match.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "server/plugins/admission_policies_request.h"
#include "server/plugins/plugins.h"
#include "server/plugins/webhooks_review.h"
#include "server/plugins/webhooks_source.h"
#include "server/webhook_transport.h"

namespace dibs::server {

/// A webhook that a request concerns, in the version that it is shown.
struct WebhookQuestion {
  const Webhook* hook = nullptr;
  api::ServedAs served = {};
  api::PolicyInput input = {};
};

/// What a question came to: an answer that allows, a refusal, or a failure. A failure of the call
/// has been judged by the webhook's failurePolicy: where it is ignored, it is an answer that
/// allows.
struct WebhookVerdict {
  ReviewAnswer answer;
  std::optional<Error> refusal;
  bool ignored = false;  // the call failed
};

class WebhookCaller {
 public:
  /// `type` as metrics have it: "admit", "validating".
  WebhookCaller(PluginSources sources, std::string_view type);

  /// Asks all of them, at once where there are several, as many as one user may wait for, and tells
  /// the warnings and annotations of their answers. Errors: there are too many calls, or there is
  /// no more time.
  Result<std::vector<WebhookVerdict>> ask(const Write& write,
                                          const std::vector<WebhookQuestion>& questions);
  /// Counts a refusal of an answer that could not be used. `hook` was asked.
  void count_useless(const Write& write, const Webhook& hook);
  /// Counts what match conditions kept from being asked, or could not say.
  void count_excluded(const Write& write, const Webhook& hook);
  void count_condition_errors(const Write& write, const Webhook& hook, std::size_t errors);

 private:
  class Wait;
  Result<std::unique_ptr<Wait>> enter(const Write& write, std::size_t calls);
  void leave(const std::string& user, std::size_t calls);
  Result<> ask_at_once(const Write& write, std::span<const WebhookQuestion> questions,
                       std::vector<WebhookVerdict>& out);
  Result<WebhookCall> address(const Webhook& hook) const;
  WebhookVerdict judge(const Write& write, const Webhook& hook, ReviewOutcome outcome,
                       Duration took);
  void count(const Write& write, const Webhook& hook, Duration took, int code, bool rejected,
             std::string_view error_type);
  /// The type in the words of the metrics about match conditions.
  std::string_view step() const { return type_ == "admit" ? "admit" : "validate"; }

  PluginSources sources_;
  const std::string type_;
  const std::shared_ptr<WebhookTransport> transport_;
  metrics::HistogramFamily durations_;
  metrics::CounterFamily requests_;
  metrics::CounterFamily rejections_;
  metrics::CounterFamily open_failures_;
  metrics::CounterFamily excluded_;
  metrics::CounterFamily condition_errors_;
  Mutex mutex_;
  std::size_t waiting_ DIBS_GUARDED_BY(mutex_) = 0;
  std::map<std::string, std::size_t> waiting_of_ DIBS_GUARDED_BY(mutex_);  // by user
};

}  // namespace dibs::server
