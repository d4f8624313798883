#pragma once
// Figures as a table for people and as JSON for programs.

#include <string>
#include <string_view>
#include <vector>

#include "load/baseline.h"

namespace dibs::bench {

struct Figure {
  std::string name;  // durable_creates_256
  double value = 0;
  std::string unit;      // "/s", "ms", "MB"
  double ratio = 0;      // to the baseline; 0: there is none
  std::string ratio_to;  // what the ratio is to
  std::string remark;
};

class Report {
 public:
  explicit Report(const Baseline& baseline) : baseline_(baseline) {}
  /// Prints its line at once: a run takes minutes.
  void add(Figure figure);
  void write_json(const std::string& path) const;

 private:
  const Baseline baseline_;
  std::vector<Figure> figures_;
};

}  // namespace dibs::bench
