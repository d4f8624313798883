#pragma once
// A node's port over the fake runtime, with one pod "p" (uid "u", container "c") in namespace "n",
// and a client that shows a certificate. For tests.

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "base/strings.h"
#include "json/parse.h"
#include "net/stream_client.h"
#include "net/testing/test_support.h"
#include "net/x509.h"
#include "node/streams/fake_runtime.h"
#include "node/streams/node_server.h"
#include "runtime/real_runtime.h"

namespace dibs::node {

inline constexpr Duration kWait = std::chrono::seconds(20);

class TestNode : public ::testing::Test {
 protected:
  TestNode() {
    ::signal(SIGPIPE, SIG_IGN);  // as every process of the product
    char path[] = "/tmp/dibs-node-XXXXXX";
    folder_ = ::mkdtemp(path);
    log_ = folder_ + "/0.log";
    container_ = containers_.add("u", "c", log_);
    set_state(cat(R"("containerID":"fake://)", container_, R"(","state":{"running":{}})"));
    const net::Validity validity{Time::from_seconds(1577836800), Time::from_seconds(4102444800)};
    ca_ = *net::make_ca("test-ca", validity);
    admin_ = *net::issue_client_certificate(ca_, "admin", {"system:masters"}, validity);
    guest_ = *net::issue_client_certificate(ca_, "guest", {"guests"}, validity);
    NodeServerOptions options;
    options.host = "127.0.0.1";
    options.port = 0;
    options.node_name = "node-0";
    options.tls.client_ca_pem = ca_.certificate_pem;
    options.pod = [this](const std::string& name_space,
                         const std::string& name) -> std::optional<json::Value> {
      if (name_space != "n" || name != "p") return std::nullopt;
      return pod_;
    };
    options.pods = [this] { return std::vector<json::Value>{pod_}; };
    options.metrics = [] { return std::string("up 1\n"); };
    server_ = *NodeServer::start(runtime_.runtime(), containers_, options);
  }
  ~TestNode() override {
    server_.reset();
    std::filesystem::remove_all(folder_);
  }

  void set_state(std::string_view status) {
    pod_ = *json::parse(cat(R"({"metadata":{"name":"p","namespace":"n","uid":"u"},)",
                            R"("spec":{"containers":[{"name":"c"}]},)",
                            R"("status":{"containerStatuses":[{"name":"c",)", status, "}]}}"));
  }

  void log(std::string_view lines) {
    std::ofstream file(log_, std::ios::app);
    file << lines;
  }

  Result<net::StreamAnswer> open(net::Request request, const net::Credential* as) {
    net::TlsClientOptions tls;
    tls.insecure = true;
    if (as != nullptr) {
      tls.certificate_pem = as->certificate_pem;
      tls.key_pem = as->key_pem;
    }
    DIBS_TRY(auto context, net::TlsContext::client(tls));
    return net::open_stream(client_, cat("https://127.0.0.1:", server_->port()), context, request,
                            kWait);
  }

  /// "CODE BODY"
  std::string get(std::string target, const net::Credential* as) {
    net::Request request;
    request.method = "GET";
    request.target = std::move(target);
    auto answer = open(std::move(request), as);
    if (!answer.ok()) return answer.error().message();
    auto body = net::whole_body(answer->body, kWait);
    return cat(answer->head.status, " ", body.ok() ? *body : body.error().message());
  }
  std::string get(std::string target) { return get(std::move(target), &admin_); }

  static net::Request websocket(std::string target, std::string protocol) {
    net::Request request;
    request.method = "GET";
    request.target = std::move(target);
    request.headers.add("Connection", "Upgrade");
    request.headers.add("Upgrade", "websocket");
    request.headers.add("Sec-WebSocket-Version", "13");
    request.headers.add("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
    if (!protocol.empty()) request.headers.add("Sec-WebSocket-Protocol", std::move(protocol));
    return request;
  }

  static net::Request spdy(std::string target, const std::vector<std::string>& protocols) {
    net::Request request;
    request.method = "POST";
    request.target = std::move(target);
    request.headers.add("Connection", "Upgrade");
    request.headers.add("Upgrade", "SPDY/3.1");
    for (const std::string& one : protocols) {
      request.headers.add("X-Stream-Protocol-Version", one);
    }
    return request;
  }

  runtime::RealRuntime runtime_;
  FakeRuntime containers_;
  net::Credential ca_, admin_, guest_;
  std::string folder_, log_, container_;
  json::Value pod_;
  std::unique_ptr<NodeServer> server_;
  net::StreamClient client_;
};

}  // namespace dibs::node
