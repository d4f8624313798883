#pragma once
// What a driver counts.

#include <string_view>

#include "base/metrics.h"
#include "base/time.h"

namespace dibs::driver {

class DriverMetrics {
 public:
  /// Names begin with `prefix`: "dra_example_driver_prepare_claims_total".
  DriverMetrics(metrics::Registry& registry, std::string_view prefix);

  void prepared(bool ok, Duration took);
  void unprepared(bool ok, Duration took);
  void background_error(bool fatal);

 private:
  metrics::CounterFamily prepare_total_;
  metrics::HistogramFamily prepare_seconds_;
  metrics::CounterFamily unprepare_total_;
  metrics::HistogramFamily unprepare_seconds_;
  metrics::CounterFamily fatal_errors_;
  metrics::CounterFamily publish_errors_;
};

}  // namespace dibs::driver
