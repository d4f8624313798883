#include "base/strings.h"
#include "base/time.h"
#include "cel/calendar.h"
#include "cel/libraries/standard_library.h"
#include "cel/libraries/time_zones.h"
#include "cel/operations.h"

namespace dibs::cel {

namespace {

using Part = std::int64_t (*)(const Calendar&);
using Zones = std::shared_ptr<const std::shared_ptr<const TimeZones>>;

/// What a getter reads in a zone; the part null: milliseconds, which no zone changes.
Value part_in_zone(Part part, const Zones& zones, const Value* arguments) {
  const TimeZones* known = *zones != nullptr ? zones->get() : &system_time_zones();
  std::int64_t offset = 0;
  std::string problem;
  if (!zone_offset(known, arguments[1].text(), arguments[0].timestamp_seconds(), offset, problem))
    return Value::error(std::move(problem));
  if (part == nullptr) return Value::integer(arguments[0].timestamp_nanos() / 1'000'000);
  return Value::integer(part(calendar_of(arguments[0].timestamp_seconds() + offset)));
}

template <std::int64_t (*Read)(const Calendar&)>
Value part(const Value* arguments, std::size_t) {
  return Value::integer(Read(calendar_of(arguments[0].timestamp_seconds())));
}

std::int64_t full_year(const Calendar& at) { return at.year; }
std::int64_t month(const Calendar& at) { return at.month - 1; }
std::int64_t day_of_year(const Calendar& at) { return at.day_of_year; }
std::int64_t day_of_month(const Calendar& at) { return at.day - 1; }
std::int64_t date(const Calendar& at) { return at.day; }
std::int64_t day_of_week(const Calendar& at) { return at.day_of_week; }
std::int64_t hours(const Calendar& at) { return at.hour; }
std::int64_t minutes(const Calendar& at) { return at.minute; }
std::int64_t seconds(const Calendar& at) { return at.second; }

Value milliseconds(const Value* arguments, std::size_t) {
  return Value::integer(arguments[0].timestamp_nanos() / 1'000'000);
}

template <std::int64_t Unit>
Value whole(const Value* arguments, std::size_t) {
  return Value::integer(arguments[0].as_duration() / Unit);
}

Value same(const Value* arguments, std::size_t) { return arguments[0]; }

Value timestamp_of_string(const Value* arguments, std::size_t) {
  std::int64_t at;
  std::uint32_t nanos;
  std::int16_t zone;
  if (parse_timestamp(arguments[0].text(), at, nanos, &zone))
    return Value::timestamp(at, nanos, zone);
  return Value::error("type conversion error from 'string' to 'google.protobuf.Timestamp'");
}

Value timestamp_of_int(const Value* arguments, std::size_t) {
  if (!is_valid_timestamp(arguments[0].as_integer())) return Value::error("timestamp overflow");
  return Value::timestamp(arguments[0].as_integer());
}

Value duration_of_string(const Value* arguments, std::size_t) {
  const Result<Duration> parsed = parse_duration(arguments[0].text());
  if (!parsed.ok())
    return Value::error("type conversion error from 'string' to 'google.protobuf.Duration'");
  return Value::duration(parsed->count());
}

Value duration_of_int(const Value*, std::size_t) {
  return Value::error("type conversion error from 'int' to 'google.protobuf.Duration'");
}

}  // namespace

void add_duration_of_int(Environment& environment) {
  environment.function("duration", {{"int -> duration", duration_of_int}});
}

void add_time_functions(Environment& environment) {
  environment.function("timestamp", {{"timestamp -> timestamp", same},
                                     {"string -> timestamp", timestamp_of_string},
                                     {"int -> timestamp", timestamp_of_int}});
  environment.function(
      "duration", {{"duration -> duration", same}, {"string -> duration", duration_of_string}});
  const auto getter = [&](std::string_view name, Implementation call, Part part) {
    environment.function(name, {{".timestamp -> int", call}});
    Overload in_zone = make_overload({".timestamp, string -> int"});
    in_zone.bound = [part, zones = environment.time_zones()](const Value* arguments, std::size_t) {
      return part_in_zone(part, zones, arguments);
    };
    environment.overload(name, std::move(in_zone));
  };
  getter("getFullYear", part<full_year>, full_year);
  getter("getMonth", part<month>, month);
  getter("getDayOfYear", part<day_of_year>, day_of_year);
  getter("getDayOfMonth", part<day_of_month>, day_of_month);
  getter("getDate", part<date>, date);
  getter("getDayOfWeek", part<day_of_week>, day_of_week);
  getter("getHours", part<hours>, hours);
  getter("getMinutes", part<minutes>, minutes);
  getter("getSeconds", part<seconds>, seconds);
  getter("getMilliseconds", milliseconds, nullptr);
  constexpr std::int64_t kSecond = 1'000'000'000;
  environment.function("getHours", {{".duration -> int", whole<3600 * kSecond>}});
  environment.function("getMinutes", {{".duration -> int", whole<60 * kSecond>}});
  environment.function("getSeconds", {{".duration -> int", whole<kSecond>}});
  environment.function("getMilliseconds", {{".duration -> int", whole<1'000'000>}});
}

}  // namespace dibs::cel
