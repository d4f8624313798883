#include "server/plugins/webhooks_caller.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "json/parse.h"
#include "server/audit.h"
#include "server/plugins/changed_object.h"
#include "server/status.h"
#include "server/webhook_address.h"

namespace dibs::server {
namespace {

constexpr std::size_t kMostOfUser = kMostWebhookCalls / 4;
/// Upstream's bound on a request.
constexpr Duration kRequestTimeout = std::chrono::seconds(60);

std::string shown_code(int code) { return cat(std::min(code, 600)); }

std::string_view shown(bool value) { return value ? "true" : "false"; }

/// What the metrics call a call that failed before it was made.
ReviewOutcome not_called(std::string why, int code) {
  ReviewOutcome out;
  out.fault = CallFault{std::move(why), code};
  return out;
}

}  // namespace

/// The right to wait for some calls.
class WebhookCaller::Wait {
 public:
  Wait(WebhookCaller& caller, std::string user, std::size_t calls)
      : caller_(caller), user_(std::move(user)), calls_(calls) {}
  ~Wait() { caller_.leave(user_, calls_); }
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;

 private:
  WebhookCaller& caller_;
  const std::string user_;
  const std::size_t calls_;
};

WebhookCaller::WebhookCaller(PluginSources sources, std::string_view type)
    : sources_(sources),
      type_(type),
      transport_(sources.options.webhooks),
      durations_(sources.metrics.histogram("apiserver_admission_webhook_admission_duration_seconds",
                                           "How long admission webhooks took.",
                                           {0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10, 25},
                                           {"name", "type", "operation", "rejected"})),
      requests_(sources.metrics.counter("apiserver_admission_webhook_request_total",
                                        "Calls of admission webhooks.",
                                        {"name", "type", "operation", "code", "rejected"})),
      rejections_(
          sources.metrics.counter("apiserver_admission_webhook_rejection_count",
                                  "Requests that admission webhooks refused.",
                                  {"name", "type", "operation", "error_type", "rejection_code"})),
      open_failures_(sources.metrics.counter(
          "apiserver_admission_webhook_fail_open_count",
          "Calls of admission webhooks that failed and were ignored.", {"name", "type"})),
      excluded_(sources.metrics.counter("apiserver_admission_match_condition_exclusions_total",
                                        "Requests that match conditions kept from webhooks.",
                                        {"name", "kind", "type", "operation"})),
      condition_errors_(sources.metrics.counter(
          "apiserver_admission_match_condition_evaluation_errors_total",
          "Match conditions that could not be evaluated.", {"name", "kind", "type", "operation"})) {
}

Result<std::unique_ptr<WebhookCaller::Wait>> WebhookCaller::enter(const Write& write,
                                                                  std::size_t calls) {
  const Context& context = write.context;
  const std::string& user = context.user.name;
  // Parts of this process are few, and what they would be told is to try again.
  const bool own = context.request.peer.address == "in-process";
  const MutexLock lock(mutex_);
  const std::size_t of_user = waiting_of_[user];
  if (waiting_ + calls > kMostWebhookCalls || (!own && of_user + calls > kMostOfUser)) {
    if (of_user == 0) waiting_of_.erase(user);
    ErrorDetails details;
    details.retry_after_seconds = 1;
    return Error(Code::too_many_requests,
                 "too many requests wait for admission webhooks, please try again later",
                 std::move(details));
  }
  waiting_ += calls;
  waiting_of_[user] += calls;
  return std::make_unique<Wait>(*this, user, calls);
}

void WebhookCaller::leave(const std::string& user, std::size_t calls) {
  const MutexLock lock(mutex_);
  waiting_ -= calls;
  if ((waiting_of_[user] -= calls) == 0) waiting_of_.erase(user);
}

Result<WebhookCall> WebhookCaller::address(const Webhook& hook) const {
  WebhookCall call;
  call.ca_pem = hook.ca_pem;
  call.timeout = hook.timeout;
  DIBS_CHECK(address_webhook(call, hook.url, hook.service,
                             [this](std::string_view name_space, std::string_view name) {
                               return sources_.find("", "services", name_space, name);
                             }));
  return call;
}

Result<std::vector<WebhookVerdict>> WebhookCaller::ask(
    const Write& write, const std::vector<WebhookQuestion>& questions) {
  // What ends without a commit is judged again by what is newest (Objects::is_final). Nobody
  // outside is to be asked about it twice, so he is not asked before that is here.
  if (sources_.store.shared() && !write.context.fresh)
    return Error::unavailable("what is stored is not known yet");
  // There may be more of them than anybody may ever wait for at once.
  std::vector<WebhookVerdict> out;
  for (std::size_t at = 0; at < questions.size(); at += kMostOfUser) {
    const std::size_t count = std::min(kMostOfUser, questions.size() - at);
    DIBS_CHECK(ask_at_once(write, std::span(questions).subspan(at, count), out));
  }
  return out;
}

Result<> WebhookCaller::ask_at_once(const Write& write, std::span<const WebhookQuestion> questions,
                                    std::vector<WebhookVerdict>& out) {
  const Duration left = kRequestTimeout - (sources_.runtime.clock.now() - write.context.now);
  if (left <= Duration::zero()) {
    return Error::timeout("Timeout: request did not complete within requested timeout");
  }
  DIBS_TRY(const auto wait, enter(write, questions.size()));
  write.context.seat.reset();

  struct Asked {
    std::string uid;
    std::optional<ReviewOutcome> failed;  // before it could be called
    std::size_t call = 0;
  };
  std::vector<Asked> asked;
  std::vector<WebhookCall> calls;
  for (const WebhookQuestion& question : questions) {
    const Webhook& hook = *question.hook;
    Asked& one = asked.emplace_back();
    if (hook.review_version.empty()) {
      one.failed = not_called(
          "could not create admission objects: webhook does not accept known AdmissionReview "
          "versions (v1, v1beta1)",
          400);
      continue;
    }
    auto call = address(hook);
    if (!call.ok()) {
      one.failed = not_called(cat("failed to call webhook: ", call.error().message()), 503);
      continue;
    }
    one.uid = runtime::make_uuid(sources_.runtime.random);
    call->timeout = std::min(hook.timeout, left);
    call->body = json::write(make_review(hook.review_version, one.uid, question.input));
    one.call = calls.size();
    calls.push_back(std::move(call).value());
  }
  const std::vector<WebhookReply> replies = transport_->post_all(calls);

  for (std::size_t i = 0; i < questions.size(); ++i) {
    const Webhook& hook = *questions[i].hook;
    if (asked[i].failed) {
      out.push_back(judge(write, hook, std::move(*asked[i].failed), {}));
      continue;
    }
    const WebhookReply& reply = replies[asked[i].call];
    ReviewOutcome outcome;
    if (reply.response.ok()) {
      outcome = read_review(hook.review_version, asked[i].uid, type_ == "admit", *reply.response);
    } else if (reply.response.error().code() == Code::invalid) {
      outcome = not_called(cat("could not get REST client: unable to load root certificates: ",
                               reply.response.error().message()),
                           500);
    } else {
      outcome = not_called(cat("failed to call webhook: ", reply.response.error().message()), 503);
    }
    out.push_back(judge(write, hook, std::move(outcome), reply.took));
  }
  return success();
}

WebhookVerdict WebhookCaller::judge(const Write& write, const Webhook& hook, ReviewOutcome outcome,
                                    Duration took) {
  WebhookVerdict out;
  Context& context = write.context;
  for (auto& [key, value] : outcome.answer.annotations) {
    if (context.audit) context.audit->annotate(cat(hook.name, "/", key), value);
  }
  for (std::string& text : outcome.answer.warnings) context.warn(std::move(text));
  if (outcome.fault) {
    const std::string why =
        cat("failed calling webhook ", quoted(hook.name), ": ", outcome.fault->why);
    const int code = outcome.fault->code;
    count(write, hook, took, code, !hook.ignores_failures, "calling_webhook_error");
    if (hook.ignores_failures) {
      log::warn("a webhook failed and is ignored", {{"webhook", hook.name}, {"error", why}});
      open_failures_.with({hook.name, type_}).add();
      out.ignored = true;
      return out;
    }
    log::warn("a webhook failed", {{"webhook", hook.name}, {"error", why}});
    out.refusal = internal_error(why);
    return out;
  }
  if (!outcome.answer.allowed) {
    out.refusal = refusal_of(hook.name, outcome.answer.status);
    count(write, hook, took, http_status(*out.refusal), true, "no_error");
    return out;
  }
  count(write, hook, took, 200, false, "");
  out.answer = std::move(outcome.answer);
  return out;
}

void WebhookCaller::count(const Write& write, const Webhook& hook, Duration took, int code,
                          bool rejected, std::string_view error_type) {
  const std::string_view operation = operation_name(write);
  requests_.with({hook.name, type_, operation, shown_code(code), shown(rejected)}).add();
  durations_.with({hook.name, type_, operation, shown(rejected)})
      .observe(std::chrono::duration<double>(took).count());
  if (rejected) {
    rejections_.with({hook.name, type_, operation, error_type, shown_code(code)}).add();
  }
}

void WebhookCaller::count_useless(const Write& write, const Webhook& hook) {
  rejections_.with({hook.name, type_, operation_name(write), "apiserver_internal_error", "0"})
      .add();
}

void WebhookCaller::count_excluded(const Write& write, const Webhook& hook) {
  excluded_.with({hook.name, "webhook", step(), operation_name(write)}).add();
}

void WebhookCaller::count_condition_errors(const Write& write, const Webhook& hook,
                                           std::size_t errors) {
  condition_errors_.with({hook.name, "webhook", step(), operation_name(write)}).add(errors);
}

}  // namespace dibs::server
