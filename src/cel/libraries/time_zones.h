#pragma once
// Time zones by name: those of this machine, unless an environment is given others
// (Environment::time_zones). Offsets such as "+01:30" need none.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::cel {

/// Called from any thread.
class TimeZones {
 public:
  virtual ~TimeZones() = default;
  /// Seconds east of UTC at a moment. False: no such zone.
  virtual bool offset(std::string_view name, std::int64_t at_seconds,
                      std::int64_t& offset) const = 0;
};

/// The content of a compiled zone file (RFC 8536), or nothing. Names come from expressions; those
/// that could lead out of a folder are never asked for.
using ReadZone = std::function<std::optional<std::string>(const std::string& name)>;
/// Zones that are read once each, when they are first asked for. Unknown names are not kept.
std::shared_ptr<const TimeZones> zones_from(ReadZone read);

/// Those of this machine's files, which are taken not to change.
const TimeZones& system_time_zones();

/// What an expression means by a zone: empty, "UTC", a name, or an offset. `problem` says why none.
bool zone_offset(const TimeZones* zones, std::string_view zone, std::int64_t at_seconds,
                 std::int64_t& offset, std::string& problem);

/// A zone: when its offset changed, and by which rule it goes on changing.
class Zone {
 public:
  /// Nothing when the bytes are no such file.
  static std::optional<Zone> parse(std::string_view bytes);
  std::int64_t offset(std::int64_t at_seconds) const;

 private:
  /// A day of the year at which the offset changes: Mm.w.d, Jn or n of POSIX.
  struct Change {
    enum class Form : std::uint8_t { month_week_day, day_without_leap, day } form = Form::day;
    int month = 0;
    int week = 0;
    int day = 0;
    std::int64_t seconds = 7200;
    std::int64_t moment(std::int64_t year) const;  // in the zone's own time, as if it were UTC
  };
  struct Rule {
    std::int64_t standard = 0;
    std::optional<std::int64_t> summer;
    Change to_summer;
    Change to_standard;
  };
  static std::optional<Rule> parse_rule(std::string_view text);

  std::vector<std::int64_t> from_;     // moments at which the offset changes
  std::vector<std::int64_t> offsets_;  // one more: the first is before all moments
  std::optional<Rule> rule_;           // behind the last moment
};

}  // namespace dibs::cel
