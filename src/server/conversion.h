#pragma once
// Conversion webhooks of CustomResourceDefinitions: who is called, how often at once, what is
// counted.
//
// A call blocks its thread and holds nothing else: no lock, no seat (fairness.h), no thread that
// others share. Only so many calls are waited for at once, and only a part of them for one
// definition, so that a webhook that is dead stops its own versions and nothing else; what goes
// beyond is refused with 429. The executor of the server has that many threads more
// (cluster/world.cc).
//
// Thread-safe.

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/metrics.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/time.h"
#include "json/value.h"
#include "runtime/runtime.h"
#include "server/conversion_review.h"
#include "server/webhook_address.h"
#include "server/webhook_transport.h"

namespace dibs::server {

/// What the webhooks of all definitions share. Outlives them.
class Conversions {
 public:
  Conversions(runtime::Runtime& runtime, metrics::Registry& metrics,
              std::shared_ptr<WebhookTransport> transport, ServiceFinder services);

 private:
  friend class ConversionWebhook;
  runtime::Runtime& runtime_;
  const std::shared_ptr<WebhookTransport> transport_;
  const ServiceFinder services_;
  metrics::HistogramFamily by_definition_;
  metrics::CounterFamily requests_;
  metrics::HistogramFamily durations_;
  std::atomic<std::size_t> waiting_{0};
};

/// What a webhook has made of objects lately, for all who watch them: an event that a hundred
/// clients hear of is converted once, not a hundred times. Bounded; what is oldest goes first.
/// Thread-safe.
class RecentlyConverted {
 public:
  std::optional<Value> find(const std::string& key) const;
  /// `bytes` is about what it holds.
  void keep(std::string key, Value object, std::size_t bytes);

 private:
  struct Kept {
    Value object;
    std::size_t bytes = 0;
  };
  mutable Mutex mutex_;
  std::map<std::string, Kept, std::less<>> kept_ DIBS_GUARDED_BY(mutex_);
  std::deque<std::string> order_ DIBS_GUARDED_BY(mutex_);
  std::size_t bytes_ DIBS_GUARDED_BY(mutex_) = 0;
};

/// The webhook of one definition. A definition that changes has another one.
class ConversionWebhook {
 public:
  /// `conversion` is the webhook of the definition's spec.conversion.
  ConversionWebhook(Conversions& shared, std::string definition, const Value& conversion);

  /// All objects in that version, in their order; those that differ are converted, many in one
  /// call. Errors: plain in upstream's words, too_many_requests.
  Result<std::vector<Value>> convert(std::vector<Value> objects,
                                     std::string_view api_version) const;
  RecentlyConverted& recent() const { return recent_; }

 private:
  Result<std::vector<Value>> ask(const std::vector<Value>& objects,
                                 std::string_view api_version) const;
  ConversionAnswer call(const std::vector<Value>& objects, std::string_view api_version) const;
  void count(const std::optional<ConversionFault>& fault, const Value& first,
             std::string_view api_version, Duration took) const;

  Conversions& shared_;
  const std::string definition_;
  std::string review_version_;  // "": none that is known
  std::string url_;
  Value service_;
  std::string ca_pem_;
  mutable std::atomic<std::size_t> waiting_{0};
  mutable RecentlyConverted recent_;
};

}  // namespace dibs::server
