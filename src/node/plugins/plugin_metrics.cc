#include "node/plugins/plugin_metrics.h"

#include <cmath>

#include "base/strings.h"

namespace dibs::node {
namespace {

/// 15 bounds from 0.1 s to 40 s.
std::vector<double> bounds() {
  return metrics::exponential_bounds(0.1, std::pow(400.0, 1.0 / 14), 15);
}

/// "OK", "Unavailable": the word after "code = " of the status' text.
std::string code_name(rpc::Code code) {
  constexpr std::string_view kBefore = "rpc error: code = ";
  const std::string text = rpc::Status{code, ""}.text().substr(kBefore.size());
  return text.substr(0, text.find(' '));
}

}  // namespace

struct PluginMetrics::Families {
  explicit Families(metrics::Registry& registry)
      : operations(registry.histogram(
            "dra_operations_duration_seconds",
            "Time it took to prepare or unprepare the claims of a pod, in seconds.", bounds(),
            {"operation_name", "is_error"})),
        calls(registry.histogram("dra_grpc_operations_duration_seconds",
                                 "Duration of gRPC calls to DRA drivers, in seconds.", bounds(),
                                 {"driver_name", "method_name", "grpc_status_code"})),
        in_use(registry.gauge("dra_resource_claims_in_use",
                              "ResourceClaims that are prepared on this node, by driver; <any> "
                              "counts each once.",
                              {"driver_name"})),
        prepare_skips(registry.counter("dra_node_prepare_skips_total",
                                       "Claims that needed no NodePrepareResources call.",
                                       {"driver_name"})),
        unprepare_skips(registry.counter("dra_node_unprepare_skips_total",
                                         "Claims that needed no NodeUnprepareResources call.",
                                         {"driver_name"})) {}

  metrics::HistogramFamily operations;
  metrics::HistogramFamily calls;
  metrics::GaugeFamily in_use;
  metrics::CounterFamily prepare_skips;
  metrics::CounterFamily unprepare_skips;
};

PluginMetrics::PluginMetrics(metrics::Registry* registry) {
  if (registry) families_ = std::make_shared<Families>(*registry);
}

void PluginMetrics::operation(std::string_view name, bool failed, Duration took) {
  if (families_) families_->operations.with({name, failed ? "true" : "false"}).observe(took);
}

void PluginMetrics::call(std::string_view driver, std::string_view method, rpc::Code code,
                         Duration took) {
  if (families_) families_->calls.with({driver, method, code_name(code)}).observe(took);
}

void PluginMetrics::claims_in_use(std::string_view driver, std::size_t count) {
  if (families_) families_->in_use.with({driver}).set(static_cast<double>(count));
}

void PluginMetrics::skipped_prepare(std::string_view driver) {
  if (families_) families_->prepare_skips.with({driver}).add();
}

void PluginMetrics::skipped_unprepare(std::string_view driver) {
  if (families_) families_->unprepare_skips.with({driver}).add();
}

}  // namespace dibs::node
