#pragma once
// A server with a kind in two versions, and a webhook between them that answers at once.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "json/parse.h"
#include "server/test_support.h"

namespace dibs::server {

inline constexpr const char* kDefinitions =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
inline constexpr const char* kDefinition =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.com";
inline constexpr const char* kV1 = "/apis/example.com/v1/namespaces/default/things";
inline constexpr const char* kV2 = "/apis/example.com/v2/namespaces/default/things";

/// v1 has hostPort: "h:p", v2 has host and port.
class Converter : public WebhookTransport {
 public:
  WebhookReply post(const WebhookCall& call) override {
    calls.push_back(call);
    if (during) during();
    const json::Value review = json::parse(call.body).value();
    if (down) return {Error::unavailable("Post \"https://hooks/convert\": refused"), {}};
    if (!raw.empty()) {
      net::Response out;
      out.body = raw;
      return {out, {}};
    }
    json::Value objects = json::Value::array();
    for (const json::Value& object : review["request"]["objects"].items())
      objects.push(convert(object, review["request"]["desiredAPIVersion"].str()));
    json::Value response =
        json::Value::object({{"uid", review["request"]["uid"]},
                             {"result", json::Value::object({{"status", "Success"}})},
                             {"convertedObjects", std::move(objects)}});
    for (const auto& [key, value] : changes.members()) response.set(key, value);
    net::Response out;
    out.body = json::write(json::Value::object({{"kind", "ConversionReview"},
                                                {"apiVersion", review["apiVersion"]},
                                                {"response", std::move(response)}}));
    return {out, std::chrono::milliseconds(20)};
  }

  json::Value convert(json::Value object, const std::string& to) const {
    object.set("apiVersion", to);
    if (to == "example.com/v2" && object.contains("hostPort")) {
      const std::string both = object["hostPort"].str();
      object.erase("hostPort");
      object.set("host", both.substr(0, both.find(':')));
      object.set("port", both.substr(both.find(':') + 1));
    } else if (to == "example.com/v1") {
      object.set("hostPort", cat(object["host"].as_string(), ":", object["port"].as_string()));
      object.erase("host");
      object.erase("port");
    }
    if (change) change(object);
    return object;
  }
  std::size_t objects_of(std::size_t call) const {
    return json::parse(calls[call].body).value()["request"]["objects"].size();
  }

  std::vector<WebhookCall> calls;
  bool down = false;
  std::string raw;
  json::Value changes = json::Value::object();
  std::function<void(json::Value&)> change;
  std::function<void()> during;
};

inline Options with(std::shared_ptr<Converter> hook) {
  Options options;
  options.webhooks = std::move(hook);
  return options;
}

inline json::Value definition(std::string_view stored = "v1", std::string_view reviews = "['v1']") {
  json::Value out = test::from_text(
      "{'metadata':{'name':'things.example.com'},'spec':{'group':'example.com','scope':'Namespaced'"
      ",'names':{'plural':'things','singular':'thing','kind':'Thing','listKind':'ThingList'},"
      "'conversion':{'strategy':'Webhook','webhook':{'clientConfig':{'url':'https://hooks/convert'}"
      "}},'versions':["
      "{'name':'v1','served':true,'storage':true,'schema':{'openAPIV3Schema':{'type':'object',"
      "'properties':{'hostPort':{'type':'string'}}}},"
      "'selectableFields':[{'jsonPath':'.hostPort'}]},"
      "{'name':'v2','served':true,'storage':false,'schema':{'openAPIV3Schema':{'type':'object',"
      "'required':['host'],'properties':{'host':{'type':'string'},'port':{'type':'string'}}}},"
      "'selectableFields':[{'jsonPath':'.host'}]}]}}");
  json::Value versions = json::Value::array();
  for (json::Value version : out["spec"]["versions"].items()) {
    version.set("storage", version["name"].as_string() == stored);
    versions.push(std::move(version));
  }
  out.mut("spec").set("versions", std::move(versions));
  out.mut("spec")
      .mut("conversion")
      .mut("webhook")
      .set("conversionReviewVersions", test::from_text(reviews));
  return out;
}

class Conversion : public testing::Test {
 protected:
  explicit Conversion(std::string_view reviews = "['v1']")
      : hook(std::make_shared<Converter>()), api(with(hook)) {
    test::Reply made = api.post(kDefinitions, definition("v1", reviews));
    EXPECT_EQ(made.status, 201) << made.text;
  }
  test::Reply create(std::string_view name, std::string_view both = "h:1") {
    return api.post(kV1, json::Value::object({{"apiVersion", "example.com/v1"},
                                              {"kind", "Thing"},
                                              {"metadata", json::Value::object({{"name", name}})},
                                              {"hostPort", both}}));
  }
  test::Reply create_v2(std::string_view name) {
    return api.post(kV2, json::Value::object({{"apiVersion", "example.com/v2"},
                                              {"kind", "Thing"},
                                              {"metadata", json::Value::object({{"name", name}})},
                                              {"host", "x"},
                                              {"port", "9"}}));
  }
  void store_v2() {
    json::Value stored = api.get(kDefinition).body;
    json::Value next = definition("v2");
    next.mut("metadata").set("resourceVersion", stored["metadata"]["resourceVersion"]);
    test::Reply put = api.put(kDefinition, next);
    ASSERT_EQ(put.status, 200) << put.text;
  }
  std::string at(const char* kind, std::string_view name) { return cat(kind, "/", name); }

  std::shared_ptr<Converter> hook;
  test::TestServer api;
};

}  // namespace dibs::server
