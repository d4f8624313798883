#include "driver/metrics.h"

#include "base/strings.h"

namespace dibs::driver {
namespace {

std::vector<double> bounds() { return {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}; }

}  // namespace

DriverMetrics::DriverMetrics(metrics::Registry& registry, std::string_view prefix)
    : prepare_total_(registry.counter(cat(prefix, "_prepare_claims_total"),
                                      "Claims that were to be prepared, by result.", {"result"})),
      prepare_seconds_(registry.histogram(cat(prefix, "_prepare_claim_duration_seconds"),
                                          "How long it took to prepare a claim.", bounds(),
                                          {"result"})),
      unprepare_total_(registry.counter(cat(prefix, "_unprepare_claims_total"),
                                        "Claims that were to be unprepared, by result.",
                                        {"result"})),
      unprepare_seconds_(registry.histogram(cat(prefix, "_unprepare_claim_duration_seconds"),
                                            "How long it took to unprepare a claim.", bounds(),
                                            {"result"})),
      fatal_errors_(registry.counter(cat(prefix, "_fatal_background_errors_total"),
                                     "Errors that ended the driver.")),
      publish_errors_(
          registry.counter(cat(prefix, "_publish_errors_total"), "Failures to publish devices.")) {
  for (const char* result : {"success", "error"}) {
    prepare_total_.with({result}).add(0);
    unprepare_total_.with({result}).add(0);
  }
  fatal_errors_.one().add(0);
  publish_errors_.one().add(0);
}

void DriverMetrics::prepared(bool ok, Duration took) {
  prepare_total_.with({ok ? "success" : "error"}).add();
  prepare_seconds_.with({ok ? "success" : "error"}).observe(took);
}

void DriverMetrics::unprepared(bool ok, Duration took) {
  unprepare_total_.with({ok ? "success" : "error"}).add();
  unprepare_seconds_.with({ok ? "success" : "error"}).observe(took);
}

void DriverMetrics::background_error(bool fatal) {
  (fatal ? fatal_errors_ : publish_errors_).one().add();
}

}  // namespace dibs::driver
