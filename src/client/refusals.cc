#include "client/refusals.h"

#include <map>
#include <string>

#include "base/log.h"
#include "base/mutex.h"
#include "json/parse.h"

namespace dibs::client {
namespace {

constexpr Duration kQuiet = std::chrono::minutes(1);
/// There are fewer verbs and resources than this; nobody fills the memory with others.
constexpr std::size_t kMostKept = 1000;

/// Shared with answers on their way.
class Ledger {
 public:
  explicit Ledger(runtime::Runtime& runtime) : runtime_(runtime) {}

  void heard(std::string_view message) {
    // Admission refuses with 403 as well, for other reasons. An object's name stands before this.
    const std::size_t begin = message.find("User \"");
    if (begin == std::string_view::npos) return;
    message.remove_prefix(begin);
    if (message.find(" cannot ") == std::string_view::npos) return;
    const std::string what(message.substr(0, message.find(" in the namespace ")));
    const Duration now = runtime_.clock.steady();
    std::size_t times = 0;
    {
      const MutexLock lock(mutex_);
      if (told_.size() >= kMostKept && !told_.contains(what)) return;
      auto& [since, count] = told_.try_emplace(what, now - kQuiet, 0).first->second;
      ++count;
      if (now - since < kQuiet) return;
      since = now;
      times = std::exchange(count, 0);
    }
    log::warn("the server refuses what is needed: a right is missing",
              {{"refused", what}, {"times", times}});
  }

  void heard(const Response& response) {
    if (response.status != 403) return;
    if (!response.value.is_null()) return heard(response.value["message"].as_string());
    heard_text(response.body);
  }

  void heard_text(const std::string& body) {
    if (const auto status = json::parse(body)) heard((*status)["message"].as_string());
  }

 private:
  runtime::Runtime& runtime_;
  Mutex mutex_;
  /// When it was told, and how often it was heard since.
  std::map<std::string, std::pair<Duration, std::size_t>, std::less<>> told_
      DIBS_GUARDED_BY(mutex_);
};

class WarningTransport final : public Transport {
 public:
  WarningTransport(std::unique_ptr<Transport> inner, runtime::Runtime& runtime)
      : inner_(std::move(inner)), ledger_(std::make_shared<Ledger>(runtime)) {}

  Result<Response> send(Request request) override {
    auto answer = inner_->send(std::move(request));
    if (answer.ok()) ledger_->heard(*answer);
    return answer;
  }

  void send_async(Request request, std::function<void(Result<Response>)> done) override {
    inner_->send_async(std::move(request),
                       [ledger = ledger_, done = std::move(done)](Result<Response> answer) {
                         if (answer.ok()) ledger->heard(*answer);
                         done(std::move(answer));
                       });
  }

  std::unique_ptr<TransportStream> open_stream(Request request, StreamHandlers handlers) override {
    // Of a refused stream: the Status, which comes as its bytes.
    struct Refused {
      bool is = false;
      std::string body;
    };
    const auto refused = std::make_shared<Refused>();
    StreamHandlers listening = handlers;
    listening.opened = [refused, opened = handlers.opened](const net::Response& head) {
      refused->is = head.status == 403;
      if (opened) opened(head);
    };
    listening.data = [refused, data = handlers.data](std::string_view bytes) {
      if (refused->is) refused->body.append(bytes);
      if (data) data(bytes);
    };
    listening.ended = [ledger = ledger_, refused, ended = handlers.ended](Result<> outcome) {
      if (refused->is) ledger->heard_text(refused->body);
      if (ended) ended(std::move(outcome));
    };
    return inner_->open_stream(std::move(request), std::move(listening));
  }

  bool protects_allocations() const override { return inner_->protects_allocations(); }
  json::Pool& trees() override { return inner_->trees(); }

 private:
  const std::unique_ptr<Transport> inner_;
  const std::shared_ptr<Ledger> ledger_;
};

}  // namespace

std::unique_ptr<Transport> warn_of_refusals(std::unique_ptr<Transport> inner,
                                            runtime::Runtime& runtime) {
  return std::make_unique<WarningTransport>(std::move(inner), runtime);
}

}  // namespace dibs::client
