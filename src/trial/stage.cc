#include "trial/stage.h"

#include "base/strings.h"
#include "runtime/files.h"
#include "server/credentials.h"
#include "store/memory_store.h"

namespace dibs::trial {

using json::Value;

Result<std::unique_ptr<Stage>> Stage::build(const std::string& folder, const std::string& node) {
  auto stage = std::unique_ptr<Stage>(new Stage(folder, node));
  for (const auto& made : {stage->registry(), stage->plugins(), stage->cdi()}) {
    DIBS_CHECK(runtime::system_files().make_dirs(made, 0750));
  }
  DIBS_CHECK(stage->start_server());
  DIBS_CHECK(stage->make_node());
  return stage;
}

Stage::~Stage() {
  if (cluster_) cluster_->stop();
}

Result<> Stage::start_server() {
  cluster::World world = cluster::real_world();
  runtime::Files& files = world.files;
  DIBS_TRY(const auto keys,
           server::load_credentials(files, world.runtime.clock, folder_ + "/pki", {}));
  cluster::Options options;
  options.server.account_key_pem = keys.account_key_pem;
  options.server.ca_pem = keys.ca.certificate_pem;
  auto& port = options.port.emplace();
  auto& tls = port.tls.emplace();
  tls.certificate_pem = keys.server.certificate_pem;
  tls.key_pem = keys.server.key_pem;
  tls.client_ca_pem = keys.ca.certificate_pem;
  tls.http2 = true;
  DIBS_TRY(cluster_, cluster::Cluster::start(std::move(world), store::make_memory_store(),
                                             std::move(options)));
  return files.write(kubeconfig(),
                     server::make_kubeconfig(keys.ca.certificate_pem, "trial", keys.admin,
                                             cat("https://", cluster_->advertised())));
}

Result<> Stage::make_node() {
  DIBS_TRY(const auto made,
           api().create({"", "v1", "nodes"}, "",
                        Value::object({{"apiVersion", "v1"},
                                       {"kind", "Node"},
                                       {"metadata", Value::object({{"name", node_}})}})));
  node_uid_ = made["metadata"]["uid"].str();
  return success();
}

Result<std::vector<Value>> Stage::slices(const std::string& driver) {
  client::ListOptions of_driver;
  of_driver.field_selector = cat("spec.driver=", driver);
  DIBS_TRY(auto listed, api().list(kSlices, "", of_driver));
  return std::move(listed.items);
}

Result<Value> Stage::allocated_claim(const std::vector<Value>& results, std::string_view driver,
                                     const Value& parameters) {
  const std::string name = cat("trial-", ++claims_);
  Value requests = Value::array();
  Value allocated = Value::array();
  for (const Value& result : results) {
    requests.push(
        Value::object({{"name", result["request"]},
                       {"exactly", Value::object({{"deviceClassName", result["driver"]}})}}));
    allocated.push(result);
  }
  Value devices = Value::object({{"results", std::move(allocated)}});
  if (!parameters.is_null()) {
    Value opaque = Value::object({{"driver", driver}, {"parameters", parameters}});
    devices.set(
        "config",
        Value::array({Value::object({{"source", "FromClaim"}, {"opaque", std::move(opaque)}})}));
  }
  DIBS_TRY(
      Value claim,
      api().create(
          kClaims, "default",
          Value::object(
              {{"apiVersion", "resource.k8s.io/v1"},
               {"kind", "ResourceClaim"},
               {"metadata", Value::object({{"name", name}})},
               {"spec", Value::object(
                            {{"devices", Value::object({{"requests", std::move(requests)}})}})}})));
  const std::string pod_uid = make_uuid(runtime().random);
  claim.set("status",
            Value::object({{"allocation", Value::object({{"devices", std::move(devices)}})},
                           {"reservedFor",
                            Value::array({Value::object(
                                {{"resource", "pods"}, {"name", name}, {"uid", pod_uid}})})}}));
  return api().update_status(kClaims, "default", claim);
}

}  // namespace dibs::trial
