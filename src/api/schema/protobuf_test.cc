#include "api/schema/protobuf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/schema/builtin.h"
#include "api/schema/decode.h"
#include "api/schema/protobuf_encode.h"
#include "api/schema/protobuf_wire.h"
#include "api/schema/recordings_for_test.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

using json::Value;

Value normal(const Value& raw, const Schema& schema) {
  std::vector<std::string> strict;
  auto result = decode(raw, schema, Strictness::ignore, strict);
  EXPECT_TRUE(result.ok()) << result.error().message();
  return result.ok() ? *result : Value();
}

/// The body that kubectl sends for `create ns foo`.
std::string namespace_body() {
  std::string meta(
      "\x0a\x03"
      "foo"
      "\x12\x00\x1a\x00\x22\x00\x2a\x00\x32\x00\x38\x00\x42\x00",
      19);
  std::string message =
      std::string("\x0a\x13", 2) + meta + std::string("\x12\x00\x1a\x02\x0a\x00", 6);
  std::string body("k8s\0\x0a\x0f\x0a\x02v1\x12\x09Namespace\x12\x1b", 23);
  return body + message + std::string("\x1a\x00\x22\x00", 4);
}

TEST(Protobuf, reads_what_kubectl_sends) {
  std::string body = namespace_body();
  auto envelope = open_envelope(body);
  ASSERT_TRUE(envelope.ok());
  EXPECT_EQ(envelope->api_version, "v1");
  EXPECT_EQ(envelope->kind, "Namespace");
  const Schema* schema = builtin_schema("", "v1", "Namespace");

  auto raw = decode_protobuf(envelope->raw, *schema);

  ASSERT_TRUE(raw.ok()) << raw.error().message();
  EXPECT_EQ(normal(*raw, *schema), Value::object({{"metadata", Value::object({{"name", "foo"}})},
                                                  {"spec", Value::object()},
                                                  {"status", Value::object()}}));
}

TEST(Protobuf, writes_what_kubectl_sends) {
  Value object = Value::object({{"apiVersion", "v1"},
                                {"kind", "Namespace"},
                                {"metadata", Value::object({{"name", "foo"}})},
                                {"spec", Value::object()},
                                {"status", Value::object()}});
  EXPECT_EQ(hex_encode(encode_envelope(object, *builtin_schema("", "v1", "Namespace"))),
            hex_encode(namespace_body()));
}

TEST(Protobuf, keeps_pointers_that_are_zero) {
  const Schema* schema = builtin_type("apps/v1.DeploymentSpec");
  std::string message;
  wire::put_integer(message, 1, 0);  // replicas
  wire::put_integer(message, 5, 0);  // minReadySeconds, a value
  auto raw = decode_protobuf(message, *schema);
  ASSERT_TRUE(raw.ok());
  Value spec = normal(*raw, *schema);
  EXPECT_TRUE(spec.contains("replicas"));
  EXPECT_FALSE(spec.contains("minReadySeconds"));
}

TEST(Protobuf, keeps_times_that_lie_far_away) {
  const Schema* schema = builtin_type("coordination/v1.LeaseSpec");
  std::string time;
  wire::put_integer(time, 1, -62'135'596'798);
  std::string message;
  wire::put_bytes(message, 4, time);  // renewTime
  auto spec = decode_protobuf(message, *schema);
  ASSERT_TRUE(spec.ok()) << spec.error().message();
  EXPECT_EQ((*spec)["renewTime"].as_string(), "0001-01-01T00:00:02.000000Z");
}

TEST(Protobuf, skips_unknown_numbers_and_refuses_broken_bytes) {
  const Schema* schema = builtin_schema("", "v1", "ConfigMap");
  std::string message;
  wire::put_bytes(message, 77, "whatever");
  wire::put_fixed64(message, 78, 5);
  EXPECT_TRUE(decode_protobuf(message, *schema).ok());
  EXPECT_FALSE(decode_protobuf("\x0a\x7f", *schema).ok());
  EXPECT_FALSE(decode_protobuf("\x08\x01", *schema).ok());  // metadata as a number
  EXPECT_FALSE(decode_protobuf("\x0b", *schema).ok());      // a group
  EXPECT_FALSE(open_envelope("{}").ok());
}

TEST(Protobuf, bounds_the_depth) {
  const Schema* schema = builtin_type("apiextensions/v1.JSONSchemaProps");
  std::string message;
  for (int i = 0; i < 200; ++i) {
    std::string outer;
    wire::put_bytes(outer, 28, message);
    message = std::move(outer);
  }
  EXPECT_FALSE(decode_protobuf(message, *schema).ok());
}

TEST(ProtobufRecorded, objects_survive_the_wire) {
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
    std::vector<std::string> strict;
    auto object = decode(without_marks(answer), *schema, Strictness::warn, strict);
    if (!object.ok()) return;
    // Kinds of objects within others are not on the wire.
    const Value& claims = answer["spec"]["volumeClaimTemplates"];
    for (std::size_t i = 0; i < claims.size(); ++i) {
      object->mut("spec").mut("volumeClaimTemplates").mut(i).erase("kind");
      object->mut("spec").mut("volumeClaimTemplates").mut(i).erase("apiVersion");
    }

    std::string bytes = encode_envelope(*object, *schema);
    auto envelope = open_envelope(bytes);
    ASSERT_TRUE(envelope.ok());
    auto raw = decode_protobuf(envelope->raw, *schema);
    ASSERT_TRUE(raw.ok()) << session << " " << index << " " << raw.error().message();
    Value back = normal(*raw, *schema);
    back.set("apiVersion", Value(envelope->api_version));
    back.set("kind", Value(envelope->kind));
    ++compared;
    if (!(back == *object) && ++shown < 10) {
      ADD_FAILURE() << session << " " << index << "\n"
                    << json::write(*object) << "\n"
                    << json::write(back);
    }
    // Bytes cut or changed anywhere are refused or read, nothing worse.
    if (compared % 50 == 0) {
      for (std::size_t cut = 0; cut < bytes.size(); cut += 7) {
        std::string bent = bytes;
        bent[cut] = static_cast<char>(bent[cut] ^ 0x55);
        for (const std::string_view text :
             {std::string_view(bent), std::string_view(bytes).substr(0, cut)}) {
          if (const auto opened = open_envelope(text); opened.ok()) {
            (void)decode_protobuf(opened->raw, *schema);
          }
        }
      }
    }
  };
  bool present = false;
  for (std::string_view file : {"objects", "cluster", "resource", "v1alpha2-1.30"}) {
    present = for_each_step(file, check) || present;
  }
  if (!present) GTEST_SKIP() << "no conformance data";
  std::printf("%zu recorded objects through protobuf\n", compared);
}

TEST(Protobuf, writes_metadata_alone) {
  const Value meta = Value::object({{"name", "foo"}, {"uid", "u"}});
  const Value one = Value::object(
      {{"apiVersion", "meta.k8s.io/v1"}, {"kind", "PartialObjectMetadata"}, {"metadata", meta}});
  const std::string bytes = encode_metadata_envelope(one);
  auto envelope = open_envelope(bytes);
  ASSERT_TRUE(envelope.ok());
  EXPECT_EQ(envelope->kind, "PartialObjectMetadata");
  // The same numbers as any kind's.
  const Schema* any = builtin_schema("", "v1", "ConfigMap");
  EXPECT_EQ(normal(*decode_protobuf(envelope->raw, *any), *any)["metadata"], meta);

  const Value list = Value::object({{"apiVersion", "meta.k8s.io/v1"},
                                    {"kind", "PartialObjectMetadataList"},
                                    {"metadata", Value::object({{"resourceVersion", "7"}})},
                                    {"items", Value::array({one, one})}});
  const std::string list_bytes = encode_metadata_envelope(list);
  const Schema* any_list = builtin_schema("", "v1", "ConfigMapList");
  const Value read = normal(*decode_protobuf(open_envelope(list_bytes)->raw, *any_list), *any_list);
  EXPECT_EQ(read["metadata"]["resourceVersion"].as_string(), "7");
  ASSERT_EQ(read["items"].size(), 2U);
  EXPECT_EQ(read["items"][1]["metadata"], meta);
}

TEST(Protobuf, writes_events_with_their_length_before_them) {
  EXPECT_EQ(hex_encode(encode_watch_frame("ADDED", "abc")),
            "0000000e"
            "0a05"
            "4144444544"
            "1205"
            "0a03"
            "616263");
}

}  // namespace
}  // namespace dibs::api
