// Objects and requests that are cheap to send and would be dear to serve.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/schema/builtin.h"
#include "api/schema/protobuf_encode.h"
#include "base/strings.h"
#include "json/parse.h"
#include "json/yaml.h"
#include "net/gzip.h"
#include "server/test_support.h"

namespace dibs::server {
namespace {

using json::Value;
using test::from_text;
using test::kConfigMaps;
using test::Reply;
using test::TestServer;
using testing::HasSubstr;

constexpr const char* kRoles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";

Value role(std::size_t each) {
  Value rule = Value::object();
  for (const char* list : {"verbs", "apiGroups", "resources", "resourceNames"}) {
    for (std::size_t i = 0; i < each; ++i) rule.mut(list).push(cat("x", i));
  }
  return Value::object({{"apiVersion", "rbac.authorization.k8s.io/v1"},
                        {"kind", "Role"},
                        {"metadata", Value::object({{"name", "r"}})},
                        {"rules", Value::array({rule})}});
}

TEST(Limits, hold_roles_whose_lists_multiply) {
  TestServer server;
  const Reply refused = server.post(kRoles, role(200));
  EXPECT_EQ(refused.status, 422);
  EXPECT_THAT(refused.message(), HasSubstr("rules: Too many: "));
  EXPECT_EQ(server.post(kRoles, role(14)).status, 201);
  EXPECT_EQ(server.put(cat(kRoles, "/r"), role(200)).status, 422);
}

TEST(Limits, hold_the_comparison_of_roles_short) {
  TestServer server;
  net::Request request = test::make_request("POST", kRoles, json::write(role(14)));
  request.headers.set("Impersonate-User", "ana");
  server.post("/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
              from_text("{'apiVersion':'rbac.authorization.k8s.io/v1','kind':'RoleBinding',"
                        "'metadata':{'name':'b'},'roleRef':{'apiGroup':"
                        "'rbac.authorization.k8s.io','kind':'Role','name':'maker'},'subjects':"
                        "[{'kind':'User','apiGroup':'rbac.authorization.k8s.io','name':'ana'}]}"));
  server.post(kRoles,
              from_text("{'apiVersion':'rbac.authorization.k8s.io/v1','kind':'Role','metadata':"
                        "{'name':'maker'},'rules':[{'apiGroups':['rbac.authorization.k8s.io'],"
                        "'resources':['roles'],'verbs':['create']}]}"));
  const Reply refused = server.send(std::move(request));
  EXPECT_EQ(refused.status, 403);
  EXPECT_THAT(refused.message(), HasSubstr("… and 2544 more"));
}

std::string deep(std::size_t levels) {
  std::string out;
  for (std::size_t i = 0; i < levels; ++i) out += R"({"a":)";
  return out + "1" + std::string(levels, '}');
}

TEST(Limits, hold_objects_flat) {
  TestServer server;
  const auto body = [&](std::size_t levels) {
    return cat(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"},"x":)",
               deep(levels), "}");
  };
  EXPECT_EQ(server.send(test::make_request("POST", kConfigMaps, body(400))).status, 201);
  const Reply refused = server.send(test::make_request("POST", kConfigMaps, body(600)));
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.message(), HasSubstr("exceeded max depth"));
  const std::string path = cat(kConfigMaps, "/m");
  for (const char* type : {"merge", "strategic", "json"}) {
    const bool json = std::string_view(type) == "json";
    const std::string patch =
        json ? cat(R"([{"op":"add","path":"/x","value":)", deep(600), "}]") : body(600);
    const Reply patched = server.patch(path, type, patch);
    EXPECT_EQ(patched.status, 400) << type;
    EXPECT_THAT(patched.message(), HasSubstr("max depth of 500")) << type;
  }
  // Copies into copies make more of less.
  std::string copies = cat(R"([{"op":"add","path":"/x","value":)", deep(300), "}");
  append(copies, R"(,{"op":"copy","from":"/x","path":"/y"},{"op":"copy","from":"/y","path":"/x)");
  for (int i = 0; i < 300; ++i) copies += "/a";
  const Reply copied = server.patch(path, "json", copies + R"("}])");
  EXPECT_EQ(copied.status, 422);
  EXPECT_THAT(copied.message(), HasSubstr("max depth of 500"));
}

TEST(Limits, hold_selectors_short) {
  TestServer server;
  std::string selector = "labelSelector=a0!%3Dx";
  for (int i = 1; i < 499; ++i) append(selector, ",a", i, "!%3Dx");
  EXPECT_EQ(server.get(cat(kConfigMaps, "?", selector)).status, 200);
  append(selector, ",b!%3Dx,c!%3Dx");
  const Reply refused = server.get(cat(kConfigMaps, "?", selector));
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.message(), HasSubstr("1002 terms and values, at most 1000"));

  Value set = from_text(
      "{'apiVersion':'policy/v1','kind':'PodDisruptionBudget','metadata':{'name':'b'},'spec':"
      "{'minAvailable':1,'selector':{'matchExpressions':[{'key':'a','operator':'In','values':[]}]"
      "}}}");
  Value& values =
      set.mut("spec").mut("selector").mut("matchExpressions").mut(std::size_t{0}).mut("values");
  for (int i = 0; i < 1000; ++i) values.push(cat("v", i));
  const Reply invalid = server.post("/apis/policy/v1/namespaces/default/poddisruptionbudgets", set);
  EXPECT_EQ(invalid.status, 422);
  EXPECT_THAT(invalid.message(), HasSubstr("spec.selector: Too many: 1001"));
}

class LargeList : public testing::Test {
 protected:
  LargeList() {
    for (int i = 0; i < 8; ++i) {
      server.add_config_map(cat("m", i), cat("{'k':'", std::string(200'000, 'x'), "'}"));
    }
  }
  /// The list as it came, piece after piece.
  static Value whole(const Reply& reply) {
    EXPECT_EQ(reply.status, 200);
    EXPECT_TRUE(reply.stream != nullptr && reply.stream->finished());
    auto lines = reply.stream ? reply.stream->take() : std::vector<Value>();
    return lines.size() == 1 ? lines[0] : Value();
  }
  TestServer server;
};

TEST_F(LargeList, is_sent_in_pieces) {
  const Value list = whole(server.get(kConfigMaps));
  EXPECT_EQ(list["kind"].as_string(), "ConfigMapList");
  EXPECT_EQ(test::names_of(list).size(), 8U);
  EXPECT_EQ(list["items"][7]["data"]["k"].as_string().size(), 200'000U);
  EXPECT_TRUE(list["items"][0]["kind"].is_null());
}

TEST_F(LargeList, is_sent_in_every_form) {
  const Value rows = whole(server.get(kConfigMaps, "application/json;as=Table;v=v1;g=meta.k8s.io"));
  EXPECT_EQ(rows["kind"].as_string(), "Table");
  EXPECT_EQ(rows["rows"].size(), 8U);
  EXPECT_EQ(rows["rows"][3]["object"]["metadata"]["name"].as_string(), "m3");
  const Value metadata = whole(
      server.get(kConfigMaps, "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"));
  EXPECT_EQ(metadata["kind"].as_string(), "PartialObjectMetadataList");
  EXPECT_EQ(metadata["items"].size(), 8U);
}

TEST_F(LargeList, reads_in_pieces_as_it_would_whole) {
  const auto text = [&](const std::string& query, const std::string& accept) {
    const Reply reply = server.get(kConfigMaps + query, accept);
    EXPECT_TRUE(reply.stream != nullptr && reply.stream->finished());
    EXPECT_EQ(reply.headers.get("Content-Type"), accept.substr(0, accept.find(';')));
    return reply.stream->take_text();
  };
  // Not compared by EXPECT_EQ, which would print megabytes.
  for (const std::string form : {"", ";as=Table;v=v1;g=meta.k8s.io"}) {
    const std::string json = "application/json" + form;
    const std::string pretty = text("?pretty=true", json);
    const auto read = json::parse(pretty);
    ASSERT_TRUE(read.ok()) << read.error().message();
    EXPECT_TRUE(*read == *json::parse(text("", json)));
    EXPECT_TRUE(json::write_pretty(*read) + "\n" == pretty);
  }
  const std::string yaml = text("", "application/yaml");
  const auto read = json::parse_yaml(yaml);
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_TRUE(*read == *json::parse(text("", "application/json")));
  EXPECT_TRUE(json::write_yaml(*read) == yaml);
}

TEST_F(LargeList, in_protobuf_alone_comes_in_pieces_too) {
  const std::string protobuf = "application/vnd.kubernetes.protobuf";
  const auto text = [&](const std::string& accept) {
    const Reply reply = server.get(kConfigMaps, accept);
    EXPECT_EQ(reply.status, 200);
    EXPECT_TRUE(reply.stream != nullptr && reply.stream->finished());
    EXPECT_EQ(reply.headers.get("Content-Type"), accept.substr(0, accept.find(';')));
    return reply.stream ? reply.stream->take_text() : std::string();
  };
  const Value list = *json::parse(text("application/json"));
  EXPECT_TRUE(text(protobuf) ==
              api::encode_envelope(list, *api::builtin_schema("", "v1", "ConfigMapList")));
  const std::string form = ";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
  const Value metadata = *json::parse(text("application/json" + form));
  EXPECT_TRUE(text(protobuf + form) == api::encode_metadata_envelope(metadata));

  server.slow_streams = true;
  const Reply slow = server.get(kConfigMaps, protobuf);
  ASSERT_TRUE(slow.stream);
  EXPECT_FALSE(slow.stream->finished());
  EXPECT_LT(slow.stream->queued(), 600'000U);
  slow.stream->hang_up();
}

TEST_F(LargeList, waits_for_its_reader) {
  server.slow_streams = true;
  const Reply reply = server.get(kConfigMaps);
  ASSERT_TRUE(reply.stream);
  EXPECT_FALSE(reply.stream->finished());
  EXPECT_LT(reply.stream->queued(), 600'000U);
  reply.stream->hang_up();
}

}  // namespace
}  // namespace dibs::server
