#include "api/schema/decode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "api/schema/builtin.h"
#include "api/schema/recordings_for_test.h"
#include "base/strings.h"
#include "json/parse.h"
#include "json/yaml.h"

namespace dibs::api {
namespace {

using json::Value;
using testing::ElementsAre;

Value parsed(std::string_view text) {
  auto value = json::parse(text);
  EXPECT_TRUE(value.ok()) << text;
  return value.ok() ? *value : Value();
}

struct Decoded {
  std::string text;  // the object, or the error
  std::vector<std::string> strict;
};

Decoded decoded(std::string_view type, std::string_view text,
                Strictness strictness = Strictness::warn) {
  Decoded out;
  const Schema* schema = builtin_type(type);
  EXPECT_NE(schema, nullptr) << type;
  auto result = decode(parsed(text), *schema, strictness, out.strict);
  out.text = result.ok() ? json::write(*result) : result.error().message();
  return out;
}

struct NormalForm {
  const char* type;
  const char* given;
  const char* normal;
};

TEST(Decode, gives_the_normal_form) {
  const NormalForm cases[] = {
      {"core/v1.ConfigMap", "{}", R"({"metadata":{}})"},
      {"core/v1.ConfigMap", R"({"metadata":null,"data":{},"immutable":null})",
       R"({"metadata":{}})"},
      {"core/v1.ConfigMap", R"({"metadata":{},"immutable":false})",
       R"({"metadata":{},"immutable":false})"},
      {"core/v1.ConfigMap", R"({"metadata":{"labels":{"a":null}}})",
       R"({"metadata":{"labels":{"a":""}}})"},
      {"core/v1.ConfigMap",
       R"({"metadata":{"creationTimestamp":null,"generation":0,"finalizers":[]}})",
       R"({"metadata":{}})"},
      {"core/v1.ConfigMap", R"({"metadata":{"creationTimestamp":"2020-01-01T01:00:00.5+01:00"}})",
       R"({"metadata":{"creationTimestamp":"2020-01-01T00:00:00Z"}})"},
      {"core/v1.Pod", "{}", R"({"metadata":{},"spec":{"containers":null},"status":{}})"},
      {"core/v1.Pod", R"({"spec":{"containers":[null]}})",
       R"({"spec":{"containers":[{"name":"","resources":{}}]},"metadata":{},"status":{}})"},
      {"core/v1.PodSpec",
       R"({"containers":[],"hostNetwork":false,"volumes":[{"name":"v","emptyDir":{}}]})",
       R"({"containers":null,"volumes":[{"name":"v","emptyDir":{}}]})"},
      {"core/v1.ResourceRequirements", R"({"limits":{"cpu":1,"memory":"1024Mi"},"requests":{}})",
       R"({"limits":{"cpu":"1","memory":"1Gi"}})"},
      {"core/v1.Secret", R"({"data":{"a":null,"b":"YQ\n=="}})",
       R"({"data":{"a":"","b":"YQ=="},"metadata":{}})"},
      {"core/v1.ServicePort", R"({"port":1})", R"({"port":1,"targetPort":0})"},
      {"apps/v1.DeploymentSpec", R"({"replicas":0,"template":{}})",
       R"({"replicas":0,"template":{"metadata":{},"spec":{"containers":null}},"selector":null,"strategy":{}})"},
      {"rbac/v1.Role", R"({"rules":[]})", R"({"rules":null,"metadata":{}})"},
      {"resource/v1.DeviceCapacity", "{}", R"({"value":"0"})"},
      {"resource/v1beta1.ResourceSliceSpec",
       R"({"driver":"d","nodeName":"","allNodes":false,"pool":{}})",
       R"({"driver":"d","pool":{"generation":0,"name":"","resourceSliceCount":0}})"},
      {"apiextensions/v1.JSONSchemaProps",
       R"({"default":null,"items":{"type":"string","nope":1},"additionalProperties":false})",
       R"({"items":{"type":"string"},"additionalProperties":false})"},
      {"coordination/v1.LeaseSpec", R"({"renewTime":"2020-01-01T00:00:00.123456Z"})",
       R"({"renewTime":"2020-01-01T00:00:00.123456Z"})"},
  };
  for (const NormalForm& c : cases) {
    Decoded got = decoded(c.type, c.given);
    EXPECT_EQ(parsed(got.text.starts_with('{') ? got.text : "null"), parsed(c.normal))
        << c.given << "\n"
        << got.text;
    EXPECT_THAT(got.strict, testing::IsEmpty()) << c.given;
    EXPECT_EQ(decoded(c.type, c.normal).text, c.normal) << "not stable";
  }
}

TEST(Decode, shares_what_does_not_change) {
  Value pod = parsed(
      R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","resources":{}}]},"status":{}})");
  std::vector<std::string> strict;

  auto same = decode(pod, *builtin_type("core/v1.Pod"), Strictness::warn, strict);
  Value with_junk = pod;
  with_junk.set("junk", 1);
  auto pruned = decode(with_junk, *builtin_type("core/v1.Pod"), Strictness::warn, strict);

  ASSERT_TRUE(same.ok() && pruned.ok());
  EXPECT_TRUE(same->same_node(pod));
  EXPECT_TRUE((*pruned)["spec"].same_node(pod["spec"]));
  EXPECT_THAT(strict, ElementsAre("unknown field \"junk\""));
}

TEST(Decode, names_go_types_in_mismatches) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"spec":{"containers":[{"imagePullPolicy":5}]}})",
       "json: cannot unmarshal number into Go struct field "
       "Container.spec.containers.imagePullPolicy of type v1.PullPolicy"},
      {R"({"metadata":{"uid":5}})",
       "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.uid of type "
       "types.UID"},
      {R"({"spec":{"containers":[{"resources":{"limits":[]}}]}})",
       "json: cannot unmarshal array into Go struct field "
       "ResourceRequirements.spec.containers.resources.limits of type v1.ResourceList"},
      {R"({"spec":{"volumes":[{"configMap":5}]}})",
       "json: cannot unmarshal number into Go struct field "
       "Volume.spec.volumes.VolumeSource.configMap of type "
       "v1.ConfigMapVolumeSource"},
      // What an unmarshaler says beats an earlier mismatch.
      {R"({"metadata":{"name":5,"creationTimestamp":"x"}})",
       "parsing time \"x\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"x\" as \"2006\""},
      {"[]", "json: cannot unmarshal array into Go value of type v1.Pod"},
  };
  for (const auto& [given, message] : cases) EXPECT_EQ(decoded("core/v1.Pod", given).text, message);
}

TEST(Decode, tells_each_unknown_field_once_and_a_hundred_at_most) {
  std::string many = "{";
  for (int i = 0; i < 300; ++i) append(many, i ? "," : "", "\"x", i, "\":1");
  many += "}";
  EXPECT_EQ(decoded("core/v1.Pod", many).strict.size(), 100u);
  EXPECT_EQ(decoded("core/v1.Pod", R"({"a":1})", Strictness::ignore).strict.size(), 0u);
  EXPECT_EQ(decoded("core/v1.Pod", R"({"a":1,"b":1})", Strictness::strict).text,
            "strict decoding error: unknown field \"a\", unknown field \"b\"");
}

TEST(Decode, tells_duplicates_and_unknown_fields_in_the_order_of_the_text) {
  EXPECT_THAT(
      strict_errors_of(R"({"metadata":{"name":"x","name":"a","lables":{"a":"b","a":[{"c":1}]}},
                                   "data":{"k":"1","k":"2"},"extra":1,"data":{"z":"9"}})",
                       *builtin_type("core/v1.ConfigMap")),
      ElementsAre("duplicate field \"metadata.name\"", "unknown field \"metadata.lables\"",
                  "duplicate field \"data.k\"", "unknown field \"extra\"",
                  "duplicate field \"data\""));
}

TEST(Decode, bounds_the_depth) {
  std::string deep;
  for (int i = 0; i < 4000; ++i) deep += "{\"not\":";
  deep += "{}";
  deep.append(4000, '}');
  EXPECT_EQ(decoded("apiextensions/v1.JSONSchemaProps", deep).text, "exceeded max depth");
}

/// The value that a request body stands for, with what the parser found twice.
Result<Value> body_of(const Value& step, bool yaml, std::vector<std::string>& duplicates) {
  if (step.contains("body")) return step["body"];
  if (yaml) return json::parse_yaml(step["raw"].as_string(), &duplicates);
  json::ParseOptions options;
  options.duplicates = &duplicates;
  return json::parse(step["raw"].as_string(), options);
}

TEST(DecodeRecorded, errors_are_those_of_a_real_server) {
  std::size_t compared = 0;
  auto check = [&](const std::string& session, std::size_t index, const Value& step) {
    const Value& answer = step["expect"]["body"];
    constexpr std::string_view kMark = " cannot be handled as a ";
    std::string message = answer["message"].str();
    std::size_t mark = message.find(kMark);
    if (step["expect"]["code"].as_int() != 400 || mark == std::string::npos) return;
    std::string wanted = message.substr(message.find(": ", mark) + 2);
    if (wanted.starts_with("converting") || wanted.starts_with("no kind")) return;
    const Schema* schema = schema_of_path(step["path"].as_string());
    if (schema == nullptr) return;  // a custom resource
    bool yaml = step["headers"]["Content-Type"].as_string() == "application/yaml";
    std::vector<std::string> strict;
    auto body = body_of(step, yaml, strict);
    ASSERT_TRUE(body.ok()) << session << " " << index;
    if (yaml && !strict.empty()) return;  // the words around line numbers are the caller's
    bool duplicates = !strict.empty();
    strict.clear();
    bool is_strict =
        step["path"].as_string().find("fieldValidation=Strict") != std::string_view::npos;
    auto result = decode(*body, *schema, is_strict ? Strictness::strict : Strictness::warn, strict);
    std::string got = result.ok() ? "no error" : result.error().message();
    if (duplicates && is_strict && got.find("json:") == std::string::npos) {
      got = strict_error(strict_errors_of(step["raw"].as_string(), *schema)).message();
    }
    EXPECT_EQ(with_marks(got), wanted) << session << " " << index;
    ++compared;
  };
  bool present = false;
  for (std::string_view file : {"objects", "reading", "cluster", "resource", "v1alpha2-1.30"}) {
    present = for_each_step(file, check) || present;
  }
  if (!present) GTEST_SKIP() << "no conformance data";
  std::printf("%zu recorded errors compared\n", compared);
  EXPECT_GT(compared, 60u);
}

TEST(DecodeAsSent, keeps_empty_lists_and_maps) {
  const Schema* schema = builtin_schema("resource.k8s.io", "v1", "ResourceSlice");
  auto raw = json::parse(R"({"spec":{"driver":"d","devices":[],"sharedCounters":null,
    "unknown":1}})");
  ASSERT_TRUE(raw.ok());
  auto sent = decode_as_sent(*raw, *schema);
  ASSERT_TRUE(sent.ok());
  EXPECT_TRUE((*sent)["spec"]["devices"].is_array());
  EXPECT_FALSE((*sent)["spec"].contains("sharedCounters"));
  EXPECT_FALSE((*sent)["spec"].contains("unknown"));
  std::vector<std::string> strict;
  auto normal = decode(*raw, *schema, Strictness::ignore, strict);
  ASSERT_TRUE(normal.ok());
  EXPECT_FALSE((*normal)["spec"].contains("devices"));
}

TEST(DecodeRecorded, warnings_are_those_of_a_real_server) {
  std::size_t compared = 0;
  auto check = [&](const std::string& session, std::size_t index, const Value& step) {
    std::vector<std::string> wanted;
    for (const Value& warning : step["expect"]["warnings"].items()) {
      std::string text = warning.str();
      if (!text.starts_with("299 - \"unknown field") &&
          !text.starts_with("299 - \"duplicate field"))
        continue;
      auto unquoted = json::parse(text.substr(6));
      ASSERT_TRUE(unquoted.ok()) << text;
      wanted.push_back(unquoted->str());
    }
    std::string method = step["method"].str();
    const Schema* schema = schema_of_path(step["path"].as_string());
    if (wanted.empty() || schema == nullptr || (method != "POST" && method != "PUT")) return;
    std::vector<std::string> duplicates;
    if (step["headers"]["Content-Type"].as_string() == "application/yaml") return;
    auto body = body_of(step, false, duplicates);
    ASSERT_TRUE(body.ok()) << session << " " << index;
    std::vector<std::string> strict;
    auto result = decode(*body, *schema, Strictness::warn, strict);
    EXPECT_TRUE(result.ok()) << session << " " << index;
    if (!duplicates.empty()) strict = strict_errors_of(step["raw"].as_string(), *schema);
    EXPECT_EQ(strict, wanted) << session << " " << index;
    ++compared;
  };
  bool present = false;
  for (std::string_view file : {"objects", "reading", "cluster", "resource"}) {
    present = for_each_step(file, check) || present;
  }
  if (!present) GTEST_SKIP() << "no conformance data";
  std::printf("%zu recorded warnings compared\n", compared);
}

TEST(DecodeRecorded, answers_of_a_real_server_are_in_normal_form) {
  std::size_t compared = 0;
  std::size_t shown = 0;
  auto check = [&](const std::string& session, std::size_t index, const Value& step) {
    const Value& answer = step["expect"]["body"];
    if (step["subset"].as_bool() || step["expect"]["code"].as_int() >= 300 || !answer.is_object())
      return;
    const Schema* schema = schema_of_object(answer);
    if (schema == nullptr || answer["kind"].as_string() == "Status" ||
        schema->name.starts_with("API"))
      return;
    if (answer["kind"].as_string().ends_with("List"))
      return;  // an empty list of items is [], which the server writes
    Value given = without_marks(answer);
    // Pointers that the recording leaves out.
    for (const Value& ignored : step["ignore"].items()) {
      if (ignored.as_string() != "/metadata/managedFields" &&
          !ignored.as_string().starts_with("/items/*"))
        return;
    }
    std::vector<std::string> strict;
    auto result = decode(given, *schema, Strictness::warn, strict);
    ++compared;
    if (!result.ok()) {
      // A mark where a number or six decimals belong.
      std::string message = result.error().message();
      if (message.find(".000000") != std::string::npos) return;
      if (++shown < 20) ADD_FAILURE() << session << " " << index << ": " << message;
      return;
    }
    if (!(*result == given) && ++shown < 20) {
      ADD_FAILURE() << session << " " << index << "\n"
                    << json::write(given) << "\n"
                    << json::write(*result);
    }
    if (!strict.empty() && ++shown < 20)
      ADD_FAILURE() << session << " " << index << ": " << join(strict, ", ");
  };
  bool present = false;
  for (std::string_view file : {"objects", "reading", "cluster", "resource"}) {
    present = for_each_step(file, check) || present;
  }
  if (!present) GTEST_SKIP() << "no conformance data";
  std::printf("%zu recorded objects compared\n", compared);
  EXPECT_GT(compared, 500u);
}

}  // namespace
}  // namespace dibs::api
