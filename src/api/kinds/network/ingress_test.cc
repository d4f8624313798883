#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/kinds/network/service.h"
#include "base/strings.h"
#include "json/test_text.h"

namespace dibs::api {
namespace {

using json::test::from_text;
using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> texts(const FieldErrors& errors) {
  std::vector<std::string> out;
  for (const auto& error : errors.errors()) out.push_back(cat(error.field, ": ", error.text));
  return out;
}

Value ingress(const std::string& spec, const std::string& annotations = "{}") {
  return from_text(
      cat("{'metadata':{'name':'i','annotations':", annotations, "},'spec':", spec, "}"));
}

std::vector<std::string> faults(const std::string& spec, const std::string& annotations = "{}") {
  FieldErrors errors;
  ingress_rules().validate(ingress(spec, annotations), errors);
  return texts(errors);
}

std::vector<std::string> update_faults(const std::string& spec, const std::string& old) {
  FieldErrors errors;
  ingress_rules().validate_update(ingress(spec), ingress(old), errors);
  return texts(errors);
}

constexpr const char* kBackend = "{'service':{'name':'web','port':{'number':80}}}";

std::string with_path(const std::string& path, const std::string& host = "") {
  return cat("{'rules':[{'host':'", host, "','http':{'paths':[", path, "]}}]}");
}

TEST(Ingress, that_is_right_has_no_faults) {
  EXPECT_THAT(faults(cat("{'defaultBackend':", kBackend, "}")), IsEmpty());
  EXPECT_THAT(faults(cat("{'ingressClassName':'a.b','rules':[{'host':'*.foo.com','http':{'paths':[{"
                         "'path':'/a','pathType':'Prefix','backend':",
                         kBackend,
                         "},{'pathType':'ImplementationSpecific','backend':{'resource':{'apiGroup':"
                         "'example.com','kind':'Bucket','name':'b'}}}]}},{'host':'bar.com'}],'tls':"
                         "[{'hosts':['*.foo.com','bar.com'],'secretName':'s'},{}]}")),
              IsEmpty());
}

TEST(Ingress, must_lead_somewhere) {
  EXPECT_THAT(faults("{}"),
              ElementsAre("spec: Invalid value: null: either `defaultBackend` or `rules` must be "
                          "specified"));
  EXPECT_THAT(faults("{'rules':[{'http':{'paths':[]}}]}"),
              ElementsAre("spec.rules[0].http.paths: Required value"));
  EXPECT_THAT(
      faults("{'defaultBackend':{}}"),
      ElementsAre("spec.defaultBackend: Invalid value: \"\": resource or service backend is "
                  "required"));
}

TEST(Ingress, backends_are_one_thing_with_one_port) {
  EXPECT_THAT(
      faults("{'defaultBackend':{'service':{'name':'web','port':{'number':80}},'resource':{'kind':"
             "'B','name':'b'}}}"),
      ElementsAre("spec.defaultBackend: Invalid value: \"\": cannot set both resource and service "
                  "backends"));
  EXPECT_THAT(faults("{'defaultBackend':{'service':{'name':'','port':{}}}}"),
              ElementsAre("spec.defaultBackend.service.name: Required value",
                          "spec.defaultBackend: Required value: port name or number is required"));
  EXPECT_THAT(
      faults("{'defaultBackend':{'service':{'name':'web','port':{'name':'http','number':80}}}}"),
      ElementsAre("spec.defaultBackend: Invalid value: \"\": cannot set both port name & port "
                  "number"));
  EXPECT_THAT(
      faults("{'defaultBackend':{'service':{'name':'web','port':{'number':70000}}}}"),
      ElementsAre("spec.defaultBackend.service.port.number: Invalid value: 70000: must be between "
                  "1 and 65535, inclusive"));
  EXPECT_THAT(faults("{'defaultBackend':{'resource':{'kind':'a/b','name':''}}}"),
              ElementsAre("spec.defaultBackend.resource.kind: Invalid value: \"a/b\": may not "
                          "contain '/'",
                          "spec.defaultBackend.resource.name: Required value"));
}

TEST(Ingress, paths_are_absolute_and_of_a_type) {
  EXPECT_THAT(faults(with_path(cat("{'path':'/','backend':", kBackend, "}"))),
              ElementsAre("spec.rules[0].http.paths[0].pathType: Required value: pathType must be "
                          "specified"));
  EXPECT_THAT(faults(with_path(cat("{'path':'/','pathType':'Exactly','backend':", kBackend, "}"))),
              ElementsAre("spec.rules[0].http.paths[0].pathType: Unsupported value: \"Exactly\": "
                          "supported values: \"Exact\", \"ImplementationSpecific\", \"Prefix\""));
  EXPECT_THAT(
      faults(with_path(cat("{'path':'a//b/..','pathType':'Exact','backend':", kBackend, "}"))),
      ElementsAre("spec.rules[0].http.paths[0].path: Invalid value: \"a//b/..\": must be an "
                  "absolute path",
                  "spec.rules[0].http.paths[0].path: Invalid value: \"a//b/..\": must not contain "
                  "'//'",
                  "spec.rules[0].http.paths[0].path: Invalid value: \"a//b/..\": cannot end with "
                  "'/..'"));
  EXPECT_THAT(faults(with_path(cat("{'pathType':'Prefix','backend':", kBackend, "}"))),
              ElementsAre("spec.rules[0].http.paths[0].path: Invalid value: \"\": must be an "
                          "absolute path"));
}

TEST(Ingress, hosts_are_names) {
  EXPECT_THAT(faults("{'rules':[{'host':'10.0.0.1'}]}"),
              ElementsAre("spec.rules[0].host: Invalid value: \"10.0.0.1\": must be a DNS name, "
                          "not an IP address"));
  for (const char* host : {"foo.*.com", "*", "*foo.com", "Foo.com"})
    EXPECT_THAT(faults(cat("{'rules':[{'host':'", host, "'}]}")), testing::SizeIs(1)) << host;
  EXPECT_THAT(faults(cat("{'defaultBackend':", kBackend,
                         ",'tls':[{'hosts':['a_b'],'secretName':"
                         "'A'}]}")),
              testing::SizeIs(2));
}

TEST(Ingress, has_one_class) {
  const std::string spec = cat("{'ingressClassName':'a','defaultBackend':", kBackend, "}");
  EXPECT_THAT(faults(spec, "{'kubernetes.io/ingress.class':'a'}"), IsEmpty());
  EXPECT_THAT(faults(spec, "{'kubernetes.io/ingress.class':'b'}"),
              ElementsAre("annotations.kubernetes.io/ingress.class: Invalid value: \"b\": must "
                          "match `ingressClassName` when both are specified"));

  const Value older =
      ingress(cat("{'defaultBackend':", kBackend, "}"), "{'kubernetes.io/ingress.class':'b'}");
  EXPECT_THAT(ingress_rules().warnings(older, nullptr),
              ElementsAre("annotation \"kubernetes.io/ingress.class\" is deprecated, please use "
                          "'spec.ingressClassName' instead"));
  EXPECT_THAT(ingress_rules().warnings(older, &older), IsEmpty());
}

TEST(Ingress, keeps_what_was_let_in_before) {
  const std::string secret = cat("{'defaultBackend':", kBackend, ",'tls':[{'secretName':'A'}]}");
  EXPECT_THAT(faults(secret), testing::SizeIs(1));
  EXPECT_THAT(update_faults(secret, secret), IsEmpty());
  EXPECT_THAT(update_faults(secret, cat("{'defaultBackend':", kBackend, "}")), testing::SizeIs(1));

  const std::string wild = with_path("{'path':'/'}", "*.foo.com");
  EXPECT_THAT(faults(wild), testing::SizeIs(1));
  EXPECT_THAT(update_faults(wild, wild), IsEmpty());
}

TEST(Ingress, status_names_places) {
  const auto judged = [](const std::string& place, const std::string& before) {
    FieldErrors errors;
    const auto with = [](const std::string& one) {
      return from_text(cat("{'status':{'loadBalancer':{'ingress':[", one, "]}}}"));
    };
    ingress_rules().validate_status(with(place), with(before), errors);
    return texts(errors);
  };
  EXPECT_THAT(judged("{'ip':'10.0.0.1'},{'hostname':'a.b'}", ""), IsEmpty());
  EXPECT_THAT(judged("{'ip':'10.0.0.01'}", ""),
              ElementsAre("status.loadBalancer.ingress[0].ip: Invalid value: \"10.0.0.01\": must "
                          "not have leading 0s"));
  EXPECT_THAT(judged("{'ip':'10.0.0.01'}", "{'ip':'10.0.0.01'}"), IsEmpty());
  EXPECT_THAT(judged("{'hostname':'10.0.0.1'}", ""),
              ElementsAre("status.loadBalancer.ingress[0].hostname: Invalid value: \"10.0.0.1\": "
                          "must be a DNS name, not an IP address"));
}

TEST(IngressClass, names_its_controller_for_good) {
  const auto judged = [](const std::string& spec, const std::string& old = "") {
    FieldErrors errors;
    const auto with = [](const std::string& text) {
      Value object = from_text(cat("{'metadata':{'name':'c'},'spec':", text, "}"));
      ingress_class_rules().set_defaults(object);
      return object;
    };
    if (old.empty()) {
      ingress_class_rules().validate(with(spec), errors);
    } else {
      ingress_class_rules().validate_update(with(spec), with(old), errors);
    }
    return texts(errors);
  };
  EXPECT_THAT(judged("{'controller':'a.io/b'}"), IsEmpty());
  EXPECT_THAT(judged("{}"), ElementsAre("spec.controller: Required value"));
  EXPECT_THAT(judged("{'controller':'b'}"), testing::SizeIs(1));
  EXPECT_THAT(judged("{'controller':'A/b c'}"),
              ElementsAre(testing::StartsWith("spec.controller: Invalid value: \"A\": a lowercase"),
                          testing::StartsWith("spec.controller: Invalid value: \"b c\": Invalid "
                                              "path (regex used")));
  EXPECT_THAT(judged("{'controller':'a.io/c'}", "{'controller':'a.io/b'}"),
              ElementsAre("spec.controller: Invalid value: \"a.io/c\": field is immutable"));
  EXPECT_THAT(judged("{'controller':'a.io/b','parameters':{'kind':'K','name':'n'}}"), IsEmpty());
  EXPECT_THAT(
      judged("{'controller':'a.io/b','parameters':{'kind':'K','name':'n','namespace':'x'}}"),
      ElementsAre("spec.parameters.namespace: Forbidden: `parameters.scope` is set to "
                  "'Cluster'"));
  EXPECT_THAT(judged("{'controller':'a.io/b','parameters':{'kind':'K','name':'n','scope':"
                     "'Namespace'}}"),
              ElementsAre("spec.parameters.namespace: Required value: `parameters.scope` is set to "
                          "'Namespace'"));
  EXPECT_THAT(judged("{'controller':'a.io/b','parameters':{'kind':'K','name':'n','scope':'Here'}}"),
              ElementsAre("spec.parameters.scope: Unsupported value: \"Here\": supported values: "
                          "\"Cluster\", \"Namespace\""));
}

}  // namespace
}  // namespace dibs::api
