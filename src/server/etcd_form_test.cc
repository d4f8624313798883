#include "server/etcd_form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "api/schema/builtin.h"
#include "api/schema/decode.h"
#include "api/schema/protobuf_encode.h"
#include "base/strings.h"
#include "json/parse.h"
#include "runtime/sim_runtime.h"
#include "server/builtin_resources.h"
#include "server/encryption.h"
#include "server/stored.h"
#include "server/writing.h"

namespace dibs::server {
namespace {

using json::Value;
using store::AtRest;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::shared_ptr<const AtRest> form(std::string_view release = "",
                                   std::shared_ptr<const AtRest> encryption = nullptr) {
  Options options;
  options.release = release;
  return make_etcd_form(options, std::move(encryption)).value();
}

Value parsed(std::string_view text) { return json::parse(text).value(); }

std::string envelope(const Value& object, std::string_view group, std::string_view version) {
  return api::encode_envelope(object,
                              *api::builtin_schema(group, version, object["kind"].as_string()));
}

constexpr std::string_view kMapKey = "/registry/configmaps/default/m";
constexpr std::string_view kMap =
    R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"m","namespace":"default",)"
    R"("uid":"u","creationTimestamp":"2026-01-01T00:00:00Z"},"data":{"a":"1"}})";

TEST(EtcdForm, leaves_what_is_its_own) {
  const auto values = form();

  EXPECT_EQ(values->seal(kMapKey, kMap).value(), kMap);
  EXPECT_EQ(values->open(kMapKey, kMap)->value, kMap);
}

TEST(EtcdForm, reads_protobuf) {
  EXPECT_EQ(form()->open(kMapKey, envelope(parsed(kMap), "", "v1"))->value, kMap);
}

TEST(EtcdForm, reads_json_of_any_order_and_spacing) {
  const std::string_view other = R"({ "data": {"a":"1"}, "apiVersion":"v1",
      "metadata": {"creationTimestamp":"2026-01-01T00:00:00Z", "selfLink":"/x", "uid":"u",
                   "resourceVersion":"", "namespace":"default", "name":"m"}, "kind":"ConfigMap" }
)";
  EXPECT_EQ(form()->open(kMapKey, other)->value, kMap);
  EXPECT_EQ(form()->open(kMapKey, cat(kMap, "\n"))->value, kMap) << "as kube-apiserver ends it";
}

TEST(EtcdForm, reads_custom_objects) {
  const std::string_view theirs =
      R"({"apiVersion":"a.example/v1","kind":"Cat","metadata":{"uid":"u","name":"x"},)"
      R"("spec":{"big":9007199254740993,"half":0.5}})"
      "\n";
  const std::string ours =
      R"({"kind":"Cat","apiVersion":"a.example/v1","metadata":{"name":"x","uid":"u"},)"
      R"("spec":{"big":9007199254740993,"half":0.5}})";
  const std::string_view key = "/registry/a.example/cats/default/x";

  EXPECT_EQ(form()->open(key, theirs)->value, ours);
  EXPECT_EQ(form()->open(key, ours)->value, ours);
  EXPECT_FALSE(form()->open(key, R"({"apiVersion":"a.example/v1","kind":"Cat"})").ok());
}

TEST(EtcdForm, converts_to_the_stored_version) {
  const Value old = parsed(
      R"({"kind":"ResourceClaim","apiVersion":"resource.k8s.io/v1beta1",
          "metadata":{"name":"c","namespace":"default","uid":"u"},
          "spec":{"devices":{"requests":[{"name":"r","deviceClassName":"gpu"}]}}})");
  const std::string_view key = "/registry/resourceclaims/default/c";

  const auto opened = form()->open(key, envelope(old, "resource.k8s.io", "v1beta1"));

  ASSERT_TRUE(opened.ok()) << opened.error().message();
  EXPECT_THAT(opened->value,
              StartsWith(R"({"kind":"ResourceClaim","apiVersion":"resource.k8s.io/v1",)"));
  const Value request = parsed(opened->value)["spec"]["devices"]["requests"][0];
  EXPECT_EQ(request["exactly"]["deviceClassName"].as_string(), "gpu");
  EXPECT_EQ(request["exactly"]["allocationMode"].as_string(), "ExactCount") << "a default";
}

TEST(EtcdForm, reads_definitions_as_a_kube_apiserver_stores_them) {
  const std::string_view theirs =
      R"({"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1beta1",)"
      R"("metadata":{"name":"cats.a.example"},"spec":{"group":"a.example","version":"v1",)"
      R"("names":{"plural":"cats","singular":"cat","kind":"Cat","listKind":"CatList"},)"
      R"("scope":"Namespaced","validation":{"openAPIV3Schema":{"type":"object"}},)"
      R"("subresources":{"status":{}},"versions":[{"name":"v1","served":true,"storage":true}],)"
      R"("additionalPrinterColumns":[{"name":"A","type":"string","JSONPath":".a"}],)"
      R"("conversion":{"strategy":"None"},"preserveUnknownFields":false},"status":{}})"
      "\n";

  const auto opened = form()->open(
      "/registry/apiextensions.k8s.io/customresourcedefinitions/cats.a.example", theirs);

  ASSERT_TRUE(opened.ok()) << opened.error().message();
  const Value definition = parsed(opened->value);
  EXPECT_EQ(definition["apiVersion"].as_string(), "apiextensions.k8s.io/v1");
  EXPECT_FALSE(definition["spec"].contains("validation"));
  EXPECT_FALSE(definition["spec"].contains("preserveUnknownFields"));
  EXPECT_EQ(
      definition["spec"]["versions"][0],
      parsed(R"({"name":"v1","served":true,"storage":true,)"
             R"("schema":{"openAPIV3Schema":{"type":"object"}},"subresources":{"status":{}},)"
             R"("additionalPrinterColumns":[{"name":"A","type":"string","jsonPath":".a"}]})"));
}

TEST(EtcdForm, keeps_events_in_the_core_group) {
  const Value event = parsed(
      R"({"kind":"Event","apiVersion":"events.k8s.io/v1","metadata":{"name":"e","namespace":"d"},
          "eventTime":"2026-01-01T00:00:00.000000Z","reportingController":"x","note":"hello",
          "regarding":{"kind":"Pod","name":"p"}})");

  const auto opened = form()->open("/registry/events/d/e", envelope(event, "events.k8s.io", "v1"));

  ASSERT_TRUE(opened.ok()) << opened.error().message();
  EXPECT_EQ(parsed(opened->value)["apiVersion"].as_string(), "v1");
  EXPECT_EQ(parsed(opened->value)["message"].as_string(), "hello");
}

TEST(EtcdForm, writes_a_young_kind_in_the_version_that_servers_of_the_release_know) {
  const std::string_view key = "/registry/devicetaintrules/r";
  const std::string_view ours =
      R"({"kind":"DeviceTaintRule","apiVersion":"resource.k8s.io/v1","metadata":{"name":"r"},)"
      R"("spec":{"taint":{"key":"a","effect":"NoExecute"}}})";
  for (const auto& [release, version] :
       {std::pair("", "v1beta2"), {"1.37", "v1beta2"}, {"1.36", "v1alpha3"}}) {
    const auto values = form(release);
    const std::string sealed = values->seal(key, ours).value();
    EXPECT_THAT(sealed, StartsWith(cat(R"({"kind":"DeviceTaintRule","apiVersion":)",
                                       R"("resource.k8s.io/)", version, "\",")));
    EXPECT_EQ(values->open(key, sealed)->value, ours);
    for (const char* read : {"v1alpha3", "v1beta2"}) {
      Value theirs = parsed(ours);
      theirs.set("apiVersion", cat("resource.k8s.io/", read));
      const auto opened = values->open(key, envelope(theirs, "resource.k8s.io", read));
      ASSERT_TRUE(opened.ok()) << opened.error().message();
      EXPECT_EQ(parsed(opened->value)["spec"], parsed(ours)["spec"]);
      EXPECT_EQ(parsed(opened->value)["apiVersion"], parsed(ours)["apiVersion"]);
    }
  }
}

TEST(EtcdForm, knows_what_a_kube_apiserver_could_not_list) {
  const std::string_view claim =
      R"({"kind":"ResourceClaim","apiVersion":"resource.k8s.io/v1alpha2","metadata":{"name":"c"},)"
      R"("spec":{"resourceClassName":"x"}})";
  const std::string_view key = "/registry/resourceclaims/default/c";

  EXPECT_TRUE(form()->is_apart(key, claim));
  EXPECT_EQ(form()->open(key, claim)->value, claim);
  EXPECT_FALSE(form()->is_apart(kMapKey, kMap));
  const std::string liar = cat(
      R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"\"resource.k8s.io/v1alpha2\""},)",
      R"("data":{"x":"resource.k8s.io/v1alpha2"}})");
  EXPECT_FALSE(form()->is_apart(kMapKey, liar));
  EXPECT_TRUE(form()->may_be_apart(key));
  EXPECT_TRUE(form()->may_be_apart("/registry/resourceclasses/x"));
  EXPECT_FALSE(form()->may_be_apart(kMapKey));
}

TEST(EtcdForm, leaves_alone_what_is_of_no_kind_here) {
  const std::string range = std::string("k8s\0\x0a\x10whatever", 14);
  for (const char* key :
       {"/registry/ranges/serviceips", "/registry/masterleases/10.0.0.1",
        "/registry/storageversions/x", "/registry.dibs/fences/1", "compact_rev_key"}) {
    EXPECT_EQ(form()->open(key, range)->value, range) << key;
    EXPECT_EQ(form()->seal(key, range).value(), range) << key;
    EXPECT_FALSE(form()->is_apart(key, range)) << key;
  }
}

TEST(EtcdForm, says_why_a_value_cannot_be_read) {
  const auto why = [](std::string_view bytes) {
    const auto opened = form()->open(kMapKey, bytes);
    return opened.ok() ? std::string("it can") : opened.error().message();
  };
  EXPECT_THAT(why("k8s:enc:aesgcm:v1:main:secret"), HasSubstr("k8s:enc:aesgcm:v1:main:"));
  EXPECT_THAT(why("k8s:enc:aesgcm:v1:main:secret"), Not(HasSubstr("secret")));
  EXPECT_THAT(why(R"({"kind":"Secret","apiVersion":"v1","metadata":{"name":"m"}})"),
              HasSubstr(R"("Secret" of "v1")"));
  EXPECT_THAT(why(R"({"kind":"ConfigMap","apiVersion":"v7","metadata":{"name":"m"}})"),
              HasSubstr(R"("ConfigMap" of "v7")"));
  EXPECT_THAT(why("{}"), HasSubstr("no kind"));
  EXPECT_NE(why(""), "it can");
  EXPECT_NE(why(std::string("k8s\0\xff\xff", 6)), "it can");
}

TEST(EtcdForm, encrypts_as_before) {
  runtime::SimRuntime sim;
  const auto resources = builtin_resources({}).value();
  const auto encryption = [&](std::string_view registry) {
    return make_encryption(
               "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\n"
               "resources: [{resources: [configmaps], providers: [{aesgcm: {keys: [{name: k, "
               "secret: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=}]}}, {identity: {}}]}]",
               resources, sim.runtime().random, registry)
        .value();
  };
  const auto values = form("", encryption("/registry"));

  const std::string sealed = values->seal(kMapKey, kMap).value();

  EXPECT_THAT(sealed, StartsWith("k8s:enc:aesgcm:v1:k:"));
  EXPECT_EQ(values->open(kMapKey, sealed)->value, kMap);
  const std::string theirs =
      encryption("/registry")->seal(kMapKey, envelope(parsed(kMap), "", "v1")).value();
  EXPECT_EQ(values->open(kMapKey, theirs)->value, kMap) << "protobuf, encrypted";
  EXPECT_FALSE(form("", encryption("/other"))->open(kMapKey, theirs).ok())
      << "its key in the store is another";
}

/// An object of a kind with as much in it as its defaults put there.
Value filled(const Resource& resource) {
  Value object =
      Value::object({{"apiVersion", resource.api_version()},
                     {"kind", resource.kind},
                     {"metadata", Value::object({{"name", "n"},
                                                 {"uid", "u"},
                                                 {"generation", 3},
                                                 {"labels", Value::object({{"a", "b"}})}})}});
  if (resource.namespaced) object.mut("metadata").set("namespace", "ns");
  return object;
}

TEST(EtcdForm, reads_every_version_of_every_kind) {
  const auto values = form();
  for (const ResourcePtr& one : known_resources()) {
    const Value object = filled(*one);
    const std::string key = one->key("ns", "n");

    const auto binary = values->open(key, envelope(object, one->group, one->version));
    ASSERT_TRUE(binary.ok()) << key << " " << one->version << ": " << binary.error().message();
    const auto text = values->open(key, json::write_pretty(object));
    ASSERT_TRUE(text.ok()) << key << ": " << text.error().message();

    EXPECT_EQ(parsed(binary->value), parsed(text->value)) << key;
    EXPECT_TRUE(looks_stored(binary->value)) << binary->value;
    const std::string sealed = values->seal(key, binary->value).value();
    EXPECT_EQ(values->open(key, sealed)->value, binary->value) << key;
    const bool classic = one->group == "resource.k8s.io" && one->version == "v1alpha2";
    EXPECT_EQ(values->is_apart(key, binary->value), classic) << key;
  }
}

/// What a server of the release adds to an object that has little in it.
std::string as_the_release_stores(const Resource& resource) {
  std::vector<std::string> ignored;
  Value object =
      api::decode(filled(resource), *resource.schema, api::Strictness::ignore, ignored).value();
  object.set("kind", resource.kind);
  object.set("apiVersion", resource.api_version());
  return encode_stored(with_defaults(resource, std::move(object)).value());
}

TEST(EtcdForm, adds_the_defaults_of_the_release_that_it_is_for) {
  Options options;
  options.release = "1.27";
  const auto old = form("1.27");
  const auto newest = form();
  int younger = 0;
  const auto served = builtin_resources(options).value();
  for (const ResourcePtr& one : served) {
    if (one->storage_prefix.empty()) continue;
    const Value object = filled(*one);
    const std::string key = one->key("ns", "n");

    const auto opened = old->open(key, json::write_pretty(object));
    ASSERT_TRUE(opened.ok()) << key << ": " << opened.error().message();
    EXPECT_TRUE(parsed(opened->value) == parsed(as_the_release_stores(*one)))
        << opened->value << " expected " << as_the_release_stores(*one);
    const auto now = newest->open(key, json::write_pretty(object));
    younger += now.ok() && parsed(now->value)["spec"] != parsed(opened->value)["spec"] ? 1 : 0;
  }
  EXPECT_GT(younger, 0) << "no kind got a default since: nothing was tested";
}

TEST(EtcdForm, refuses_what_only_begins_and_ends_as_its_own) {
  const auto values = form();
  std::string broken(kMap);
  broken.replace(broken.find("\"a\""), 3, "a");
  const auto opened = values->open(kMapKey, broken);
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(opened.error().message(), HasSubstr("JSON"));

  const std::string_view custom =
      R"({"kind":"Cat","apiVersion":"a.example/v1","metadata":{"name":"x"},"spec":{oops}})";
  EXPECT_FALSE(values->open("/registry/a.example/cats/x", custom).ok());
}

TEST(EtcdForm, survives_any_bytes) {
  const auto values = form();
  const std::string good = envelope(parsed(kMap), "", "v1");
  std::mt19937 random(7);
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = i % 2 == 0 ? good : std::string(kMap);
    const int changes = 1 + static_cast<int>(random() % 4);
    for (int change = 0; change < changes; ++change) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    if (random() % 3 == 0) bytes.resize(random() % bytes.size());
    const auto opened = values->open(kMapKey, bytes);
    if (!opened.ok()) continue;
    EXPECT_TRUE(looks_stored(opened->value));
  }
}

}  // namespace
}  // namespace dibs::server
