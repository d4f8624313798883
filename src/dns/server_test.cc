#include "dns/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dns/responder.h"
#include "dns/test_upstream.h"
#include "json/parse.h"
#include "runtime/real_runtime.h"

namespace dibs::dns {
namespace {

using testing::SizeIs;

const std::string kAddress("\x09\x09\x09\x09", 4);

Message question(std::string_view name, std::uint16_t type = type::a) {
  Message out;
  out.id = 4711;
  out.recursion_desired = true;
  out.questions = {{*Name::from_text(name), type}};
  return out;
}

struct DnsServerTest : testing::Test {
  runtime::RealRuntime runtime;
  Zone zone{{.domain = "cluster.local", .server_addresses = {"10.0.0.10"}}};
  std::unique_ptr<TestUpstream> upstream;
  std::vector<std::string> others;  // asked before the upstream
  std::vector<std::string> never;
  std::vector<Range> clients;
  std::unique_ptr<Server> server;

  DnsServerTest() {
    zone.set_namespace("default");
    zone.set_service(*json::parse(
        R"({"metadata":{"name":"web","namespace":"default"},"spec":{"clusterIP":"10.0.0.7"}})"));
    zone.set_complete();
  }
  void start(TestUpstream::Answers answers = {}) {
    if (answers) upstream = std::make_unique<TestUpstream>(std::move(answers));
    ServerOptions options;
    options.clients = clients;
    std::vector<std::string> servers = others;
    if (upstream) servers.push_back(upstream->where());
    options.forwarding.servers = [servers] { return servers; };
    options.forwarding.never = never;
    auto made = Server::start(std::move(options), zone, runtime.runtime().random);
    ASSERT_TRUE(made) << made.error().message();
    server = std::move(*made);
  }
  void add_endpoints(int count) {
    json::Value endpoints = json::Value::array();
    for (int i = 0; i < count; ++i) {
      endpoints.push(json::Value::object(
          {{"addresses", json::Value::array({cat("10.130.", i / 250, ".", i % 250)})}}));
    }
    zone.set_service(*json::parse(
        R"({"metadata":{"name":"db","namespace":"default"},"spec":{"clusterIP":"None"}})"));
    zone.set_slice(json::Value::object(
        {{"metadata",
          *json::parse(
              R"({"name":"db","namespace":"default","labels":{"kubernetes.io/service-name":"db"}})")},
         {"endpoints", endpoints}}));
  }
  Message ask(const Message& query, bool tcp = false) const {
    return TestClient(server->address(), tcp).ask(query);
  }
};

TEST_F(DnsServerTest, answers_names_of_the_cluster_over_both) {
  start();
  for (const bool tcp : {false, true}) {
    const Message answer = ask(question("Web.default.svc.cluster.local"), tcp);
    EXPECT_EQ(answer.id, 4711);
    EXPECT_TRUE(answer.response && answer.authoritative && answer.recursion_available);
    EXPECT_EQ(answer.questions.at(0).name.text(), "Web.default.svc.cluster.local.");
    ASSERT_THAT(answer.answers, SizeIs(1));
    EXPECT_EQ(address_text(answer.answers[0].data), "10.0.0.7");
    EXPECT_FALSE(answer.edns);
  }
}

TEST_F(DnsServerTest, cuts_off_for_datagrams_and_gives_all_over_tcp) {
  start();
  add_endpoints(500);
  Message query = question("db.default.svc.cluster.local");
  const Message plain = ask(query);
  EXPECT_TRUE(plain.truncated);
  EXPECT_GT(plain.answers.size(), 20U);
  query.edns = Edns{4096, 0, false};
  const Message larger = ask(query);
  EXPECT_TRUE(larger.truncated);
  EXPECT_GT(larger.answers.size(), plain.answers.size());
  EXPECT_EQ(larger.edns->size, kDatagram);
  const Message all = ask(query, true);
  EXPECT_FALSE(all.truncated);
  EXPECT_THAT(all.answers, SizeIs(500));
}

TEST_F(DnsServerTest, refuses_what_it_does_not_do) {
  start();
  Message query = question("web.default.svc.cluster.local");
  query.opcode = 5;
  EXPECT_EQ(ask(query).rcode, Rcode::not_implemented);
  query.opcode = 0;
  query.edns = Edns{1232, 1, false};
  EXPECT_EQ(ask(query).rcode, Rcode::bad_version);
  query.edns.reset();
  query.questions.push_back(query.questions.front());
  EXPECT_EQ(ask(query).rcode, Rcode::format_error);
  EXPECT_EQ(ask(question("cluster.local", type::axfr), true).rcode, Rcode::refused);
  TestClient client(server->address());
  client.send("\x12\x34" + std::string(10, '\x01'));
  EXPECT_EQ(parse(client.receive())->rcode, Rcode::format_error);
}

TEST_F(DnsServerTest, answers_no_answers) {
  start();
  TestClient client(server->address());
  Message answer = question("web.default.svc.cluster.local");
  answer.response = true;
  client.send(write(answer));
  client.send("");
  client.send("short");
  EXPECT_EQ(client.ask(question("web.default.svc.cluster.local")).answers.size(), 1U);
  EXPECT_EQ(client.receive(50), "");
}

TEST_F(DnsServerTest, asks_other_servers_once_and_remembers) {
  start([](const Message& query, bool) {
    return std::vector{write(TestUpstream::answer(query, kAddress))};
  });
  for (int i = 0; i < 3; ++i) {
    const Message answer = ask(question("Www.example.com"), i == 1);
    ASSERT_THAT(answer.answers, SizeIs(1));
    EXPECT_EQ(answer.questions.at(0).name.text(), "Www.example.com.");
    EXPECT_EQ(answer.answers[0].data, kAddress);
    EXPECT_FALSE(answer.edns);
    EXPECT_FALSE(answer.authoritative);
  }
  EXPECT_EQ(upstream->questions(), 1);
}

TEST_F(DnsServerTest, believes_only_answers_to_its_question) {
  start([](const Message& query, bool) {
    const Message right = TestUpstream::answer(query, kAddress);
    const std::string lie("\x06\x06\x06\x06", 4);
    Message other_id = TestUpstream::answer(query, lie);
    other_id.id ^= 1;
    Message other_name = TestUpstream::answer(query, lie);
    other_name.questions[0].name = *Name::from_text("other.example");
    Message other_type = TestUpstream::answer(query, lie);
    other_type.questions[0].type = type::aaaa;
    Message no_answer = TestUpstream::answer(query, lie);
    no_answer.response = false;
    return std::vector{write(other_id),  write(other_name),      write(other_type),
                       write(no_answer), std::string("garbage"), write(right)};
  });
  EXPECT_EQ(ask(question("www.example.com")).answers.at(0).data, kAddress);
}

TEST_F(DnsServerTest, asks_again_over_tcp_what_was_cut_off) {
  start([](const Message& query, bool tcp) {
    Message answer = TestUpstream::answer(query, kAddress);
    if (tcp) {
      for (char i = 0; i < 100; ++i) {
        answer.answers.push_back(answer.answers.front());
        answer.answers.back().data[3] = i;
      }
    } else {
      answer.truncated = true;
    }
    return std::vector{write(answer)};
  });
  EXPECT_TRUE(ask(question("www.example.com")).truncated);
  EXPECT_THAT(ask(question("www.example.com"), true).answers, SizeIs(101));
}

TEST_F(DnsServerTest, goes_on_to_the_next_server) {
  others = {"127.0.0.1:1"};  // nobody listens
  start([](const Message& query, bool) {
    return std::vector{write(TestUpstream::answer(query, kAddress))};
  });
  EXPECT_EQ(ask(question("www.example.com")).answers.at(0).data, kAddress);
}

TEST_F(DnsServerTest, does_without_edns_where_the_server_must) {
  start([](const Message& query, bool) {
    Message answer = TestUpstream::answer(query, kAddress);
    answer.edns.reset();
    if (query.edns) {
      answer.rcode = Rcode::format_error;
      answer.answers.clear();
    }
    return std::vector{write(answer)};
  });
  EXPECT_EQ(ask(question("www.example.com")).answers.at(0).data, kAddress);
}

TEST_F(DnsServerTest, says_that_nobody_answers) {
  start();
  EXPECT_EQ(ask(question("www.example.com")).rcode, Rcode::server_failure);
  others = {"127.0.0.1:1"};
  start();
  EXPECT_EQ(ask(question("www.example.com")).rcode, Rcode::server_failure);
}

TEST_F(DnsServerTest, asks_nobody_who_leads_back) {
  never = {"127.0.0.1"};
  start([](const Message& query, bool) {
    return std::vector{write(TestUpstream::answer(query, kAddress))};
  });
  EXPECT_EQ(ask(question("www.example.com")).rcode, Rcode::server_failure);
  EXPECT_EQ(upstream->questions(), 0);
}

TEST_F(DnsServerTest, hands_on_an_absence_and_no_recursion_without_being_asked) {
  start([](const Message& query, bool) {
    Message answer = query;
    answer.response = true;
    answer.rcode = Rcode::name_error;
    return std::vector{write(answer)};
  });
  EXPECT_EQ(ask(question("www.example.com")).rcode, Rcode::name_error);
  Message query = question("www.example.com");
  query.recursion_desired = false;
  EXPECT_EQ(ask(query).rcode, Rcode::refused);
  EXPECT_EQ(upstream->questions(), 1);
}

TEST_F(DnsServerTest, follows_aliases_inside_and_out) {
  const auto alias = [&](const char* name, const char* target) {
    zone.set_service(
        *json::parse(cat(R"({"metadata":{"name":")", name, R"(","namespace":"default"},)",
                         R"("spec":{"type":"ExternalName","externalName":")", target, R"("}})")));
  };
  alias("in", "web.default.svc.cluster.local");
  alias("out", "www.example.com");
  alias("round", "round.default.svc.cluster.local");
  start([](const Message& query, bool) {
    return std::vector{write(TestUpstream::answer(query, kAddress))};
  });
  const Message in = ask(question("in.default.svc.cluster.local"));
  ASSERT_THAT(in.answers, SizeIs(2));
  EXPECT_EQ(in.answers[0].type, type::cname);
  EXPECT_EQ(address_text(in.answers[1].data), "10.0.0.7");
  const Message out = ask(question("out.default.svc.cluster.local"));
  ASSERT_THAT(out.answers, SizeIs(2));
  EXPECT_EQ(out.answers[1].name.text(), "www.example.com.");
  EXPECT_TRUE(out.authoritative);
  EXPECT_LT(ask(question("round.default.svc.cluster.local")).answers.size(), 20U);
}

TEST_F(DnsServerTest, a_flood_of_one_leaves_others_served) {
  start();
  TestClient loud(server->address(), false, "127.0.0.2");
  const std::string bytes = write(question("web.default.svc.cluster.local"));
  for (int i = 0; i < 30000; ++i) loud.send(bytes);
  // What comes while the socket is full is lost: who asks, asks again.
  TestClient other(server->address());
  std::string answer;
  for (int i = 0; i < 20 && answer.empty(); ++i) {
    other.send(bytes);
    answer = other.receive(500);
  }
  EXPECT_THAT(parse(answer)->answers, SizeIs(1));
}

TEST_F(DnsServerTest, lets_go_of_who_sends_no_questions_over_tcp) {
  start();
  TestClient client(server->address(), true);
  client.send(std::string(5000, 'x'));
  EXPECT_EQ(client.receive(), "");
  std::vector<std::unique_ptr<TestClient>> many;
  for (unsigned i = 0; i < Clients::kMostConnections + 4; ++i) {
    many.push_back(std::make_unique<TestClient>(server->address(), true));
  }
  // The last of them are not let in; those before are served.
  EXPECT_EQ(many.back()->ask(question("web.default.svc.cluster.local")).answers.size(), 0U);
  EXPECT_EQ(many.front()->ask(question("web.default.svc.cluster.local")).answers.size(), 1U);
}

TEST_F(DnsServerTest, answers_this_machine_and_who_it_is_there_for) {
  clients = {*Range::parse("10.130.0.0/16")};
  start();
  EXPECT_THAT(ask(question("web.default.svc.cluster.local")).answers, SizeIs(1));
}

TEST(Clients, bounds_what_one_asks_and_how_many_there_are) {
  Clients clients({});
  const std::string one("\x0a\0\0\1", 4);
  int admitted = 0;
  for (int i = 0; i < 2 * Clients::kBurst; ++i) admitted += clients.admit(one, 0) != nullptr;
  EXPECT_EQ(admitted, static_cast<int>(Clients::kBurst));
  EXPECT_NE(clients.admit(one, 1000), nullptr);
  for (std::uint32_t i = 0; i < 3 * Clients::kMostClients; ++i) {
    clients.admit(std::string(reinterpret_cast<const char*>(&i), 4), 0);
  }
  EXPECT_EQ(clients.size(), Clients::kMostClients);
  clients.forget_quiet(60'000);
  EXPECT_EQ(clients.size(), 0U);
}

TEST(Clients, keeps_strangers_out) {
  Clients clients({*Range::parse("10.130.0.0/16")});
  EXPECT_NE(clients.find(*parse_address("10.130.4.4"), 0), nullptr);
  EXPECT_NE(clients.find(*parse_address("127.0.0.1"), 0), nullptr);
  EXPECT_EQ(clients.find(*parse_address("192.0.2.7"), 0), nullptr);
}

TEST(Cache, keeps_answers_as_long_as_they_say) {
  Cache cache;
  Message query = question("www.example.com");
  Message answer = TestUpstream::answer(query, kAddress, 10);
  cache.put("key", answer, 0);
  EXPECT_EQ(cache.find("key", 4'500)->answers.at(0).ttl, 6U);
  EXPECT_FALSE(cache.find("key", 10'000));
  cache.put("key", TestUpstream::answer(query, kAddress, 86400), 0);
  EXPECT_FALSE(cache.find("key", 31'000));
  cache.put("key", TestUpstream::answer(query, kAddress, 0), 0);
  EXPECT_FALSE(cache.find("key", 0));
  answer.rcode = Rcode::server_failure;
  cache.put("key", answer, 0);
  EXPECT_FALSE(cache.find("key", 0));
  Message negative = query;
  negative.rcode = Rcode::name_error;
  cache.put("key", negative, 0);
  EXPECT_FALSE(cache.find("key", 0));
  negative.authority = {{*Name::from_text("com"), type::soa, kInternet, 60,
                         soa_data(*Name::from_text("a"), *Name::from_text("b"), 1, 5)}};
  cache.put("key", negative, 0);
  EXPECT_TRUE(cache.find("key", 4'000));
  EXPECT_FALSE(cache.find("key", 5'000));
}

TEST(Cache, is_bounded) {
  Cache cache;
  Message answer = TestUpstream::answer(question("www.example.com"), std::string(4000, 'x'));
  for (int i = 0; i < 10'000; ++i) cache.put(cat("key", i), answer, 0);
  EXPECT_LE(cache.bytes(), Cache::kMostBytes);
  EXPECT_TRUE(cache.find("key9999", 0));
  EXPECT_FALSE(cache.find("key0", 0));
  answer.answers[0].data = "abcd";
  for (int i = 0; i < 10'000; ++i) cache.put(cat("key", i), answer, 0);
  EXPECT_LE(cache.entries(), Cache::kMostEntries);
}

}  // namespace
}  // namespace dibs::dns
