#include "base/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

namespace dibs::metrics {
namespace {

TEST(Metrics, exposes_families_in_order) {
  Registry registry;
  auto requests = registry.counter("requests_total", "Requests\nserved.", {"verb", "code"});
  registry.gauge("inflight", "Requests under way.").one().set(1.5);
  registry.gauge_function("alive", "Is it.", [] { return 1.0; });
  requests.with({"LIST", "200"}).add(3);
  requests.with({"GET", "200"}).add();
  requests.with({"GET", "a\"b\\c\n"}).add();

  EXPECT_EQ(registry.expose(),
            "# HELP alive Is it.\n"
            "# TYPE alive gauge\n"
            "alive 1\n"
            "# HELP inflight Requests under way.\n"
            "# TYPE inflight gauge\n"
            "inflight 1.5\n"
            "# HELP requests_total Requests\\nserved.\n"
            "# TYPE requests_total counter\n"
            "requests_total{verb=\"GET\",code=\"200\"} 1\n"
            "requests_total{verb=\"GET\",code=\"a\\\"b\\\\c\\n\"} 1\n"
            "requests_total{verb=\"LIST\",code=\"200\"} 3\n");
}

TEST(Metrics, histogram_counts_up_to_and_including_a_bound) {
  Registry registry;
  Histogram& latency =
      registry.histogram("latency_seconds", "Time.", {0.1, 1}, {"verb"}).with({"GET"});
  for (double v : {0.05, 0.1, 0.5, 7.0}) latency.observe(v);

  EXPECT_EQ(latency.count(), 4u);
  EXPECT_EQ(registry.expose(),
            "# HELP latency_seconds Time.\n"
            "# TYPE latency_seconds histogram\n"
            "latency_seconds_bucket{verb=\"GET\",le=\"0.1\"} 2\n"
            "latency_seconds_bucket{verb=\"GET\",le=\"1\"} 3\n"
            "latency_seconds_bucket{verb=\"GET\",le=\"+Inf\"} 4\n"
            "latency_seconds_sum{verb=\"GET\"} 7.65\n"
            "latency_seconds_count{verb=\"GET\"} 4\n");
}

TEST(Metrics, children_are_stable_and_families_are_shared) {
  Registry registry;
  Counter& first = registry.counter("c_total", "C.", {"a", "b"}).with({"x", "yz"});
  Counter& again = registry.counter("c_total", "C.", {"a", "b"}).with({"x", "yz"});
  Counter& other = registry.counter("c_total", "C.", {"a", "b"}).with({"xy", "z"});
  EXPECT_EQ(&first, &again);
  EXPECT_NE(&first, &other);
}

TEST(Metrics, no_increment_is_lost_between_threads) {
  Registry registry;
  auto counter = registry.counter("c_total", "C.", {"k"});
  auto histogram = registry.histogram("h", "H.", exponential_bounds(1, 2, 3));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        counter.with({i % 2 == 0 ? "even" : "odd"}).add();
        histogram.one().observe(i);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter.with({"even"}).value(), 2000u);
  EXPECT_EQ(histogram.one().count(), 4000u);
}

TEST(Metrics, children_may_be_asked_for) {
  Registry registry;
  int asked = 0;
  registry.gauge_function("g", "G.", {"a", "b"}, [&] {
    return std::vector<Sample>{{{"2", "x\""}, 0.5}, {{"1", "y"}, static_cast<double>(++asked)}};
  });
  registry.counter_function("c_total", "C.", {}, [] { return std::vector<Sample>{{{}, 7}}; });
  registry.gauge_function("none", "N.", {"a"}, [] { return std::vector<Sample>{}; });
  for (int i = 1; i <= 2; ++i) {
    const std::string text = registry.expose();
    EXPECT_THAT(text, testing::HasSubstr("# TYPE c_total counter\nc_total 7\n"));
    EXPECT_THAT(text, testing::HasSubstr("# TYPE g gauge\ng{a=\"1\",b=\"y\"} " + std::to_string(i) +
                                         "\ng{a=\"2\",b=\"x\\\"\"} 0.5\n"));
    EXPECT_THAT(text, testing::HasSubstr("# TYPE none gauge\n"));
  }
  registry.gauge_function("none", "N.", {"a"}, [] { return std::vector<Sample>{{{"z"}, 1}}; });
  EXPECT_THAT(registry.expose(), testing::HasSubstr("none{a=\"z\"} 1\n"));
}

TEST(Metrics, gauges_go_up_and_down_and_are_cleared) {
  Registry registry;
  auto gauge = registry.gauge("g", "G.", {"k"});
  gauge.with({"a"}).add(3);
  gauge.with({"a"}).add(-1);
  gauge.with({"b"}).set(5);
  EXPECT_EQ(gauge.with({"a"}).value(), 2);
  gauge.clear();
  EXPECT_EQ(gauge.with({"a"}).value() + gauge.with({"b"}).value(), 0);
}

TEST(Metrics, durations_are_seconds) {
  Histogram histogram({0.01, 0.1});
  histogram.observe(std::chrono::milliseconds(50));
  EXPECT_THAT(histogram.cumulative(), testing::ElementsAre(0, 1, 1));
  EXPECT_DOUBLE_EQ(histogram.sum(), 0.05);
}

TEST(Metrics, large_and_special_numbers) {
  Registry registry;
  registry.gauge("a", "A.").one().set(INFINITY);
  registry.gauge("b", "B.").one().set(1e21);
  registry.counter("c_total", "C.").one().add(12345678);
  std::string text = registry.expose();
  EXPECT_THAT(text, testing::HasSubstr("\na +Inf\n"));
  EXPECT_THAT(text, testing::HasSubstr("\nb 1e+21\n"));
  EXPECT_THAT(text, testing::HasSubstr("\nc_total 12345678\n"));
}

}  // namespace
}  // namespace dibs::metrics
