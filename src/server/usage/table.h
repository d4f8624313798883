#pragma once
// Device-seconds, added up from times that claims have held devices.
//
// Times are milliseconds since 1970. No I/O.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/usage/holding.h"

namespace dibs::server {

/// A claim held the same devices, for the same users, from one moment to another.
struct UsageInterval {
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::string_view claim;    // "namespace/name"
  std::string_view holding;  // holding.h
};

struct DeviceSeconds {
  double held = 0;  // allocated to claims
  double used = 0;  // those of them that were reserved for somebody
};

enum class UsageBy : std::uint8_t { name_space, device_class, pod, device };

/// "namespace", "class", "pod", "device".
std::string_view name_of(UsageBy by);
std::optional<UsageBy> usage_by(std::string_view name);

class UsageTable {
 public:
  struct Plan {
    std::vector<UsageBy> by;
    std::string name_space = {};  // only this; "": all
    std::int64_t from = 0;
    std::int64_t to = 0;
    /// Rows are of so long each, counted from `from`; 0: of everything at once.
    std::int64_t step = 0;
  };
  /// Where a row begins, and its names joined by a tab.
  using Key = std::pair<std::int64_t, std::string>;
  using Rows = std::map<Key, DeviceSeconds>;

  static constexpr std::size_t kMostRows = 500'000;
  /// Times that something is added to a row, which are many where rows are few.
  static constexpr std::size_t kMostParts = 20'000'000;

  explicit UsageTable(Plan plan) : plan_(std::move(plan)) {}

  /// What of it lies in the time of the plan.
  void add(const UsageInterval& interval);
  /// Sums that were made before, of the row at that time.
  void add(std::int64_t at, std::string_view name_space, std::string_view device_class,
           const DeviceSeconds& sum);

  const Plan& plan() const { return plan_; }
  /// There are more rows than anybody reads: what came later was left out.
  bool is_full() const { return rows_.size() >= kMostRows || parts_ >= kMostParts; }
  const Rows& rows() const { return rows_; }
  /// Where the row that begins there ends.
  std::int64_t end_of(std::int64_t begin) const;

 private:
  /// Where the row of that time begins.
  std::int64_t row_at(std::int64_t time) const;
  std::string names(std::string_view name_space, const HeldDevice& device,
                    std::string_view pod) const;

  Plan plan_;
  Rows rows_;
  std::size_t parts_ = 0;
};

}  // namespace dibs::server
