#include "server/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/parse.h"
#include "net/gzip.h"
#include "net/x509.h"
#include "server/test_support.h"

namespace dibs::server {
namespace {

using test::from_text;
using test::Reply;
using test::TestServer;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kHere = "127.0.0.1:40000";

net::Request request(std::string method, std::string target, std::string body = {}) {
  net::Request out;
  out.method = std::move(method);
  out.target = std::move(target);
  out.body = std::move(body);
  out.peer.address = kHere;
  return out;
}

/// The files of a page, without a server.
class PageFiles : public testing::Test {
 protected:
  std::optional<net::Response> get(const net::Request& asked) {
    return page.answer(asked, *net::Target::parse(asked.target));
  }
  net::Response must_get(const net::Request& asked) {
    auto found = get(asked);
    EXPECT_TRUE(found) << asked.target;
    return found.value_or(net::Response{});
  }

  runtime::SimRuntime sim;
  const std::string index = net::gzip("<html>");
  const std::string script = net::gzip("1;");
  const std::vector<PageAsset> assets = {
      {"index.html", "text/html; charset=utf-8", "\"a\"", index},
      {"assets/page-1.js", "text/javascript; charset=utf-8", "\"b\"", script}};
  Page page{sim.runtime(), assets};
};

TEST_F(PageFiles, are_sent_packed_to_who_takes_that) {
  net::Request asked = request("GET", "/dibs/");
  asked.headers.add("Accept-Encoding", "br, gzip");

  const net::Response packed = must_get(asked);

  EXPECT_EQ(packed.status, 200);
  EXPECT_EQ(packed.headers.get("Content-Type"), "text/html; charset=utf-8");
  EXPECT_EQ(packed.headers.get("Content-Encoding"), "gzip");
  EXPECT_EQ(packed.body, index);
  const net::Response plain = must_get(request("GET", "/dibs/"));
  EXPECT_FALSE(plain.headers.has("Content-Encoding"));
  EXPECT_EQ(plain.body, "<html>");
}

TEST_F(PageFiles, allow_nothing_but_the_servers_own_scripts) {
  const net::Response found = must_get(request("GET", "/dibs/"));

  const std::string policy(found.headers.get("Content-Security-Policy"));
  EXPECT_THAT(policy, HasSubstr("default-src 'none'; script-src 'self'; connect-src 'self'; "));
  EXPECT_THAT(policy, HasSubstr("frame-ancestors 'none'"));
  EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
  EXPECT_EQ(found.headers.get("X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(found.headers.get("Referrer-Policy"), "no-referrer");
}

TEST_F(PageFiles, are_kept_by_browsers_where_the_name_tells_the_content) {
  EXPECT_EQ(must_get(request("GET", "/dibs/")).headers.get("Cache-Control"), "no-cache");
  EXPECT_THAT(
      std::string(must_get(request("GET", "/dibs/assets/page-1.js")).headers.get("Cache-Control")),
      HasSubstr("immutable"));

  net::Request again = request("GET", "/dibs/index.html");
  again.headers.add("If-None-Match", "\"a\"");
  EXPECT_EQ(must_get(again).status, 304);
  EXPECT_EQ(must_get(again).body, "");
}

TEST_F(PageFiles, are_no_others_than_those_there) {
  EXPECT_EQ(must_get(request("GET", "/dibs/assets/nothing.js")).status, 404);
  EXPECT_EQ(must_get(request("GET", "/dibs/assets/../index.html")).status, 404);
  EXPECT_EQ(must_get(request("GET", "/dibs")).headers.get("Location"), "/dibs/");
  EXPECT_FALSE(get(request("GET", "/dibs/backup")));
  EXPECT_FALSE(get(request("POST", "/dibs/restore")));
  EXPECT_FALSE(get(request("POST", "/dibs/")));
  EXPECT_FALSE(get(request("GET", "/dibsy")));
  EXPECT_FALSE(get(request("GET", "/api")));
}

TEST_F(PageFiles, are_for_this_machine_alone) {
  for (const char* address : {"127.0.0.1:1", "127.8.0.1:1", "[::1]:1", "[::ffff:127.0.0.1]:1"}) {
    net::Request asked = request("GET", "/dibs/");
    asked.peer.address = address;
    EXPECT_EQ(must_get(asked).status, 200) << address;
  }
  for (const char* address : {"10.0.0.7:1", "[::2]:1", "[fe80::1]:1", "1127.0.0.1:1", ""}) {
    net::Request asked = request("GET", "/dibs/");
    asked.peer.address = address;
    EXPECT_EQ(must_get(asked).status, 403) << address;
    EXPECT_THAT(must_get(asked).body, HasSubstr("ssh -L 6443:127.0.0.1:6443 MACHINE"));
    asked.headers.add("Host", "dibs.example:7443");
    EXPECT_THAT(must_get(asked).body, HasSubstr("ssh -L 7443:127.0.0.1:7443 MACHINE"));
    asked.headers.set("Host", "dibs.example:7443;x");
    EXPECT_THAT(must_get(asked).body, HasSubstr("ssh -L 6443:127.0.0.1:6443 MACHINE"));
  }
}

TEST_F(PageFiles, that_were_not_built_are_said_to_be_missing) {
  Page empty{sim.runtime(), {}};
  const net::Request asked = request("GET", "/dibs/");

  const auto found = empty.answer(asked, *net::Target::parse(asked.target));

  ASSERT_TRUE(found);
  EXPECT_EQ(found->status, 404);
  EXPECT_THAT(found->body, HasSubstr("make page"));
}

/// Browsers that come to a whole server.
class PageSession : public testing::Test {
 protected:
  static Options options() {
    Options out;
    out.account_key_pem = *net::make_private_key();
    out.static_tokens = "secret,alice,7,\"team\"\n";
    return out;
  }
  /// As the administrator by certificate, unless a token is given.
  net::Request as(net::Request out, const std::string& token = {}) {
    if (token.empty()) {
      out.peer.certificate = true;
      out.peer.common_name = "boss";
      out.peer.organizations = {"system:masters"};
    } else {
      out.headers.add("Authorization", "Bearer " + token);
    }
    return out;
  }
  std::string code(const std::string& token = {}) {
    const Reply reply = server.send(as(request("POST", "/dibs/codes"), token));
    EXPECT_EQ(reply.status, 201) << reply.text;
    return reply.body["code"].str();
  }
  Reply exchange(const std::string& code) {
    return server.send(request("POST", "/dibs/session", cat("{\"code\":\"", code, "\"}")));
  }
  std::string session(const std::string& token = {}) {
    return exchange(code(token)).body["token"].str();
  }
  int get_with(const std::string& token, std::string target = "/api/v1/nodes") {
    return server.send(as(request("GET", std::move(target)), token)).status;
  }
  Reply who(const std::string& token) {
    net::Request asked = as(request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews",
                                    R"({"apiVersion":"authentication.k8s.io/v1",
                                        "kind":"SelfSubjectReview"})"),
                            token);
    asked.headers.add("Content-Type", "application/json");
    return server.send(asked);
  }

  TestServer server{options()};
};

TEST_F(PageSession, has_the_rights_of_whoever_made_its_code) {
  const std::string boss = session();
  const std::string alice = session("secret");

  EXPECT_EQ(get_with(boss), 200);
  EXPECT_EQ(get_with(alice), 403);
  EXPECT_EQ(who(boss).body["status"]["userInfo"]["username"].str(), "boss");
  const Value known = who(alice).body["status"]["userInfo"];
  EXPECT_EQ(known["username"].str(), "alice");
  EXPECT_EQ(known["uid"].str(), "7");
  EXPECT_EQ(known["groups"][0].str(), "team");
}

TEST_F(PageSession, begins_once_for_a_code) {
  const std::string made = code();

  EXPECT_EQ(exchange(made).status, 201);
  const Reply again = exchange(made);

  EXPECT_EQ(again.status, 401);
  EXPECT_THAT(again.message(), HasSubstr("dibs open"));
  EXPECT_EQ(exchange("nonsense").status, 401);
  EXPECT_EQ(exchange("").status, 401);
}

TEST_F(PageSession, does_not_begin_by_an_old_code) {
  const std::string young = code();
  const std::string old = code();

  server.sim.advance(PageSessions::kCodeLife - std::chrono::seconds(1));
  EXPECT_EQ(exchange(young).status, 201);
  server.sim.advance(std::chrono::seconds(1));
  EXPECT_EQ(exchange(old).status, 401);
}

TEST_F(PageSession, ends_after_half_a_day) {
  const std::string token = session();

  server.sim.advance(PageSessions::kSessionLife - std::chrono::seconds(1));
  EXPECT_EQ(get_with(token), 200);
  server.sim.advance(std::chrono::seconds(1));
  EXPECT_EQ(get_with(token), 401);
}

TEST_F(PageSession, ends_when_it_is_ended) {
  const std::string token = session();
  const std::string other = session();

  EXPECT_EQ(server.send(as(request("DELETE", "/dibs/session"), token)).status, 200);

  EXPECT_EQ(get_with(token), 401);
  EXPECT_EQ(get_with(other), 200);
  EXPECT_EQ(server.send(request("DELETE", "/dibs/session")).status, 401);
}

TEST_F(PageSession, ends_with_the_token_that_it_stands_for) {
  server.add_account("default", "watcher");
  const Reply asked =
      server.post("/api/v1/namespaces/default/serviceaccounts/watcher/token",
                  from_text("{'apiVersion':'authentication.k8s.io/v1','kind':'TokenRequest',"
                            "'spec':{'expirationSeconds':3600}}"));
  ASSERT_EQ(asked.status, 201) << asked.text;
  const std::string token = session(asked.body["status"]["token"].str());
  EXPECT_EQ(get_with(token), 403);

  ASSERT_EQ(server.remove("/api/v1/namespaces/default/serviceaccounts/watcher").status, 200);

  EXPECT_EQ(get_with(token), 401);
}

TEST_F(PageSession, makes_no_other_session) {
  const std::string token = session();

  EXPECT_EQ(server.send(as(request("POST", "/dibs/codes"), token)).status, 403);
}

TEST_F(PageSession, is_not_for_strangers_nor_for_who_speaks_for_another) {
  EXPECT_EQ(server.send(request("POST", "/dibs/codes")).status, 403);
  EXPECT_EQ(server.send(as(request("POST", "/dibs/codes"), "wrong")).status, 401);
  net::Request other = as(request("POST", "/dibs/codes"));
  other.headers.add("Impersonate-User", "alice");
  EXPECT_EQ(server.send(other).status, 400);
  EXPECT_EQ(server.send(as(request("GET", "/dibs/codes"))).status, 405);
  net::Request far = as(request("POST", "/dibs/codes"));
  far.peer.address = "10.0.0.7:1";
  EXPECT_EQ(server.send(far).status, 403);
}

TEST_F(PageSession, takes_no_front_proxys_word_from_a_browser) {
  const std::string token = session("secret");
  net::Request asked = as(request("GET", "/api/v1/nodes"), token);
  asked.headers.add("X-Remote-User", "boss");
  asked.headers.add("X-Remote-Group", "system:masters");
  asked.peer.certificate = true;
  asked.peer.common_name = "front-proxy-client";

  EXPECT_EQ(server.send(asked).status, 403);
}

TEST_F(PageSession, refuses_what_is_no_code) {
  for (const char* body : {"", "{", "[]", "{}", "{\"code\":7}", "{\"code\":null}"}) {
    EXPECT_EQ(server.send(request("POST", "/dibs/session", body)).status, 400) << body;
  }
  EXPECT_EQ(server.send(request("PUT", "/dibs/session")).status, 405);
}

TEST_F(PageSession, is_one_of_a_bounded_number) {
  for (std::size_t i = 0; i < PageSessions::kMostOfUser; ++i) code("secret");
  EXPECT_EQ(server.send(as(request("POST", "/dibs/codes"), "secret")).status, 429);
  EXPECT_EQ(server.send(as(request("POST", "/dibs/codes"))).status, 201);
  server.sim.advance(PageSessions::kCodeLife);

  const std::string first = session("secret");
  server.sim.advance(std::chrono::seconds(1));
  for (std::size_t i = 0; i < PageSessions::kMostOfUser; ++i) session("secret");

  EXPECT_EQ(get_with(first), 401);
}

}  // namespace
}  // namespace dibs::server
