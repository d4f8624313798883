#include "server/audit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/strings.h"
#include "json/parse.h"
#include "server/test_support.h"

namespace dibs::server {
namespace {

using test::from_text;
using test::kConfigMaps;
using test::make_request;
using test::TestServer;
using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

std::string read_file(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

class AuditTest : public testing::Test {
 protected:
  AuditTest() {
    std::string pattern = "/tmp/dibs-audit-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    path_ = folder_ + "/audit.log";
  }
  ~AuditTest() override { fs::remove_all(folder_); }

  Options with(const std::string& rules) const {
    Options options;
    options.audit_policy = cat("apiVersion: audit.k8s.io/v1\nkind: Policy\n", rules);
    options.audit_log.path = path_;
    return options;
  }
  /// What the log holds; the server must have ended.
  std::vector<Value> events() const {
    std::vector<Value> out;
    const std::string text = read_file(path_);
    for (std::string_view line : split(text, '\n')) {
      if (line.empty()) continue;
      auto value = json::parse(line);
      EXPECT_TRUE(value.ok()) << line;
      if (value.ok()) out.push_back(*value);
    }
    return out;
  }
  /// "stage verb code" of each.
  static std::vector<std::string> brief(const std::vector<Value>& events) {
    std::vector<std::string> out;
    for (const Value& one : events) {
      out.push_back(cat(one["stage"].as_string(), " ", one["verb"].as_string(), " ",
                        one["responseStatus"]["code"].as_int()));
    }
    return out;
  }

  std::string folder_;
  std::string path_;
};

TEST_F(AuditTest, tells_who_did_what_and_why_he_could) {
  {
    TestServer server(with("rules: [{level: Metadata, namespaces: [default]}]"));
    auto request = make_request("POST", kConfigMaps, R"({"metadata":{"name":"a"}})");
    request.headers.set("User-Agent", "tests/1");
    request.headers.add("X-Forwarded-For", "192.0.2.1, 192.0.2.2");
    request.peer.address = "192.0.2.9:4711";
    EXPECT_EQ(server.send(request).status, 201);
    // Not of the namespace.
    EXPECT_EQ(server.get("/api/v1/namespaces").status, 200);
  }
  const auto told = events();
  EXPECT_THAT(brief(told), ElementsAre("RequestReceived create 0", "ResponseComplete create 201"));
  const Value& last = told.back();
  EXPECT_EQ(last["kind"].str(), "Event");
  EXPECT_EQ(last["apiVersion"].str(), "audit.k8s.io/v1");
  EXPECT_EQ(last["level"].str(), "Metadata");
  EXPECT_EQ(last["auditID"], told.front()["auditID"]);
  EXPECT_EQ(last["requestURI"].str(), kConfigMaps);
  EXPECT_EQ(last["userAgent"].str(), "tests/1");
  EXPECT_EQ(test::to_text(last["sourceIPs"]), "['192.0.2.1','192.0.2.2','192.0.2.9']");
  EXPECT_EQ(last["objectRef"]["name"].str(), "a");
  EXPECT_EQ(last["objectRef"]["resource"].str(), "configmaps");
  EXPECT_EQ(last["annotations"]["authorization.k8s.io/decision"].str(), "allow");
  EXPECT_TRUE(last["requestObject"].is_null());
  EXPECT_THAT(last["stageTimestamp"].str(), testing::MatchesRegex("....-..-..T..:..:..\\.......Z"));
  struct stat file = {};
  ASSERT_EQ(::stat(path_.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600U);
}

TEST_F(AuditTest, tells_no_code_that_begins_a_session_of_the_page) {
  std::string code;
  {
    TestServer server(with("rules: [{level: RequestResponse}]"));
    auto request = make_request("POST", "/dibs/codes");
    request.peer.address = "127.0.0.1:4711";
    const auto reply = server.send(request);
    ASSERT_EQ(reply.status, 201);
    code = reply.body["code"].str();
    ASSERT_FALSE(code.empty());
  }
  EXPECT_THAT(brief(events()), ElementsAre("RequestReceived post 0", "ResponseComplete post 201"));
  EXPECT_EQ(read_file(path_).find(code), std::string::npos);
}

TEST_F(AuditTest, tells_bodies_where_the_policy_wants_them) {
  {
    TestServer server(
        with("omitStages: [RequestReceived]\nomitManagedFields: true\n"
             "rules:\n- {level: None, resources: [{resources: [secrets]}]}\n"
             "- {level: Request, verbs: [delete]}\n- level: RequestResponse\n"));
    server.post(kConfigMaps, from_text("{'metadata': {'name': 'a'}, 'data': {'k': '<v>'}}"));
    server.post("/api/v1/namespaces/default/secrets", from_text("{'metadata': {'name': 's'}}"));
    server.remove(cat(kConfigMaps, "/a"), R"({"gracePeriodSeconds":0})");
    server.get(cat(kConfigMaps, "/a"));
  }
  const auto told = events();
  EXPECT_THAT(brief(told), ElementsAre("ResponseComplete create 201", "ResponseComplete delete 200",
                                       "ResponseComplete get 404"));
  EXPECT_EQ(told[0]["requestObject"]["data"]["k"].str(), "<v>");
  EXPECT_EQ(told[0]["responseObject"]["metadata"]["name"].str(), "a");
  EXPECT_TRUE(told[0]["responseObject"]["metadata"]["managedFields"].is_null());
  EXPECT_EQ(told[1]["requestObject"]["gracePeriodSeconds"].as_int(), 0);
  EXPECT_TRUE(told[1]["responseObject"].is_null());
  EXPECT_EQ(told[2]["responseStatus"]["reason"].str(), "NotFound");
  EXPECT_THAT(read_file(path_), testing::Not(HasSubstr("\"resource\":\"secrets\"")));
}

/// Eleven objects of a million bytes: more than an event may have.
void add_eleven_million_bytes(TestServer& server) {
  for (int i = 0; i < 11; ++i) {
    server.add_config_map(cat("m", i), cat("{'k':'", std::string(1'000'000, 'x'), "'}"));
  }
}

TEST_F(AuditTest, does_without_bodies_that_are_too_long_and_says_so) {
  {
    TestServer server(
        with("omitStages: [RequestReceived]\nrules:\n"
             "- {level: RequestResponse, verbs: [list, deletecollection]}\n"));
    add_eleven_million_bytes(server);
    // Whole, in pieces; and as values, which clients in the process take.
    EXPECT_EQ(server.get(kConfigMaps).status, 200);
    calls::Request near{make_request("GET", kConfigMaps)};
    near.takes_values = true;
    EXPECT_EQ(server.send(std::move(near)).status, 200);
    EXPECT_EQ(server.get(cat(kConfigMaps, "?limit=2")).status, 200);
    EXPECT_EQ(server.remove(kConfigMaps, R"({"gracePeriodSeconds":0})").status, 200);
  }
  const auto told = events();
  EXPECT_THAT(brief(told),
              ElementsAre("ResponseComplete list 200", "ResponseComplete list 200",
                          "ResponseComplete list 200", "ResponseComplete deletecollection 200"));
  for (const std::size_t i : {0, 1, 3}) {
    EXPECT_EQ(told[i]["level"].str(), "RequestResponse") << i;
    EXPECT_EQ(told[i]["annotations"]["audit.k8s.io/truncated"].str(), "true") << i;
    EXPECT_TRUE(told[i]["requestObject"].is_null()) << i;
    EXPECT_TRUE(told[i]["responseObject"].is_null()) << i;
    EXPECT_EQ(told[i]["objectRef"]["resource"].str(), "configmaps") << i;
  }
  EXPECT_FALSE(told[2]["annotations"].contains("audit.k8s.io/truncated"));
  EXPECT_EQ(told[2]["responseObject"]["items"].size(), 2U);
}

TEST_F(AuditTest, has_nothing_to_leave_out_where_bodies_are_not_told) {
  {
    TestServer server(
        with("omitStages: [RequestReceived]\nrules: [{level: Request, verbs: [list]}]"));
    add_eleven_million_bytes(server);
    server.get(kConfigMaps);
  }
  const auto told = events();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_FALSE(told[0]["annotations"].contains("audit.k8s.io/truncated"));
}

TEST_F(AuditTest, tells_of_strangers_impersonators_and_the_refused) {
  {
    TestServer server(with("rules: [{level: Metadata}]\nomitStages: [RequestReceived]"));
    auto stranger = make_request("GET", kConfigMaps);
    stranger.peer = {};
    stranger.headers.add("Authorization", "Bearer wrong");
    EXPECT_EQ(server.send(stranger).status, 401);
    auto other = make_request("GET", kConfigMaps);
    other.headers.add("Impersonate-User", "ann");
    EXPECT_EQ(server.send(other).status, 403);
  }
  const auto told = events();
  EXPECT_THAT(brief(told), ElementsAre("ResponseStarted list 401", "ResponseComplete list 403"));
  EXPECT_EQ(told[0]["responseStatus"]["message"].str(), "Authentication failed, attempted: bearer");
  EXPECT_TRUE(told[0]["user"].empty());
  EXPECT_EQ(told[1]["impersonatedUser"]["username"].str(), "ann");
  EXPECT_NE(told[1]["user"]["username"].str(), "ann");
  EXPECT_EQ(told[1]["annotations"]["authorization.k8s.io/decision"].str(), "forbid");
  EXPECT_EQ(told[1]["responseStatus"]["reason"].str(), "Forbidden");
}

TEST_F(AuditTest, tells_what_policies_found) {
  {
    TestServer server(
        with("rules: [{level: Metadata, verbs: [create], namespaces: [default]}]\n"
             "omitStages: [RequestReceived]"));
    constexpr const char* kGroup = "/apis/admissionregistration.k8s.io/v1/";
    EXPECT_EQ(server
                  .post(cat(kGroup, "validatingadmissionpolicies"),
                        from_text("{'metadata': {'name': 'p'}, 'spec': {'matchConstraints':"
                                  " {'resourceRules': [{'apiGroups': [''], 'apiVersions': ['v1'],"
                                  " 'operations': ['CREATE'], 'resources': ['configmaps']}]},"
                                  " 'validations': [{'expression': 'true'}, {'expression':"
                                  " 'object.metadata.name == \\'good\\'', 'message': 'no'}],"
                                  " 'auditAnnotations': [{'key': 'who', 'valueExpression':"
                                  " 'string(object.metadata.name)'}]}}"))
                  .status,
              201);
    EXPECT_EQ(server
                  .post(cat(kGroup, "validatingadmissionpolicybindings"),
                        from_text("{'metadata': {'name': 'b'}, 'spec': {'policyName': 'p',"
                                  " 'validationActions': ['Audit']}}"))
                  .status,
              201);
    server.sim.advance(std::chrono::seconds(10));
    EXPECT_EQ(server.post(kConfigMaps, test::config_map("bad")).status, 201);
    EXPECT_EQ(server.post(kConfigMaps, test::config_map("good")).status, 201);
  }
  const auto told = events();
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0]["annotations"]["p/who"].str(), "bad");
  EXPECT_EQ(told[0]["annotations"]["validation.policy.admission.k8s.io/validation_failure"].str(),
            R"([{"message":"no","policy":"p","binding":"b","expressionIndex":1,)"
            R"("validationActions":["Audit"]}])");
  EXPECT_EQ(told[1]["annotations"]["p/who"].str(), "good");
  EXPECT_TRUE(
      told[1]["annotations"]["validation.policy.admission.k8s.io/validation_failure"].is_null());
}

TEST_F(AuditTest, tells_how_pods_stand_to_the_security_levels) {
  {
    TestServer server(
        with("rules: [{level: Metadata, verbs: [create], resources: [{resources: [pods]}]}]\n"
             "omitStages: [RequestReceived]"));
    server.add_account("default");
    server.patch("/api/v1/namespaces/default", "merge",
                 R"({"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"baseline",)"
                 R"("pod-security.kubernetes.io/audit":"restricted"}}})");
    EXPECT_EQ(server.post(test::kPods, test::simple_pod("a")).status, 201);
    EXPECT_EQ(server.post(test::kPods, test::simple_pod("b", "{'hostPID':true}")).status, 403);
  }
  const auto told = events();
  ASSERT_EQ(told.size(), 2U);
  for (const Value& one : told) {
    const Value& notes = one["annotations"];
    EXPECT_EQ(notes["pod-security.kubernetes.io/enforce-policy"].str(), "baseline:latest");
    EXPECT_THAT(notes["pod-security.kubernetes.io/audit-violations"].str(),
                HasSubstr("would violate PodSecurity \"restricted:latest\": "));
  }
}

TEST_F(AuditTest, tells_the_beginning_and_the_end_of_a_watch) {
  {
    TestServer server(with("rules: [{level: Metadata, verbs: [watch]}]"));
    auto stream = server.watch(cat(kConfigMaps, "?watch=true"));
    ASSERT_NE(stream, nullptr);
    stream->hang_up();
    server.sim.run_until_idle();
    server.get(kConfigMaps);
  }
  EXPECT_THAT(brief(events()), ElementsAre("RequestReceived watch 0", "ResponseStarted watch 200",
                                           "ResponseComplete watch 200"));
}

TEST_F(AuditTest, keeps_the_callers_id_and_returns_it) {
  TestServer server(with("rules: [{level: Metadata}]"));
  auto request = make_request("GET", kConfigMaps);
  request.headers.add("Audit-ID", "mine");
  EXPECT_EQ(server.send(request).headers.get("Audit-Id"), "mine");
}

TEST(AuditPolicy, refuses_what_it_could_not_do) {
  const std::pair<const char*, const char*> cases[] = {
      {"kind: Policy", "must be a Policy of audit.k8s.io/v1, not \"Policy\" of \"\""},
      {"apiVersion: audit.k8s.io/v1\nkind: Policy", "loaded illegal policy with 0 rules"},
      {"apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Some}]",
       "rules[0].level: Unsupported value: \"Some\": supported values: \"None\", \"Metadata\", "
       "\"Request\", \"RequestResponse\""},
      {"apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, user: [a]}]",
       "rules[0].user: Forbidden: unknown field"},
      {"apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, nonResourceURLs: [x]}]",
       "rules[0].nonResourceURLs[0]: Invalid value: \"x\": non-resource URL rules must begin with "
       "a '/' character"},
      {"apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [End]\nrules: [{level: None}]",
       "omitStages[0]: Invalid value: \"End\": allowed stages are "
       "RequestReceived,ResponseStarted,ResponseComplete,Panic"},
      {"apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, resources: [{group: "
       "apps/v1}]}]",
       "rules[0].resources[0].group: Invalid value: \"apps/v1\": a group is named without its "
       "version"},
  };
  for (const auto& [text, message] : cases) {
    const auto policy = AuditPolicy::parse(text);
    ASSERT_FALSE(policy.ok()) << text;
    EXPECT_EQ(policy.error().message(), message);
  }
}

TEST(AuditPolicy, goes_by_the_first_rule_that_fits) {
  const auto policy = AuditPolicy::parse(R"(
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- {level: None, users: [ann]}
- {level: Metadata, userGroups: [ops], verbs: [get]}
- level: Request
  resources: [{group: "", resources: [pods/*, "*/scale"]}, {group: apps, resources: [deployments], resourceNames: [d]}]
- {level: RequestResponse, nonResourceURLs: ["/healthz*", /version]}
- {level: Metadata, namespaces: [""]}
)");
  ASSERT_TRUE(policy.ok()) << policy.error().message();
  auth::RequestAttributes what;
  const auto level = [&] { return policy->choose(what).level; };
  what.user.name = "ann";
  what.resource = "pods";
  EXPECT_EQ(level(), AuditLevel::none);
  what.user = {"bob", "", {"ops"}, {}};
  what.verb = "get";
  EXPECT_EQ(level(), AuditLevel::metadata);
  what.verb = "update";
  what.name_space = "n";
  EXPECT_EQ(level(), AuditLevel::request);  // "pods/*" is of pods themselves, too
  what.resource = "jobs";
  EXPECT_EQ(level(), AuditLevel::none);
  what.subresource = "scale";
  EXPECT_EQ(level(), AuditLevel::request);
  what = {};
  what.group = "apps";
  what.resource = "deployments";
  what.name_space = "n";
  EXPECT_EQ(level(), AuditLevel::none);
  what.name = "d";
  EXPECT_EQ(level(), AuditLevel::request);
  what = {};
  what.is_resource = false;
  what.path = "/healthz/etcd";
  EXPECT_EQ(level(), AuditLevel::request_response);
  what.path = "/metrics";
  EXPECT_EQ(level(), AuditLevel::none);
  what = {};
  what.resource = "nodes";
  EXPECT_EQ(level(), AuditLevel::metadata);
}

TEST_F(AuditTest, moves_a_large_file_aside_and_forgets_old_ones) {
  runtime::SimRuntime sim;
  const std::string line = std::string(300 * 1024 - 1, 'x') + "\n";
  {
    auto log = AuditLog::open({path_, 1, 0, 2}, sim.runtime());
    ASSERT_TRUE(log.ok()) << log.error().message();
    for (int i = 0; i < 16; ++i) {
      (*log)->add(line);
      sim.advance(std::chrono::seconds(1));
    }
  }
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    ++files;
    EXPECT_EQ(entry.file_size() % line.size(), 0U) << entry.path();
    EXPECT_LE(entry.file_size(), 1024U * 1024U);
    EXPECT_THAT(entry.path().filename().string(),
                testing::MatchesRegex("audit(-[0-9T.-]+)?\\.log"));
  }
  EXPECT_EQ(files, 3U);  // the file itself and two of those moved aside
}

TEST_F(AuditTest, loses_nothing_that_was_added_before_the_end) {
  runtime::SimRuntime sim;
  {
    auto log = AuditLog::open({path_}, sim.runtime());
    ASSERT_TRUE(log.ok());
    // Nothing runs that was posted.
    for (int i = 0; i < 1000; ++i) (*log)->add(cat("line ", i, "\n"));
  }
  const std::string text = read_file(path_);
  EXPECT_THAT(text, testing::StartsWith("line 0\nline 1\n"));
  EXPECT_THAT(text, testing::EndsWith("line 999\n"));
}

TEST_F(AuditTest, goes_on_when_the_disk_has_room_again) {
  runtime::SimRuntime sim;
  fs::create_directory(path_);  // cannot be written
  EXPECT_FALSE(AuditLog::open({path_}, sim.runtime()).ok());
  fs::remove(path_);
  auto log = AuditLog::open({folder_ + "/sub/../audit.log"}, sim.runtime());
  EXPECT_FALSE(log.ok());
  EXPECT_THAT(log.error().message(), HasSubstr("--audit-log-path"));
}

TEST_F(AuditTest, needs_both_a_policy_and_a_place) {
  runtime::SimRuntime sim;
  metrics::Registry registry;
  Options options;
  EXPECT_EQ(*Auditor::open(options, sim.runtime(), registry), nullptr);
  options.audit_log.path = path_;
  EXPECT_THAT(Auditor::open(options, sim.runtime(), registry).error().message(),
              HasSubstr("needs --audit-policy-file"));
  options.audit_log.path = "";
  options.audit_policy = "x";
  EXPECT_THAT(Auditor::open(options, sim.runtime(), registry).error().message(),
              HasSubstr("needs --audit-log-path"));
}

}  // namespace
}  // namespace dibs::server
