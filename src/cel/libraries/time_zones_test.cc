#include "cel/libraries/time_zones.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "cel/environment.h"

namespace dibs::cel {
namespace {

std::string big_endian(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = bytes; i-- > 0;) out += static_cast<char>(value >> (8 * i));
  return out;
}

/// A zone file with one change of offset and a rule behind it.
std::string zone_file(std::int64_t change, std::int32_t before, std::int32_t after,
                      std::string_view rule) {
  const auto header = [](std::uint32_t transitions, std::uint32_t types) {
    return cat("TZif2", std::string(15, '\0'), std::string(12, '\0'), big_endian(transitions, 4),
               big_endian(types, 4), big_endian(0, 4));
  };
  std::string out = cat(header(0, 1), std::string(6, '\0'));
  append(out, header(1, 2), big_endian(static_cast<std::uint64_t>(change), 8), '\1');
  for (const std::int32_t offset : {before, after})
    append(out, big_endian(static_cast<std::uint32_t>(offset), 4), std::string(2, '\0'));
  append(out, '\n', rule, '\n');
  return out;
}

std::int64_t at(std::string_view rule, std::int64_t seconds) {
  const std::optional<Zone> zone = Zone::parse(zone_file(1000, -60, 60, rule));
  EXPECT_TRUE(zone);
  return zone ? zone->offset(seconds) : 0;
}

constexpr std::int64_t kHour = 3600;
constexpr std::int64_t kJanuary2040 = 2209032000;
constexpr std::int64_t kJuly2040 = 2224756800;

TEST(TimeZones, a_zone_changes_when_its_file_says_so) {
  EXPECT_EQ(at("", 999), -60);
  EXPECT_EQ(at("", 1000), 60);
  EXPECT_EQ(at("", kJuly2040), 60);
}

TEST(TimeZones, a_rule_goes_on_behind_the_last_change) {
  EXPECT_EQ(at("CET-1CEST,M3.5.0,M10.5.0/3", kJanuary2040), kHour);
  EXPECT_EQ(at("CET-1CEST,M3.5.0,M10.5.0/3", kJuly2040), 2 * kHour);
  EXPECT_EQ(at("EST5EDT,M3.2.0,M11.1.0", kJanuary2040), -5 * kHour);
  EXPECT_EQ(at("EST5EDT,M3.2.0,M11.1.0", kJuly2040), -4 * kHour);
  EXPECT_EQ(at("AEST-10AEDT,M10.1.0,M4.1.0/3", kJanuary2040), 11 * kHour);
  EXPECT_EQ(at("AEST-10AEDT,M10.1.0,M4.1.0/3", kJuly2040), 10 * kHour);
  EXPECT_EQ(at("<+0330>-3:30", kJuly2040), 3 * kHour + 1800);
  EXPECT_EQ(at("AAA-1BBB,J60/0,J300/0", kJuly2040), 2 * kHour);
  EXPECT_EQ(at("AAA-1BBB,59/0,300/0", kJanuary2040), kHour);
  // The last Sunday of March 2040 is the 25th; the change is at one o'clock UTC.
  constexpr std::int64_t kChange = 2216250000;
  EXPECT_EQ(at("CET-1CEST,M3.5.0,M10.5.0/3", kChange - 1), kHour);
  EXPECT_EQ(at("CET-1CEST,M3.5.0,M10.5.0/3", kChange), 2 * kHour);
}

TEST(TimeZones, broken_files_are_no_zones) {
  const std::string good = zone_file(0, 0, 0, "");
  for (std::size_t size = 0; size + 2 < good.size(); ++size)
    EXPECT_FALSE(Zone::parse(good.substr(0, size))) << size;
  EXPECT_FALSE(Zone::parse("TZif1" + good.substr(5)));
  // What cannot be read of the rule is as if it were not there.
  EXPECT_EQ(at("CET-1CEST,M13.5.0,M10.5.0", kJuly2040), 60);
}

TEST(TimeZones, expressions_name_them) {
  Environment environment = Environment::standard();
  environment.variable("t", TypeKind::timestamp);
  const auto hours = [&](std::string_view zone) {
    const std::string source = cat("t.getHours(", quoted(zone), ")");
    const Compilation made = environment.compile(source);
    const Value time = Value::timestamp(12 * kHour);
    const Value value = made.program->evaluate({&time, 1}).value;
    return value.is_error() ? std::string(value.text()) : cat(value.as_integer());
  };
  EXPECT_EQ(hours(""), "12");
  EXPECT_EQ(hours("UTC"), "12");
  EXPECT_EQ(hours("+02:30"), "14");
  EXPECT_EQ(hours("02:30"), "14");
  EXPECT_EQ(hours("-02:30"), "9");
  EXPECT_EQ(hours("a:30"), "strconv.Atoi: parsing \"a\": invalid syntax");
  EXPECT_EQ(hours("99999999999999999999:30"),
            "strconv.Atoi: parsing \"99999999999999999999\": value out of range");
  EXPECT_EQ(hours("Europe"), "unknown time zone Europe");
  EXPECT_EQ(hours("No/Such/Zone"), "unknown time zone No/Such/Zone");
  EXPECT_EQ(hours("../etc/passwd"), "time: invalid location name");
  EXPECT_EQ(hours("/etc/passwd"), "time: invalid location name");

  int reads = 0;
  environment.time_zones(zones_from([&](const std::string& name) -> std::optional<std::string> {
    ++reads;
    if (name != "Europe/Berlin") return std::nullopt;
    return zone_file(0, 0, kHour, "");
  }));

  EXPECT_EQ(hours("Europe/Berlin"), "13");
  EXPECT_EQ(hours("Europe/Berlin"), "13");
  EXPECT_EQ(hours("Bad/Zone"), "unknown time zone Bad/Zone");
  EXPECT_EQ(reads, 2);
}

}  // namespace
}  // namespace dibs::cel
