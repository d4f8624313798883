#pragma once
// For tests of endpoints: Services, nodes, and pods that are as far as a test says.

#include <string>
#include <vector>

#include "base/strings.h"
#include "controllers/endpoints/endpoint_objects.h"
#include "controllers/test_cluster.h"

namespace dibs::controllers::test {

class ServiceCluster : public TestCluster {
 public:
  using TestCluster::TestCluster;

  void add_node(const std::string& name, const std::string& zone = "") {
    create(kNodes, "",
           cat("{'metadata': {'name': '", name, "'",
               zone.empty() ? "" : cat(", 'labels': {'topology.kubernetes.io/zone': '", zone, "'}"),
               "}}"));
  }
  /// `more`: further members of the spec, each ending with a comma.
  void add_service(const std::string& name, const std::string& more = "") {
    create(kServiceResource, "default",
           cat("{'metadata': {'name': '", name, "', 'labels': {'team': 'a'}}, 'spec': {", more,
               "'selector': {'app': '", name,
               "'}, 'ports': [{'name': 'http', 'port': 80, 'targetPort': 8080}]}}"));
  }
  /// On node n, running, not ready.
  void add_pod(const std::string& name, const std::string& app, const std::string& ip,
               const std::string& more = "", const std::string& node = "n") {
    create(kPods, "default",
           cat("{'metadata': {'name': '", name, "', 'labels': {'app': '", app,
               "'}}, 'spec': {'nodeName': '", node, "', ", more,
               "'containers': [{'name': 'm', 'image': 'x', 'ports': [{'name': 'web', "
               "'containerPort': 8080}]}]}}"));
    patch(kPods, "default", name,
          cat("{'status': {'phase': 'Running', 'podIP': '", ip, "', 'podIPs': [{'ip': '", ip,
              "'}]}}"),
          "status");
  }
  void set_ready(const std::string& name, bool ready = true) {
    patch(kPods, "default", name,
          cat("{'status': {'conditions': [{'type': 'Ready', 'status': '", ready ? "True" : "False",
              "', 'lastTransitionTime': '2026-01-01T00:00:00Z'}]}}"),
          "status");
  }
  std::vector<Value> slices(const std::string& service) {
    std::vector<Value> out;
    for (const Value& slice : list(kSliceResource, "default")) {
      if (slice["metadata"]["labels"][kServiceNameLabel].as_string() == service)
        out.push_back(slice);
    }
    return out;
  }
  /// "10.1.0.1 ready serving", in the order of the addresses.
  std::vector<std::string> endpoints_of(const std::string& service) {
    std::vector<std::string> out;
    for (const Value& slice : slices(service)) {
      for (const Value& endpoint : slice["endpoints"].items()) {
        std::string text = endpoint["addresses"][0].str();
        for (const char* condition : {"ready", "serving", "terminating"})
          if (endpoint["conditions"][condition].as_bool()) append(text, ' ', condition);
        out.push_back(text);
      }
    }
    std::sort(out.begin(), out.end());
    return out;
  }
};

}  // namespace dibs::controllers::test
