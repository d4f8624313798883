// Streams to nodes: what the server asks a node for, and what it makes of the answers. The node is
// a real HTTPS server with a script.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <future>

#include "base/mutex.h"
#include "base/strings.h"
#include "json/parse.h"
#include "net/http_server.h"
#include "net/stream_client.h"
#include "net/testing/test_support.h"
#include "net/websocket.h"
#include "net/x509.h"
#include "runtime/real_runtime.h"
#include "server/api_server.h"
#include "server/test_support.h"
#include "store/memory_store.h"

namespace dibs::server {
namespace {

using test::from_text;
using test::simple_pod;
using testing::HasSubstr;

constexpr Duration kWait = std::chrono::seconds(20);

net::Response plain(int status, std::string body) {
  net::Response out;
  out.status = status;
  out.headers.add("Content-Type", "text/plain");
  out.body = std::move(body);
  return out;
}

/// An address of this machine that others reach, or "".
std::string outer_address() {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return "";
  std::string found;
  for (const ifaddrs* one = all; one != nullptr && found.empty(); one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    if ((one->ifa_flags & IFF_LOOPBACK) != 0 || (one->ifa_flags & IFF_UP) == 0) continue;
    char text[INET_ADDRSTRLEN] = "";
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr, text,
                sizeof text);
    if (!std::string_view(text).starts_with("169.254.")) found = text;
  }
  ::freeifaddrs(all);
  return found;
}

/// An API server on a socket, with a node behind it that plays what a test wants.
class NodeStreamsTest : public testing::Test {
 protected:
  NodeStreamsTest() {
    const net::Validity validity{Time::from_seconds(1577836800), Time::from_seconds(4102444800)};
    ca_ = *net::make_ca("test-ca", validity);
    const auto serving = *net::issue_server_certificate(ca_, "node", {"127.0.0.1"}, validity);
    const auto client = *net::issue_client_certificate(ca_, "apiserver", {}, validity);
    net::ServerOptions at_node;
    at_node.tls =
        net::TlsServerOptions{serving.certificate_pem, serving.key_pem, ca_.certificate_pem};
    node_ = *net::HttpServer::start(
        at_node, [this](net::Request request, std::unique_ptr<net::Exchange> exchange) {
          {
            MutexLock lock(mutex_);
            asked_.push_back(
                cat(request.method, " ", request.target, " by ", request.peer.common_name));
          }
          answer_(std::move(request), std::move(exchange));
        });
    store_ = store::make_memory_store();
    Options options;
    options.node_client_certificate_pem = client.certificate_pem;
    options.node_client_key_pem = client.key_pem;
    options.node_ca_pem = ca_.certificate_pem;
    options.own_nodes = {"n", "proxy", "proxy.x"};
    options.own_nodes_host = "127.0.0.1";
    server_ = *ApiServer::open(runtime_.runtime(), *store_, options);
    // A plain connection can show no certificate.
    http_ = *net::HttpServer::start(
        {}, [this](net::Request request, std::unique_ptr<net::Exchange> exchange) {
          const std::string as(request.headers.get("X-As"));
          request.peer.certificate = true;
          request.peer.common_name = as.empty() ? "admin" : as;
          request.peer.organizations = {as.empty() ? "system:masters" : "people"};
          server_->handle(std::move(request), std::move(exchange));
        });
    send("POST", "/api/v1/namespaces/default/serviceaccounts",
         "{'apiVersion':'v1','kind':'ServiceAccount','metadata':{'name':'default'}}");
    send("POST", "/api/v1/nodes", "{'apiVersion':'v1','kind':'Node','metadata':{'name':'n'}}");
    set_port(node_->port());
    json::Value pod = simple_pod("p");
    pod.mut("spec").set("nodeName", "n");
    EXPECT_THAT(send("POST", "/api/v1/namespaces/default/pods", test::to_text(pod)),
                HasSubstr("201 "));
  }
  ~NodeStreamsTest() override {
    http_->stop();
    node_->stop();
    server_->close();
  }

  void set_port(int port, std::string_view node = "n") {
    send("PATCH", cat("/api/v1/nodes/", node, "/status"),
         cat("{'status':{'addresses':[{'type':'Hostname','address':'nowhere.invalid'},"
             "{'type':'InternalIP','address':'127.0.0.1'}],"
             "'daemonEndpoints':{'kubeletEndpoint':{'Port':",
             port, "}}}}"));
  }

  /// The pod, ready, at an address.
  void run_at(std::string_view address) {
    send("PATCH", cat(kPod, "/status"),
         cat("{'status':{'phase':'Running','podIP':'", address, "','podIPs':[{'ip':'", address,
             "'}],'conditions':[{'type':'Ready','status':'True'}]}}"));
  }

  net::Request request(std::string method, std::string target, std::string_view body = {}) {
    net::Request out;
    out.method = std::move(method);
    out.target = std::move(target);
    out.body = body;
    for (char& c : out.body) {
      if (c == '\'') c = '"';
    }
    out.headers.add("Content-Type",
                    out.method == "PATCH" ? "application/merge-patch+json" : "application/json");
    return out;
  }

  Result<net::StreamAnswer> open(const net::Request& request) {
    return net::open_stream(client_, cat("http://127.0.0.1:", http_->port()), nullptr, request,
                            kWait);
  }

  /// "CODE BODY"
  std::string send(const net::Request& request) {
    auto answer = open(request);
    if (!answer.ok()) return answer.error().message();
    if (answer->body == nullptr) return "101";
    auto body = net::whole_body(answer->body, kWait);
    return cat(answer->head.status, " ", body.ok() ? *body : body.error().message());
  }
  std::string send(std::string method, std::string target, std::string_view body = {}) {
    return send(request(std::move(method), std::move(target), body));
  }

  static net::Request upgrade(net::Request request, const std::string& protocol) {
    request.headers.add("Connection", "Upgrade");
    request.headers.add("Upgrade", protocol);
    return request;
  }

  std::string last_asked() {
    MutexLock lock(mutex_);
    return asked_.empty() ? "nothing" : asked_.back();
  }

  static constexpr const char* kPod = "/api/v1/namespaces/default/pods/p";

  net::Credential ca_;
  Mutex mutex_;
  std::vector<std::string> asked_ DIBS_GUARDED_BY(mutex_);
  net::Handler answer_ = [](net::Request, std::unique_ptr<net::Exchange> exchange) {
    exchange->respond(plain(200, "log\n"));
  };
  runtime::RealRuntime runtime_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<net::HttpServer> node_;
  std::unique_ptr<ApiServer> server_;
  std::unique_ptr<net::HttpServer> http_;
  net::StreamClient client_;
};

TEST_F(NodeStreamsTest, asks_the_node_for_logs) {
  EXPECT_EQ(send("GET", cat(kPod, "/log")), "200 log\n");
  EXPECT_EQ(last_asked(), "GET /containerLogs/default/p/c by apiserver");
  send("GET", cat(kPod,
                  "/log?container=c&follow=true&previous=false&timestamps=true&tailLines=5&"
                  "limitBytes=9&sinceSeconds=3600"));
  EXPECT_EQ(last_asked(),
            "GET /containerLogs/default/p/c?follow=true&limitBytes=9&sinceSeconds=3600&"
            "tailLines=5&timestamps=true by apiserver");
}

TEST_F(NodeStreamsTest, passes_a_log_on_as_it_comes) {
  Mutex mutex;
  CondVar changed;
  std::shared_ptr<net::BodyStream> at_node;
  answer_ = [&](net::Request, std::unique_ptr<net::Exchange> exchange) {
    MutexLock lock(mutex);
    at_node = exchange->stream(plain(200, ""));
    at_node->write(share("one\n"));
    changed.notify_all();
  };
  auto answer = open(request("GET", cat(kPod, "/log?follow=true")));
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->head.headers.get("Content-Type"), "text/plain");
  auto got = std::make_shared<std::string>();
  answer->body->start(
      [&, got](std::string piece) {
        MutexLock lock(mutex);
        *got += piece;
        changed.notify_all();
      },
      [&, got](bool whole) {
        MutexLock lock(mutex);
        *got += whole ? "<end>" : "<broken>";
        changed.notify_all();
      });
  MutexLock lock(mutex);
  ASSERT_TRUE(changed.wait_for(lock, kWait, [&] { return *got == "one\n"; }));
  at_node->write(share("two\n"));
  ASSERT_TRUE(changed.wait_for(lock, kWait, [&] { return *got == "one\ntwo\n"; }));
  at_node->finish();
  EXPECT_TRUE(changed.wait_for(lock, kWait, [&] { return *got == "one\ntwo\n<end>"; }));
}

TEST_F(NodeStreamsTest, ends_the_nodes_log_when_the_client_goes) {
  std::promise<void> gone;
  answer_ = [&](net::Request, std::unique_ptr<net::Exchange> exchange) {
    auto stream = exchange->stream(plain(200, ""));
    stream->write(share("one\n"));
    stream->on_closed([&gone, stream] { gone.set_value(); });
  };
  {
    auto answer = open(request("GET", cat(kPod, "/log?follow=true")));
    ASSERT_TRUE(answer.ok());
  }
  EXPECT_EQ(gone.get_future().wait_for(kWait), std::future_status::ready);
}

TEST_F(NodeStreamsTest, leads_links_of_a_page_through_the_proxy_again) {
  answer_ = [](net::Request request, std::unique_ptr<net::Exchange> exchange) {
    net::Response page = plain(200, "<a href=\"/x\">x</a>");
    page.headers.set("Content-Type", "text/html; charset=utf-8");
    if (request.target == "/old") page.headers.set("Location", "/new");
    exchange->respond(std::move(page));
  };
  EXPECT_EQ(send("GET", "/api/v1/nodes/n/proxy/"), "200 <a href=\"/api/v1/nodes/n/proxy/x\">x</a>");
  auto root = open(request("GET", "/api/v1/nodes/n/proxy?a=/b"));
  ASSERT_TRUE(root.ok());
  EXPECT_EQ(root->head.status, 301);
  EXPECT_EQ(root->head.headers.get("Location"), "/api/v1/nodes/n/proxy/?a=/b");
  EXPECT_EQ(send("GET", "/api/v1/nodes/n/proxy/a/b?c=/d"),
            "200 <a href=\"/api/v1/nodes/n/proxy/x\">x</a>");
  auto moved = open(request("GET", "/api/v1/nodes/n/proxy/old"));
  ASSERT_TRUE(moved.ok());
  EXPECT_EQ(moved->head.headers.get("Location"), "/api/v1/nodes/n/proxy/new");
}

TEST_F(NodeStreamsTest, lets_the_server_behind_a_proxy_answer_options) {
  answer_ = [](net::Request request, std::unique_ptr<net::Exchange> exchange) {
    exchange->respond(plain(200, request.method));
  };
  EXPECT_EQ(send("OPTIONS", "/api/v1/nodes/n/proxy/"), "200 OPTIONS");
  EXPECT_EQ(send("OPTIONS", "/api/v1/nodes/n").substr(0, 3), "405");
}

TEST_F(NodeStreamsTest, sends_a_log_over_a_websocket) {
  for (const std::string protocol : {"", "binary.k8s.io", "base64.binary.k8s.io"}) {
    net::Request wanted = upgrade(request("GET", cat(kPod, "/log")), "websocket");
    wanted.headers.add("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
    wanted.headers.add("Sec-WebSocket-Version", "13");
    if (!protocol.empty()) {
      wanted.headers.add("Sec-WebSocket-Protocol",
                         cat("base64url.bearer.authorization.k8s.io.eA, ", protocol));
    }
    auto answer = open(wanted);
    ASSERT_TRUE(answer.ok());
    ASSERT_EQ(answer->head.status, 101) << protocol;
    EXPECT_EQ(answer->head.headers.get("Sec-WebSocket-Protocol"), protocol);
    auto bytes = std::make_shared<std::string>();
    auto closed = std::make_shared<std::promise<void>>();
    answer->upgraded->start([bytes](std::string_view more) { bytes->append(more); },
                            [closed] { closed->set_value(); });
    // The node's log ends at once, and so does the socket, when the client agrees.
    answer->upgraded->write(net::ws_masked_frame(net::WsOp::close, "", 7));
    ASSERT_EQ(closed->get_future().wait_for(kWait), std::future_status::ready);
    net::WsReader reader(false, 1 << 20);
    std::vector<net::WsEvent> events;
    EXPECT_EQ(reader.feed(*bytes, events), 0);
    ASSERT_FALSE(events.empty());
    EXPECT_EQ(events[0].data, "");
    EXPECT_EQ(events[0].binary, protocol != "base64.binary.k8s.io");
  }
}

TEST_F(NodeStreamsTest, does_not_send_a_log_by_a_protocol_of_commands) {
  net::Request wanted = upgrade(request("GET", cat(kPod, "/log")), "websocket");
  wanted.headers.add("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
  wanted.headers.add("Sec-WebSocket-Version", "13");
  wanted.headers.add("Sec-WebSocket-Protocol", "v5.channel.k8s.io");
  EXPECT_THAT(send(wanted), testing::StartsWith("400 "));
}

TEST_F(NodeStreamsTest, words_a_nodes_refusal_of_a_log) {
  answer_ = [](net::Request, std::unique_ptr<net::Exchange> exchange) {
    exchange->respond(plain(400, "container \"c\" in pod \"p\" is waiting to start: X"));
  };
  EXPECT_EQ(send("GET", cat(kPod, "/log")),
            R"(400 {"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",)"
            R"("message":"container \"c\" in pod \"p\" is waiting to start: X",)"
            R"("reason":"BadRequest","code":400})"
            "\n");
  answer_ = [](net::Request, std::unique_ptr<net::Exchange> exchange) {
    exchange->respond(plain(500, "boom"));
  };
  EXPECT_THAT(send("GET", cat(kPod, "/log")),
              HasSubstr(R"("message":"Internal error occurred: boom","reason":"InternalError")"));
}

TEST_F(NodeStreamsTest, tells_that_a_node_does_not_answer) {
  const int port = node_->port();
  node_->stop();
  EXPECT_THAT(send("GET", cat(kPod, "/log")),
              HasSubstr(cat(R"("message":"Get \"https://127.0.0.1:)", port,
                            R"(/containerLogs/default/p/c\": dial tcp 127.0.0.1:)", port,
                            R"(: connect: connection refused","code":500)")));
  EXPECT_THAT(
      send(upgrade(request("POST", cat(kPod, "/exec?command=true&stdout=true")), "SPDY/3.1")),
      HasSubstr(cat(R"("message":"error dialing backend: dial tcp 127.0.0.1:)", port,
                    R"(: connect: connection refused","code":500)")));
}

TEST_F(NodeStreamsTest, joins_an_upgrade_with_the_nodes) {
  answer_ = [](net::Request request, std::unique_ptr<net::Exchange> exchange) {
    net::Response head;
    head.status = 101;
    head.headers.add("Connection", "Upgrade");
    head.headers.add("Upgrade", std::string(request.headers.get("Upgrade")));
    head.headers.add("X-Stream-Protocol-Version", "v4.channel.k8s.io");
    exchange->upgrade_to(std::move(head), [](std::shared_ptr<net::ByteStream> stream) {
      stream->start(
          [stream](std::string_view bytes) {
            stream->write(cat("<", bytes, ">"));
            stream->close();
          },
          [] {});
    });
  };
  net::Request wanted = upgrade(
      request("POST",
              cat(kPod, "/exec?command=ls&command=-l&stdin=true&stdout=true&stderr=false&tty=1")),
      "SPDY/3.1");
  wanted.headers.add("X-Stream-Protocol-Version", "v4.channel.k8s.io");
  wanted.headers.add("Authorization", "Bearer secret");
  auto answer = open(wanted);
  ASSERT_TRUE(answer.ok());
  ASSERT_EQ(answer->head.status, 101);
  EXPECT_EQ(answer->head.headers.get("X-Stream-Protocol-Version"), "v4.channel.k8s.io");
  EXPECT_EQ(last_asked(),
            "POST /exec/default/p/c?command=ls&command=-l&input=1&output=1&tty=1 by apiserver");
  struct State {
    std::string text;
    std::promise<void> closed;
  };
  auto state = std::make_shared<State>();
  answer->upgraded->start([state](std::string_view bytes) { state->text.append(bytes); },
                          [state] { state->closed.set_value(); });
  answer->upgraded->write("hello");
  ASSERT_EQ(state->closed.get_future().wait_for(kWait), std::future_status::ready);
  EXPECT_EQ(state->text, "<hello>");
}

TEST_F(NodeStreamsTest, passes_a_refused_upgrade_back) {
  answer_ = [](net::Request request, std::unique_ptr<net::Exchange> exchange) {
    EXPECT_FALSE(request.headers.has("Authorization"));
    exchange->respond(plain(500, "container not found (\"c\")"));
  };
  EXPECT_EQ(send(upgrade(request("POST", cat(kPod, "/attach?stdout=true")), "SPDY/3.1")),
            "500 container not found (\"c\")");
  EXPECT_EQ(last_asked(), "POST /attach/default/p/c?output=1 by apiserver");
}

TEST_F(NodeStreamsTest, wants_the_right_to_create_for_a_websocket) {
  send("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles",
       "{'apiVersion':'rbac.authorization.k8s.io/v1','kind':'ClusterRole','metadata':{'name':'r'},"
       "'rules':[{'apiGroups':[''],'resources':['pods/exec'],'verbs':['get']}]}");
  send("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
       "{'apiVersion':'rbac.authorization.k8s.io/v1','kind':'ClusterRoleBinding','metadata':"
       "{'name':'r'},'roleRef':{'apiGroup':'rbac.authorization.k8s.io','kind':'ClusterRole',"
       "'name':'r'},'subjects':[{'apiGroup':'rbac.authorization.k8s.io','kind':'User',"
       "'name':'ann'}]}");
  net::Request wanted =
      upgrade(request("GET", cat(kPod, "/exec?command=true&stdout=true")), "websocket");
  wanted.headers.add("X-As", "ann");
  // Roles count soon after they are written.
  std::string answer = "cannot get";
  for (int i = 0; i < 1000 && answer.find("cannot get") != std::string::npos; ++i) {
    answer = send(wanted);
  }
  EXPECT_THAT(answer, HasSubstr(R"(pods \"p\" is forbidden: User \"ann\" cannot create resource )"
                                R"(\"pods/exec\" in API group \"\" in the namespace \"default\")"));
  EXPECT_EQ(last_asked(), "nothing");
}

TEST_F(NodeStreamsTest, wants_an_upgrade) {
  EXPECT_THAT(
      send("POST", cat(kPod, "/exec?command=true&stdout=true")),
      HasSubstr(R"("message":"Upgrade request required","reason":"BadRequest","code":400)"));
  EXPECT_THAT(send("GET", cat(kPod, "/portforward")), HasSubstr("Upgrade request required"));
}

TEST_F(NodeStreamsTest, waits_for_silent_nodes_without_threads) {
  constexpr int kMany = 400;  // more than the pool has threads
  const net::SilentPort silent;
  send("POST", "/api/v1/nodes", "{'apiVersion':'v1','kind':'Node','metadata':{'name':'silent'}}");
  set_port(silent.port(), "silent");
  json::Value pod = simple_pod("mute");
  pod.mut("spec").set("nodeName", "silent");
  send("POST", "/api/v1/namespaces/default/pods", test::to_text(pod));
  // Shared: the requests are told of the client's end only after this test's.
  const auto answered = std::make_shared<std::atomic<int>>(0);
  for (int i = 0; i < kMany; ++i) {
    client_
        .request(cat("http://127.0.0.1:", http_->port()), nullptr,
                 request("GET", "/api/v1/namespaces/default/pods/mute/log"), kWait)
        ->start([answered](const auto&) { ++*answered; });
  }
  EXPECT_EQ(send("GET", cat(kPod, "/log")), "200 log\n");
  EXPECT_EQ(*answered, 0);
  EXPECT_LT(runtime_.thread_count(), 100U);
  client_.close();
}

TEST_F(NodeStreamsTest, gives_up_with_a_client_that_hangs_up) {
  const net::SilentPort silent;
  set_port(silent.port());
  for (const char* what : {"/log", "/exec?command=true&stdout=true", "/proxy/"}) {
    auto asked = upgrade(request("GET", cat(kPod, what)), "SPDY/3.1");
    if (std::string_view(what) == "/proxy/") {
      asked = request("GET", "/api/v1/nodes/n/proxy/");
    }
    const auto sent =
        client_.request(cat("http://127.0.0.1:", http_->port()), nullptr, asked, kWait);
    std::promise<void> ended;
    sent->start([&](const auto&) { ended.set_value(); });
    const int at_node = silent.accept_one();
    sent->cancel();
    net::see_end(at_node);
    ended.get_future().get();
  }
}

TEST_F(NodeStreamsTest, reaches_a_nodes_other_pages) {
  answer_ = [](net::Request, std::unique_ptr<net::Exchange> exchange) {
    exchange->respond(plain(200, "page"));
  };
  EXPECT_EQ(send("GET", "/api/v1/nodes/n/proxy/stats/summary?x=1"), "200 page");
  EXPECT_EQ(last_asked(), "GET /stats/summary?x=1 by apiserver");
  EXPECT_THAT(send("GET", "/api/v1/nodes/other/proxy/pods"), HasSubstr("404 "));
}

TEST_F(NodeStreamsTest, finds_the_rest_of_a_path_whatever_comes_before_it) {
  answer_ = [](net::Request request, std::unique_ptr<net::Exchange> exchange) {
    exchange->respond(plain(200, request.target));
  };
  for (const char* name : {"proxy", "proxy.x"}) {
    send("POST", "/api/v1/nodes",
         cat("{'apiVersion':'v1','kind':'Node','metadata':{'name':'", name, "'}}"));
    set_port(node_->port(), name);
  }
  EXPECT_EQ(send("GET", "/api/v1/nodes/proxy/proxy/pods"), "200 /pods");
  EXPECT_EQ(send("GET", "/api/v1/nodes/proxy.x/proxy/a/proxy/b?c=/proxy"),
            "200 /a/proxy/b?c=/proxy");
  EXPECT_EQ(send("GET", "/api/v1/nodes%2Fproxy/proxy%2fa%2Fb"), "200 /a%2Fb");
  EXPECT_EQ(send("POST", "/api/v1/nodes/proxy/proxy"), "200 /");
  EXPECT_EQ(send("POST", "/api/v1/nodes/proxy/proxy?x"), "200 /?x");
  EXPECT_EQ(send("GET", "http://elsewhere/api/v1/nodes/proxy/proxy/a"), "200 /a");
}

TEST_F(NodeStreamsTest, takes_no_container_from_an_annotation) {
  json::Value pod =
      simple_pod("two", "{'containers':[{'name':'a','image':'i'},{'name':'b','image':'i'}]}");
  pod.mut("spec").set("nodeName", "n");
  pod.mut("metadata")
      .set("annotations",
           json::Value::object({{"kubectl.kubernetes.io/default-container",
                                 "x HTTP/1.1\r\nA: b\r\n\r\nGET /exec/default/p/c"}}));
  ASSERT_THAT(send("POST", "/api/v1/namespaces/default/pods", json::write(pod)), HasSubstr("201 "));
  const std::string path = "/api/v1/namespaces/default/pods/two";
  EXPECT_THAT(send("GET", cat(path, "/log")),
              HasSubstr("a container name must be specified for pod two, choose one of: [a b]"));
  EXPECT_THAT(
      send(upgrade(request("POST", cat(path, "/exec?command=true&stdout=true")), "SPDY/3.1")),
      HasSubstr("a container name must be specified"));
  EXPECT_THAT(send("GET", cat(path, "/log?container=b%0d%0aA:%20b")),
              HasSubstr("is not valid for pod two"));
  EXPECT_EQ(last_asked(), "nothing");
  EXPECT_EQ(send("GET", cat(path, "/log?container=b")), "200 log\n");
  EXPECT_EQ(last_asked(), "GET /containerLogs/default/two/b by apiserver");
}

TEST_F(NodeStreamsTest, shows_nodes_a_renewed_certificate) {
  const net::Validity validity{Time::from_seconds(1577836800), Time::from_seconds(4102444800)};
  const auto renewed = *net::issue_client_certificate(ca_, "renewed", {}, validity);
  EXPECT_FALSE(server_->set_node_client("rubbish", renewed.key_pem).ok());
  send("GET", cat(kPod, "/log"));
  EXPECT_EQ(last_asked(), "GET /containerLogs/default/p/c by apiserver");
  ASSERT_TRUE(server_->set_node_client(renewed.certificate_pem, renewed.key_pem).ok());
  send("GET", cat(kPod, "/log"));
  EXPECT_EQ(last_asked(), "GET /containerLogs/default/p/c by renewed");
}

TEST_F(NodeStreamsTest, reaches_nothing_on_the_loopback_but_agents) {
  auto web = *net::HttpServer::start({}, [](net::Request, std::unique_ptr<net::Exchange> exchange) {
    exchange->respond(plain(200, "secret"));
  });
  const auto refused = HasSubstr(R"("message":"address not allowed","reason":"BadRequest")");
  EXPECT_THAT(send("GET", cat("/api/v1/nodes/n:", web->port(), "/proxy/")), refused);
  send("POST", "/api/v1/nodes", "{'apiVersion':'v1','kind':'Node','metadata':{'name':'m'}}");
  set_port(web->port(), "m");
  EXPECT_THAT(send("GET", "/api/v1/nodes/m/proxy/"), refused);
  send("PATCH", kPod, "{'metadata':{'labels':{'app':'x'}}}");
  const std::string service = "/api/v1/namespaces/default/services";
  send("POST", service,
       cat("{'apiVersion':'v1','kind':'Service','metadata':{'name':'s'},'spec':{'selector':"
           "{'app':'x'},'ports':[{'port':80,'targetPort':",
           web->port(), "}]}}"));
  for (const char* address : {"127.0.0.1", "::1", "169.254.169.254", "fe80::1"}) {
    run_at(address);
    EXPECT_THAT(send("GET", cat(kPod, ":", web->port(), "/proxy/")), refused) << address;
    EXPECT_THAT(send("GET", cat(service, "/s/proxy/")), refused) << address;
    EXPECT_THAT(send(upgrade(request("GET", cat(kPod, ":", web->port(), "/proxy/")), "x")), refused)
        << address;
  }
  EXPECT_THAT(send("GET", cat(kPod, ":80%0d%0aA/proxy/")), HasSubstr("invalid pod request"));
  EXPECT_THAT(send("GET", "/api/v1/nodes/n:80%3fx/proxy/"), HasSubstr("invalid node request"));
}

TEST_F(NodeStreamsTest, is_refused_by_pods_of_simulated_nodes_without_asking_anybody) {
  send("PATCH", "/api/v1/nodes/n/status",
       "{'status':{'nodeInfo':{'containerRuntimeVersion':'dibs-sim://0.1.0'}}}");
  send("PATCH", kPod, "{'metadata':{'labels':{'app':'x'}}}");
  const std::string service = "/api/v1/namespaces/default/services";
  send("POST", service,
       "{'apiVersion':'v1','kind':'Service','metadata':{'name':'s'},'spec':{'selector':{'app':'x'},"
       "'ports':[{'port':80,'targetPort':8080}]}}");
  run_at("10.128.0.1");
  const auto refused = [](const char* place) {
    return testing::AllOf(
        testing::StartsWith("503 "),
        HasSubstr(cat("error trying to reach service: dial tcp ", place,
                      ": connect: connection refused\",\"reason\":\"ServiceUnavailable\"")));
  };
  EXPECT_THAT(send("GET", cat(kPod, "/proxy/")), refused("10.128.0.1:80"));
  EXPECT_THAT(send("GET", "/api/v1/namespaces/default/pods/https:p:/proxy/"),
              refused("10.128.0.1:443"));
  EXPECT_THAT(send("GET", cat(service, "/s/proxy/")), refused("10.128.0.1:8080"));
  EXPECT_THAT(send(upgrade(request("GET", cat(kPod, ":9/proxy/")), "x")), refused("10.128.0.1:9"));
  // Its Node's own address is the machine's.
  run_at("127.0.0.1");
  EXPECT_THAT(send("GET", cat(kPod, "/proxy/")), HasSubstr("address not allowed"));
}

TEST_F(NodeStreamsTest, reaches_pods_and_services) {
  const std::string address = outer_address();
  if (address.empty()) GTEST_SKIP() << "this machine has the loopback only";
  net::ServerOptions everywhere;
  everywhere.host = "0.0.0.0";
  auto web = *net::HttpServer::start(
      everywhere, [](net::Request request, std::unique_ptr<net::Exchange> exchange) {
        exchange->respond(plain(200, cat(request.method, " ", request.target, " ", request.body)));
      });
  EXPECT_THAT(send("GET", cat(kPod, "/proxy/")), HasSubstr("address not allowed"));
  run_at(address);
  EXPECT_EQ(send("GET", cat(kPod, ":", web->port(), "/proxy/a/b?c=d")), "200 GET /a/b?c=d ");
  EXPECT_EQ(send("POST", cat(kPod, ":", web->port(), "/proxy"), "[]"), "200 POST / []");

  send("PATCH", kPod, "{'metadata':{'labels':{'app':'x'}}}");
  const std::string service = "/api/v1/namespaces/default/services";
  send("POST", service,
       cat("{'apiVersion':'v1','kind':'Service','metadata':{'name':'s'},'spec':{'selector':"
           "{'app':'x'},'ports':[{'port':80,'targetPort':",
           web->port(), "}]}}"));
  EXPECT_EQ(send("GET", cat(service, "/s/proxy/z")), "200 GET /z ");
  EXPECT_EQ(send("GET", cat(service, "/s:80/proxy/z")), "200 GET /z ");
  EXPECT_THAT(send("GET", cat(service, "/s:81/proxy/z")),
              HasSubstr(R"(no service port \"81\" found for service \"s\")"));
  send("PATCH", kPod, "{'metadata':{'labels':{'app':'y'}}}");
  EXPECT_THAT(send("GET", cat(service, "/s/proxy/z")),
              HasSubstr(R"(503 {"kind":"Status","apiVersion":"v1","metadata":{},"status":)"
                        R"("Failure","message":"no endpoints available for service \"s\"")"));
}

}  // namespace
}  // namespace dibs::server
