#pragma once
// The object that patches are laid over: a pod in normal form with something of everything that
// merges in a way of its own.

#include "api/schema/builtin.h"
#include "api/schema/decode.h"
#include "fuzz/targets.h"
#include "json/parse.h"

namespace dibs::fuzz {

inline const api::Schema& pod_schema() { return *api::builtin_schema("", "v1", "Pod"); }

inline const json::Value& pod() {
  static const json::Value value = [] {
    const auto raw = json::parse(R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"p",
      "namespace":"n","uid":"u","labels":{"a":"1","b":"2"},"finalizers":["e.com/x","e.com/y"],
      "ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"o","uid":"1"}]},
      "spec":{"containers":[
        {"name":"c1","image":"i","ports":[{"containerPort":80,"protocol":"TCP"},
          {"containerPort":80,"protocol":"UDP"}],"env":[{"name":"A","value":"1"},
          {"name":"B","valueFrom":{"fieldRef":{"fieldPath":"spec.nodeName"}}}],
          "resources":{"limits":{"cpu":"1"},"claims":[{"name":"gpu"}]}},
        {"name":"c2","args":["x","y"],"volumeMounts":[{"name":"v","mountPath":"/v"}]}],
      "volumes":[{"name":"v","emptyDir":{}},{"name":"w","configMap":{"name":"m"}}],
      "resourceClaims":[{"name":"gpu","resourceClaimName":"r"}],
      "tolerations":[{"key":"k","operator":"Exists"}],
      "topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"z","whenUnsatisfiable":"DoNotSchedule"}],
      "nodeSelector":{"x":"y"},"hostAliases":[{"ip":"1.1.1.1","hostnames":["h"]}]},
      "status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}],
        "podIPs":[{"ip":"10.0.0.1"}]}})");
    require(raw.ok(), "the pod is JSON");
    std::vector<std::string> strict;
    const auto decoded = api::decode(*raw, pod_schema(), api::Strictness::strict, strict);
    require(decoded.ok(), "the pod is one");
    return *decoded;
  }();
  return value;
}

}  // namespace dibs::fuzz
