#include "server/conversion.h"

#include "base/strings.h"
#include "json/parse.h"
#include "server/plugins/webhooks_review.h"

namespace dibs::server {
namespace {

constexpr Duration kTimeout = std::chrono::seconds(30);
constexpr std::size_t kMostOfDefinition = kMostWebhookCalls / 4;
/// Of one call: a list is converted in as few as these allow.
constexpr std::size_t kMostObjects = 500;
constexpr std::size_t kMostBytes = std::size_t{2} << 20;

/// Of what is kept for a definition.
constexpr std::size_t kMostKept = 512;
constexpr std::size_t kMostKeptBytes = std::size_t{4} << 20;

std::string_view version_of(std::string_view api_version) {
  const auto slash = api_version.find('/');
  return slash == std::string_view::npos ? api_version : api_version.substr(slash + 1);
}

/// One more of a number that has a bound; given back when it is destroyed.
class Counted {
 public:
  Counted(std::atomic<std::size_t>& number, std::size_t most) : number_(number) {
    fits_ = number_.fetch_add(1) < most;
  }
  ~Counted() { number_.fetch_sub(1); }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  bool fits() const { return fits_; }

 private:
  std::atomic<std::size_t>& number_;
  bool fits_ = false;
};

std::vector<double> doubling(double first, int count) {
  std::vector<double> out;
  for (int i = 0; i < count; ++i, first *= 2) out.push_back(first);
  return out;
}

}  // namespace

Conversions::Conversions(runtime::Runtime& runtime, metrics::Registry& metrics,
                         std::shared_ptr<WebhookTransport> transport, ServiceFinder services)
    : runtime_(runtime),
      transport_(std::move(transport)),
      services_(std::move(services)),
      by_definition_(metrics.histogram("apiserver_crd_conversion_webhook_duration_seconds",
                                       "How long conversion webhooks took, by definition.",
                                       doubling(0.001, 15),
                                       {"crd_name", "from_version", "to_version", "succeeded"})),
      requests_(metrics.counter("apiserver_conversion_webhook_request_total",
                                "Calls of conversion webhooks.", {"result", "failure_type"})),
      durations_(metrics.histogram(
          "apiserver_conversion_webhook_duration_seconds", "How long conversion webhooks took.",
          {0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 45, 60},
          {"result", "failure_type"})) {}

std::optional<Value> RecentlyConverted::find(const std::string& key) const {
  const MutexLock lock(mutex_);
  const auto found = kept_.find(key);
  if (found == kept_.end()) return std::nullopt;
  return found->second.object;
}

void RecentlyConverted::keep(std::string key, Value object, std::size_t bytes) {
  if (bytes > kMostKeptBytes) return;
  const MutexLock lock(mutex_);
  if (!kept_.try_emplace(key, Kept{std::move(object), bytes}).second) return;
  order_.push_back(std::move(key));
  bytes_ += bytes;
  while (order_.size() > kMostKept || bytes_ > kMostKeptBytes) {
    const auto oldest = kept_.find(order_.front());
    bytes_ -= oldest->second.bytes;
    kept_.erase(oldest);
    order_.pop_front();
  }
}

ConversionWebhook::ConversionWebhook(Conversions& shared, std::string definition,
                                     const Value& conversion)
    : shared_(shared), definition_(std::move(definition)) {
  // The first that is known counts.
  for (const Value& version : conversion["conversionReviewVersions"].items()) {
    if (!review_version_.empty()) break;
    if (version.as_string() == "v1" || version.as_string() == "v1beta1")
      review_version_ = version.str();
  }
  const Value& client = conversion["clientConfig"];
  url_ = client["url"].str();
  service_ = client["service"];
  (void)base64_decode(client["caBundle"].as_string(), ca_pem_);
  if (trim(ca_pem_).empty()) ca_pem_.clear();
}

Result<std::vector<Value>> ConversionWebhook::convert(std::vector<Value> objects,
                                                      std::string_view api_version) const {
  std::vector<std::size_t> places;
  std::vector<Value> batch;
  std::size_t bytes = 0;
  const auto flush = [&]() -> Result<> {
    if (batch.empty()) return success();
    DIBS_TRY(std::vector<Value> converted, ask(batch, api_version));
    for (std::size_t i = 0; i < places.size(); ++i) objects[places[i]] = std::move(converted[i]);
    places.clear();
    batch.clear();
    bytes = 0;
    return success();
  };
  for (std::size_t i = 0; i < objects.size(); ++i) {
    if (objects[i]["apiVersion"].as_string() == api_version) continue;
    places.push_back(i);
    batch.push_back(objects[i]);
    if (objects.size() > 1) bytes += json::write(objects[i]).size();
    if (batch.size() == kMostObjects || bytes >= kMostBytes) DIBS_CHECK(flush());
  }
  DIBS_CHECK(flush());
  return objects;
}

Result<std::vector<Value>> ConversionWebhook::ask(const std::vector<Value>& objects,
                                                  std::string_view api_version) const {
  const Counted all(shared_.waiting_, kMostWebhookCalls);
  const Counted own(waiting_, kMostOfDefinition);
  if (!all.fits() || !own.fits()) {
    ErrorDetails details;
    details.retry_after_seconds = 1;
    return Error(Code::too_many_requests,
                 cat("too many requests wait for the conversion webhook for ",
                     shown_kind(objects.front()), ", please try again later"),
                 std::move(details));
  }
  const Duration start = shared_.runtime_.clock.steady();
  ConversionAnswer answer = call(objects, api_version);
  count(answer.fault, objects.front(), api_version, shared_.runtime_.clock.steady() - start);
  if (answer.fault) return Error::plain(answer.fault->why);
  return std::move(answer.objects);
}

ConversionAnswer ConversionWebhook::call(const std::vector<Value>& objects,
                                         std::string_view api_version) const {
  const auto failed = [&](std::string_view why) {
    ConversionAnswer out;
    out.fault = ConversionFault{
        cat("conversion webhook for ", shown_kind(objects.front()), " failed: ", why), "call"};
    return out;
  };
  if (review_version_.empty()) return failed("no supported conversion review versions");
  WebhookCall call;
  call.timeout = kTimeout;
  call.ca_pem = ca_pem_;
  if (auto found = address_webhook(call, url_, service_, shared_.services_); !found.ok()) {
    return failed(found.error().message());
  }
  const std::string uid = runtime::make_uuid(shared_.runtime_.random);
  call.body = json::write(make_conversion(review_version_, uid, api_version, objects));
  const WebhookReply reply = shared_.transport_->post(call);
  if (!reply.response.ok()) {
    const Error& error = reply.response.error();
    return failed(error.code() == Code::invalid
                      ? cat("unable to load root certificates: ", error.message())
                      : error.message());
  }
  return read_conversion(review_version_, uid, api_version, objects, *reply.response);
}

void ConversionWebhook::count(const std::optional<ConversionFault>& fault, const Value& first,
                              std::string_view api_version, Duration took) const {
  const double seconds = std::chrono::duration<double>(took).count();
  const std::string type = fault ? cat("conversion_webhook_", fault->type, "_failure") : "";
  const std::string_view result = fault ? "failure" : "success";
  shared_.requests_.with({result, type}).add();
  shared_.durations_.with({result, type}).observe(seconds);
  shared_.by_definition_
      .with({definition_, version_of(first["apiVersion"].as_string()), version_of(api_version),
             fault ? "false" : "true"})
      .observe(seconds);
}

}  // namespace dibs::server
