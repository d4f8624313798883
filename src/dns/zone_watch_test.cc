#include "dns/zone_watch.h"

#include <gtest/gtest.h>

#include "client/testing/fake_api.h"
#include "json/parse.h"
#include "runtime/sim_runtime.h"

namespace dibs::dns {
namespace {

TEST(ZoneWatch, follows_services_slices_and_namespaces) {
  runtime::SimRuntime sim;
  client::FakeApi api;
  auto transport = client::make_in_process_transport(api.handler(), sim.runtime());
  client::Client client(*transport);
  Zone zone{{.domain = "cluster.local"}};
  const auto rcode = [&](const char* name) {
    return zone.answer({*Name::from_text(name), type::a})->rcode;
  };
  const std::string web = "/api/v1/namespaces/default/services/web";
  api.put("/api/v1/namespaces/default", *json::parse(R"({"metadata":{"name":"default"}})"));
  api.put(web, *json::parse(R"({"metadata":{"name":"web","namespace":"default"},
      "spec":{"clusterIP":"None"}})"));

  ZoneWatch watch(client, sim.runtime(), zone);
  EXPECT_EQ(rcode("web.default.svc.cluster.local"), Rcode::server_failure);
  watch.start();
  sim.advance(std::chrono::seconds(1));
  EXPECT_EQ(rcode("web.default.svc.cluster.local"), Rcode::name_error);

  api.put("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/web-x",
          *json::parse(R"({"metadata":{"name":"web-x","namespace":"default",
      "labels":{"kubernetes.io/service-name":"web"}},
      "endpoints":[{"addresses":["10.1.1.1"],"hostname":"one"}]})"));
  sim.advance(std::chrono::seconds(1));
  EXPECT_EQ(rcode("one.web.default.svc.cluster.local"), Rcode::no_error);

  api.remove(web);
  sim.advance(std::chrono::seconds(1));
  EXPECT_EQ(rcode("one.web.default.svc.cluster.local"), Rcode::name_error);
  watch.stop();
}

}  // namespace
}  // namespace dibs::dns
