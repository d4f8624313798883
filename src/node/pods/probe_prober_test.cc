#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "node/pods/pod_fakes.h"
#include "node/pods/probe_network.h"
#include "node/pods/volume_test_support.h"
#include "rpc/server.h"
#include "runtime/sim_runtime.h"

namespace dibs::node {
namespace {

using json::Value;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::from_text;
using Outcome = ProbeAnswer::Outcome;

/// Listens on a port of the loopback and gives each connection one answer.
class Listener {
 public:
  explicit Listener(std::vector<std::string> answers = {}) {
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ::bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address);
    socklen_t size = sizeof address;
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    ::listen(fd_, 8);
    thread_ = std::thread([this, answers = std::move(answers)] { serve(answers); });
  }
  ~Listener() {
    ::shutdown(fd_, SHUT_RDWR);
    thread_.join();
    ::close(fd_);
  }
  int port() const { return port_; }
  const std::string& seen() const { return seen_; }

 private:
  void serve(const std::vector<std::string>& answers) {
    for (const auto& answer : answers) {
      const int peer = ::accept(fd_, nullptr, nullptr);
      if (peer < 0) return;
      char text[4096];
      const ssize_t got = ::read(peer, text, sizeof text);
      if (got > 0) seen_.append(text, static_cast<std::size_t>(got));
      [[maybe_unused]] const ssize_t sent = ::write(peer, answer.data(), answer.size());
      ::close(peer);
    }
  }
  int fd_ = -1;
  int port_ = 0;
  std::string seen_;
  std::thread thread_;
};

std::string reply(int status, const std::string& more = "") {
  return cat("HTTP/1.1 ", status, " X\r\nContent-Length: 2\r\n", more, "\r\nok");
}

ProbeAnswer http(int port, const char* probe = "{'path': '/healthz', 'scheme': 'HTTP'}") {
  return probe_http(from_text(probe), "127.0.0.1", port, seconds(5));
}

TEST(ProbeHttp, passes_from_200_to_399) {
  const struct {
    int status;
    Outcome outcome;
    const char* output;
  } cases[] = {{200, Outcome::success, "ok"},
               {399, Outcome::success, "ok"},
               {404, Outcome::failure, "HTTP probe failed with statuscode: 404"},
               {500, Outcome::failure, "HTTP probe failed with statuscode: 500"}};
  for (const auto& one : cases) {
    Listener server({reply(one.status)});
    const auto answer = http(server.port());
    EXPECT_EQ(answer.outcome, one.outcome) << answer.output;
    EXPECT_EQ(answer.output, one.output);
  }
}

TEST(ProbeHttp, sends_what_the_probe_says) {
  std::string seen;
  {
    Listener server({reply(200)});
    http(server.port(),
         "{'path': 'x?a=b', 'httpHeaders': [{'name': 'X-Mine', 'value': 'yes'}, "
         "{'name': 'Accept', 'value': ''}]}");
    seen = server.seen();
  }
  EXPECT_THAT(seen, testing::StartsWith("GET /x?a=b HTTP/1.1\r\n"));
  EXPECT_THAT(seen, testing::HasSubstr("X-Mine: yes\r\n"));
  EXPECT_THAT(seen, testing::HasSubstr("User-Agent: kube-probe/1.37\r\n"));
  EXPECT_THAT(seen, testing::Not(testing::HasSubstr("Accept")));
}

TEST(ProbeHttp, follows_redirects_on_the_same_host_only) {
  Listener here({reply(302, "Location: /there\r\n"), reply(200)});
  EXPECT_EQ(http(here.port()).outcome, Outcome::success);
  Listener away({reply(302, "Location: http://192.0.2.1/\r\n")});
  const auto answer = http(away.port());
  EXPECT_EQ(answer.outcome, Outcome::warning);
  EXPECT_EQ(answer.output, "Probe terminated redirects, Response body: ok");
}

TEST(ProbeNetwork, words_refusals_as_go_does) {
  int port = 0;
  {
    Listener gone;
    port = gone.port();
  }
  EXPECT_EQ(probe_tcp("127.0.0.1", port, seconds(1)).output,
            cat("dial tcp 127.0.0.1:", port, ": connect: connection refused"));
  EXPECT_EQ(http(port).output,
            cat("Get \"http://127.0.0.1:", port, "/healthz\": dial tcp 127.0.0.1:", port,
                ": connect: connection refused"));
  EXPECT_EQ(probe_grpc("127.0.0.1", port, "", seconds(1)).output,
            cat("timeout: failed to connect service \"127.0.0.1:", port,
                "\" within 1s: context deadline exceeded"));
}

TEST(ProbeNetwork, asks_nobody_for_simulated_containers) {
  runtime::SimRuntime sim;
  test::FakeMachine machine(sim.runtime());
  test::Budget budget;
  test::FakeRuntime containers(machine, budget);
  Listener stranger({reply(500)});
  ProbedContainer container;
  container.pod_ip = "127.0.0.1";
  container.container = from_text("{'name': 'c', 'ports': [{'name': 'web', 'containerPort': 80}]}");
  const auto ask = [&](bool simulated, const std::string& probe) {
    return make_prober(containers, simulated)(container, from_text(probe), seconds(5));
  };

  for (const char* kind : {"httpGet", "tcpSocket", "grpc"}) {
    const std::string probe = cat("{'", kind, "': {'port': ", stranger.port(), "}}");
    EXPECT_EQ(ask(true, probe).outcome, Outcome::success) << kind;
  }
  const std::string elsewhere =
      cat("{'httpGet': {'host': 'localhost', 'port': ", stranger.port(), "}}");
  EXPECT_EQ(ask(true, elsewhere).outcome, Outcome::success);
  EXPECT_EQ(ask(true, "{'tcpSocket': {'port': 'nowhere'}}").outcome, Outcome::unknown);
  // He would have answered.
  EXPECT_EQ(ask(false, elsewhere).outcome, Outcome::failure);
}

TEST(ProbeTcp, passes_when_somebody_listens) {
  Listener server;
  EXPECT_EQ(probe_tcp("127.0.0.1", server.port(), seconds(1)).outcome, Outcome::success);
}

TEST(ProbeGrpc, asks_the_health_service) {
  rpc::Methods methods;
  methods.unary["/grpc.health.v1.Health/Check"] = [](std::string_view request) -> rpc::Reply {
    if (request.empty()) return {{}, "\x08\x01"};
    if (request == "\x0a\x04slow") return {{}, "\x08\x02"};
    return {{rpc::Code::not_found, "unknown service"}, {}};
  };
  int port = 0;
  auto server = rpc::serve_tcp(port, std::move(methods));
  ASSERT_TRUE(server.ok()) << server.error().message();

  EXPECT_EQ(probe_grpc("127.0.0.1", port, "", seconds(5)).outcome, Outcome::success);
  EXPECT_EQ(probe_grpc("127.0.0.1", port, "slow", seconds(5)).output,
            "service unhealthy (responded with \"NOT_SERVING\")");
  EXPECT_EQ(probe_grpc("127.0.0.1", port, "other", seconds(5)).output,
            "error: health rpc probe failed: rpc error: code = NotFound desc = unknown service");
}

TEST(ProbeGrpc, names_a_server_without_health) {
  int port = 0;
  auto server = rpc::serve_tcp(port, {});
  ASSERT_TRUE(server.ok()) << server.error().message();
  const auto answer = probe_grpc("127.0.0.1", port, "", seconds(5));
  EXPECT_EQ(answer.outcome, Outcome::failure);
  EXPECT_THAT(answer.output,
              testing::StartsWith("error: this server does not implement the grpc health protocol "
                                  "(grpc.health.v1.Health): "));
}

}  // namespace
}  // namespace dibs::node
