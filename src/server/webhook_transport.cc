#include "server/webhook_transport.h"

#include <algorithm>
#include <map>

#include "base/mutex.h"
#include "base/strings.h"
#include "net/http_client.h"
#include "runtime/blocking.h"

namespace dibs::server {
namespace {

/// Clients hold what is costly to make, the certificates they trust, and no connections.
constexpr std::size_t kMostClients = 256;
/// Until a thread is found for a call.
constexpr Duration kGrace = std::chrono::seconds(2);

/// A URL's server, and its path as Go's client sends it: never empty, no slash at its end.
struct Place {
  std::string server;
  std::string path;
};
Place place_of(const std::string& url) {
  const std::size_t scheme = url.find("://");
  const std::size_t slash = url.find('/', scheme == std::string::npos ? 0 : scheme + 3);
  if (slash == std::string::npos) return {url, "/"};
  std::string path = url.substr(slash);
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return {url.substr(0, slash), std::move(path)};
}

class HttpsWebhooks : public WebhookTransport, public std::enable_shared_from_this<HttpsWebhooks> {
 public:
  explicit HttpsWebhooks(runtime::Runtime& runtime) : runtime_(runtime) {}

  WebhookReply post(const WebhookCall& call) override {
    const Duration start = runtime_.clock.steady();
    auto response = ask(call);
    return {std::move(response), runtime_.clock.steady() - start};
  }

  std::vector<WebhookReply> post_all(const std::vector<WebhookCall>& calls) override {
    if (calls.size() < 2) return WebhookTransport::post_all(calls);
    const auto all = std::make_shared<Together>();
    Duration longest{};
    {
      const MutexLock lock(all->mutex);
      for (const WebhookCall& call : calls) {
        longest = std::max(longest, call.timeout);
        all->replies.push_back({Error::timeout("context deadline exceeded"), call.timeout});
      }
      all->open = calls.size() - 1;
    }
    for (std::size_t i = 1; i < calls.size(); ++i) {
      // Holds what it needs: nobody may wait for it any more when it comes to run.
      runtime_.executor.post([self = shared_from_this(), all, i, call = calls[i]] {
        WebhookReply reply = self->post(call);
        const MutexLock lock(all->mutex);
        all->replies[i] = std::move(reply);
        --all->open;
        all->ended.notify_all();
      });
    }
    WebhookReply first = post(calls[0]);
    const runtime::Blocking waits;
    MutexLock lock(all->mutex);
    // An executor that is stopped never begins them.
    all->ended.wait_for(lock, longest + kGrace,
                        [&]() DIBS_REQUIRES(all->mutex) { return all->open == 0; });
    std::vector<WebhookReply> out = all->replies;
    out[0] = std::move(first);
    return out;
  }

 private:
  using ClientPtr = std::shared_ptr<net::HttpClient>;
  struct Together {
    Mutex mutex;
    CondVar ended;
    std::vector<WebhookReply> replies DIBS_GUARDED_BY(mutex);
    std::size_t open DIBS_GUARDED_BY(mutex) = 0;
  };

  Result<net::Response> ask(const WebhookCall& call) {
    const Place place = place_of(call.url);
    DIBS_TRY(const auto client, client_for(call, place.server));
    net::Request request;
    request.method = "POST";
    // The backend is told how long it is waited for.
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(call.timeout).count();
    request.target = cat(place.path, "?timeout=", seconds, "s");
    request.headers.add("Content-Type", "application/json");
    request.headers.add("Accept", "application/json, */*");
    request.headers.add("User-Agent", "dibs-admission");
    request.headers.add("Connection", "close");
    request.body = call.body;
    const runtime::Blocking waits;
    auto answer = client->send(request, call.timeout);
    if (answer.ok()) return answer;
    return in_words(cat(place.server, request.target), answer.error());
  }

  Result<ClientPtr> client_for(const WebhookCall& call, const std::string& server) {
    const std::string key = cat(server, "\n", call.at_host, "\n", call.at_port, "\n",
                                static_cast<int>(call.reach), "\n", call.ca_pem);
    {
      const MutexLock lock(mutex_);
      if (auto found = clients_.find(key); found != clients_.end()) return found->second;
    }
    net::ClientOptions options;
    options.url = server;
    options.at_host = call.at_host;
    options.at_port = call.at_port;
    options.reach = call.reach;
    options.tls.ca_pem = call.ca_pem;
    options.max_idle = 0;
    options.max_response = kMostWebhookAnswer;
    DIBS_TRY(auto made, net::HttpClient::open(std::move(options)));
    ClientPtr client = std::move(made);
    const MutexLock lock(mutex_);
    if (clients_.size() >= kMostClients) clients_.clear();
    clients_[key] = client;
    return client;
  }

  /// The client leaves out a port that goes without saying; Go shows the URL as it was given.
  static Error in_words(const std::string& url, const Error& error) {
    std::string_view why = error.message();
    if (const auto end = why.find("\": "); end != std::string_view::npos)
      why.remove_prefix(end + 3);
    // Whatever it was that took too long.
    if (error.code() == Code::timeout) why = "context deadline exceeded";
    return {error.code(), cat("Post ", quoted(url), ": ", why)};
  }

  runtime::Runtime& runtime_;
  Mutex mutex_;
  std::map<std::string, ClientPtr> clients_ DIBS_GUARDED_BY(mutex_);
};

}  // namespace

std::vector<WebhookReply> WebhookTransport::post_all(const std::vector<WebhookCall>& calls) {
  std::vector<WebhookReply> out;
  for (const WebhookCall& call : calls) out.push_back(post(call));
  return out;
}

std::shared_ptr<WebhookTransport> make_webhook_transport(runtime::Runtime& runtime) {
  return std::make_shared<HttpsWebhooks>(runtime);
}

}  // namespace dibs::server
