#include "server/extension_transport.h"

#include <cstdint>
#include <map>

#include "base/mutex.h"
#include "base/strings.h"
#include "net/http_client.h"
#include "runtime/blocking.h"

namespace dibs::server {
namespace {

/// Until the head of an answer has come.
constexpr Duration kTimeout = std::chrono::seconds(60);
/// Documents of a server: its discovery, its OpenAPI.
constexpr std::size_t kMostAnswer = std::size_t{32} << 20;
/// Contexts hold certificates, and no connections.
constexpr std::size_t kMostContexts = 256;

class HttpsExtensions : public ExtensionTransport {
 public:
  HttpsExtensions(std::string certificate_pem, std::string key_pem)
      : certificate_pem_(std::move(certificate_pem)), key_pem_(std::move(key_pem)) {}

  Result<net::Response> send(const ExtensionPlace& place, const net::Request& request,
                             Duration timeout) override {
    net::ClientOptions options;
    options.url = url_of(place);
    options.at_host = place.host;
    options.at_port = place.port;
    options.reach = place.reach;
    options.tls = tls_options(place);
    options.max_idle = 0;
    options.max_response = kMostAnswer;
    DIBS_TRY(const auto client, net::HttpClient::open(std::move(options)));
    net::Request sent = request;
    sent.headers.set("Connection", "close");
    const runtime::Blocking waits;
    return client->send(sent, timeout);
  }

  void open(const ExtensionPlace& place, const net::Request& request, net::Exchange& client,
            std::function<void(Result<net::StreamAnswer>)> opened) override {
    auto tls = context_for(place);
    if (!tls.ok()) return opened(std::move(tls).error());
    const auto sent = client_.request_at(place.host, place.port, url_of(place),
                                         std::move(tls).value(), request, kTimeout, place.reach);
    client.on_gone([sent] { sent->cancel(); });
    sent->start(std::move(opened));
  }

  void set_certificate(std::string certificate_pem, std::string key_pem) override {
    const MutexLock lock(mutex_);
    certificate_pem_ = std::move(certificate_pem);
    key_pem_ = std::move(key_pem);
    contexts_.clear();
    ++certificates_;
  }

  void close() override { client_.close(); }

 private:
  static std::string url_of(const ExtensionPlace& place) { return cat("https://", place.name); }

  net::TlsClientOptions tls_options(const ExtensionPlace& place) {
    net::TlsClientOptions out;
    out.ca_pem = place.unchecked ? std::string() : place.ca_pem;
    out.insecure = place.unchecked;
    const MutexLock lock(mutex_);
    out.certificate_pem = certificate_pem_;
    out.key_pem = key_pem_;
    return out;
  }

  Result<std::shared_ptr<net::TlsContext>> context_for(const ExtensionPlace& place) {
    const std::string key = cat(place.unchecked ? "-" : "+", place.ca_pem);
    std::uint64_t certificates = 0;
    {
      const MutexLock lock(mutex_);
      if (auto found = contexts_.find(key); found != contexts_.end()) return found->second;
      certificates = certificates_;
    }
    DIBS_TRY(std::shared_ptr<net::TlsContext> made, net::TlsContext::client(tls_options(place)));
    const MutexLock lock(mutex_);
    // One that was made with the certificate before serves this request, and no other.
    if (certificates != certificates_) return made;
    if (contexts_.size() >= kMostContexts) contexts_.clear();
    contexts_[key] = made;
    return made;
  }

  net::StreamClient client_;
  Mutex mutex_;
  std::string certificate_pem_ DIBS_GUARDED_BY(mutex_);
  std::string key_pem_ DIBS_GUARDED_BY(mutex_);
  std::uint64_t certificates_ DIBS_GUARDED_BY(mutex_) = 0;  // counts changes of them
  std::map<std::string, std::shared_ptr<net::TlsContext>> contexts_ DIBS_GUARDED_BY(mutex_);
};

}  // namespace

std::shared_ptr<ExtensionTransport> make_extension_transport(std::string certificate_pem,
                                                             std::string key_pem) {
  return std::make_shared<HttpsExtensions>(std::move(certificate_pem), std::move(key_pem));
}

}  // namespace dibs::server
