#pragma once
// Counters, gauges and histograms, shown in Prometheus' text format 0.0.4.
//
// A family has a name, a help text and label names; its children, one per combination of label
// values, are created on first use and live as long as the registry, so a component looks a child
// up once and keeps the reference. Increments take no lock: counters and histograms spread over
// several cache lines by thread. Families with the same name must agree in type and labels; asking
// again gives the first.
//
// Thread-safe throughout.

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace dibs::metrics {

inline constexpr std::size_t kShards = 8;

class Counter {
 public:
  void add(std::uint64_t n = 1);
  std::uint64_t value() const;

 private:
  struct alignas(64) Cell {
    std::atomic<std::uint64_t> count{0};
  };
  std::array<Cell, kShards> cells_;
};

class Gauge {
 public:
  void set(double value) { value_.store(value, std::memory_order_relaxed); }
  void add(double delta);
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

class Histogram {
 public:
  /// Bounds rise; the bucket for everything above the last is implied.
  explicit Histogram(std::vector<double> bounds);
  void observe(double value);
  /// In seconds.
  void observe(Duration took) { observe(std::chrono::duration<double>(took).count()); }
  std::uint64_t count() const;
  double sum() const;
  /// Observations up to and including each bound, then all of them.
  std::vector<std::uint64_t> cumulative() const;
  const std::vector<double>& bounds() const { return bounds_; }

 private:
  struct alignas(64) Cell {
    std::atomic<double> sum{0};
    std::unique_ptr<std::atomic<std::uint64_t>[]> buckets;
  };
  std::vector<double> bounds_;
  std::array<Cell, kShards> cells_;
};

using LabelValues = std::initializer_list<std::string_view>;

namespace internal {
class FamilyBase;
}

template <typename Metric>
class Family {
 public:
  /// One value per label name, in their order. Requires as many values as there are names.
  Metric& with(LabelValues values);
  /// The child of a family without labels.
  Metric& one() { return with({}); }
  /// Of gauges: all children are 0, because who kept them has ended.
  void clear();

 private:
  friend class Registry;
  explicit Family(internal::FamilyBase& base) : base_(&base) {}
  internal::FamilyBase* base_;
};

using CounterFamily = Family<Counter>;
using GaugeFamily = Family<Gauge>;
using HistogramFamily = Family<Histogram>;

/// A child of a family that is asked for.
struct Sample {
  std::vector<std::string> labels;
  double value = 0;
};
using Samples = std::function<std::vector<Sample>()>;

class Registry {
 public:
  Registry();
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // Families are handles: cheap to copy, valid while the registry lives.
  CounterFamily counter(std::string_view name, std::string_view help,
                        std::vector<std::string> labels = {});
  GaugeFamily gauge(std::string_view name, std::string_view help,
                    std::vector<std::string> labels = {});
  HistogramFamily histogram(std::string_view name, std::string_view help,
                            std::vector<double> bounds, std::vector<std::string> labels = {});
  /// A gauge without labels whose value is asked for at each exposition.
  void gauge_function(std::string_view name, std::string_view help, std::function<double()> value);
  /// Families whose children are asked for at each exposition, by any thread; a later function
  /// takes the place of the first. None of its samples may have the labels of another.
  void gauge_function(std::string_view name, std::string_view help, std::vector<std::string> labels,
                      Samples samples);
  void counter_function(std::string_view name, std::string_view help,
                        std::vector<std::string> labels, Samples samples);

  /// Families by name, children by label values.
  std::string expose() const;
  static constexpr std::string_view kContentType =
      "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// start, start * factor, ... (count of them).
std::vector<double> exponential_bounds(double start, double factor, std::size_t count);

}  // namespace dibs::metrics
