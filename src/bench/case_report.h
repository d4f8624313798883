#pragma once
// What became of a number of recorded cases: which differ and how, and how long they took.
//
// Time comes from outside: the report is handed a clock in nanoseconds.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "alloc/search.h"
#include "base/result.h"
#include "json/value.h"

namespace dibs::bench {

class CaseReport {
 public:
  using Clock = std::function<std::int64_t()>;
  explicit CaseReport(Clock nanoseconds, alloc::Limits limits = {});

  /// A JSON array of cases, a single one, or one a line. Errors: bad_request, what is no JSON.
  Result<> add_text(std::string_view text);
  void add(const json::Value& source);

  int same() const { return same_; }
  int different() const { return different_; }
  int unanswered() const { return unanswered_; }
  /// "NAME: how it differs", in the order of the cases.
  const std::vector<std::string>& differences() const { return differences_; }
  /// Microseconds per case, ascending: with everything built anew, and with inventory and selectors
  /// kept from a first run (the middle one of three runs).
  std::vector<double> fresh() const;
  std::vector<double> kept() const;
  /// Two lines on times, and at the end
  /// "allocator: N same, M different, K unanswered; us per case: median A, p99 B, max C".
  std::string summary() const;

 private:
  Clock clock_;
  alloc::Limits limits_;
  int same_ = 0;
  int different_ = 0;
  int unanswered_ = 0;
  int not_recorded_ = 0;  // among the same: answered where Kubernetes ran out of time
  std::vector<std::string> differences_;
  std::vector<std::int64_t> fresh_;
  std::vector<std::int64_t> kept_;
};

}  // namespace dibs::bench
