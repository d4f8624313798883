// Columns give the answers of the evaluator: random selectors over random devices that come, change
// and go, under random limits of cost. A failure names its seed; DIBS_SEED repeats that one alone.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <random>

#include "api/devices/selector_language.h"
#include "api/devices/testing/device_table.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

using json::Value;

class Random {
 public:
  explicit Random(std::uint32_t seed) : engine_(seed) {}
  std::size_t below(std::size_t bound) { return engine_() % bound; }
  bool one_in(std::size_t n) { return below(n) == 0; }
  std::string_view pick(std::initializer_list<std::string_view> from) {
    return from.begin()[below(from.size())];
  }

 private:
  std::mt19937 engine_;
};

Value random_scalar(Random& random, std::string_view kind) {
  if (kind == "int") return static_cast<int>(random.below(5)) - 1;
  if (kind == "bool") return random.one_in(2);
  if (kind == "version")
    return random.pick({"1.0.0", "1.2.3", "1.2.3+build", "2.0.0-alpha.1", "10.0.0"});
  return random.pick({"", "a", "b", "model-a", "model-b", "1.2.3", "ünï", "a much longer text"});
}

/// Mostly of the kind that goes with the name, as devices of one driver are.
Value random_attribute(Random& random, std::string_view usual) {
  if (random.one_in(200)) return Value::object({{"version", "not one"}});
  const std::string_view kind =
      random.one_in(4) ? random.pick({"int", "bool", "string", "version"}) : usual;
  if (!random.one_in(6)) return Value::object({{kind, random_scalar(random, kind)}});
  Value list = Value::array();
  for (std::size_t i = random.below(4); i > 0; --i) list.push(random_scalar(random, kind));
  return Value::object({{cat(kind, "s"), list}});
}

Value random_device(Random& random) {
  Value attributes = Value::object();
  constexpr std::string_view kNames[][2] = {{"a", "int"},
                                            {"b", "bool"},
                                            {"c", "string"},
                                            {"x.example.org/a", "bool"},
                                            {"x.example.org/d", "version"}};
  for (const auto& [name, kind] : kNames) {
    if (!random.one_in(5)) attributes.set(name, random_attribute(random, kind));
  }
  Value capacity = Value::object();
  for (const std::string_view name : {"a", "m", "x.example.org/m"}) {
    if (random.one_in(3)) continue;
    capacity.set(name, Value::object({{"value", random.pick({"0", "1Gi", "1.5Gi", "1024Mi", "2G",
                                                             "100m", "1e3", "9999999999Ei"})}}));
  }
  Value made = Value::object({{"attributes", attributes}, {"capacity", capacity}});
  if (random.one_in(3)) made.set("allowMultipleAllocations", random.one_in(2));
  return made;
}

/// Expressions that mean something often enough; the rest does not compile and is left out.
class Expressions {
 public:
  explicit Expressions(Random& random) : random_(random) {}

  std::string boolean(int depth) {
    if (depth <= 0) return leaf();
    switch (random_.below(12)) {
      case 0:
      case 1:
      case 2:
        return cat("(", boolean(depth - 1), " && ", boolean(depth - 1), ")");
      case 3:
      case 4:
        return cat("(", boolean(depth - 1), " || ", boolean(depth - 1), ")");
      case 5:
        return cat("!", boolean(depth - 1));
      case 6:
        return cat("(", boolean(depth - 1), " ? ", boolean(depth - 1), " : ", boolean(depth - 1),
                   ")");
      case 7:
        return bind(depth);
      case 8:
        return cat("(", boolean(depth - 1), random_.pick({" == ", " != "}), boolean(depth - 1),
                   ")");
      default:
        return leaf();
    }
  }

 private:
  std::string id() { return std::string(random_.pick({"a", "b", "c", "d", "m"})); }
  std::string_view domain() {
    return random_.pick({"example.com", "example.com", "x.example.org", "absent"});
  }

  std::string names() {
    if (!aliases_.empty() && random_.one_in(2)) return aliases_[random_.below(aliases_.size())];
    return cat("device.", random_.pick({"attributes", "attributes", "attributes", "capacity"}),
               "[\"", domain(), "\"]");
  }

  std::string attribute() {
    if (!values_.empty() && random_.one_in(2)) return values_[random_.below(values_.size())];
    if (random_.one_in(5)) return cat(names(), "[\"", id(), "\"]");
    return cat(names(), ".", id(), random_.one_in(20) ? cat(".", id()) : "");
  }

  std::string literal() {
    return std::string(random_.pick({"0",
                                     "1",
                                     "2",
                                     "-1",
                                     "2u",
                                     "1.0",
                                     "0.5",
                                     "true",
                                     "false",
                                     "\"a\"",
                                     "\"model-a\"",
                                     "\"1.2.3\"",
                                     "\"\"",
                                     "null",
                                     "[1, 2]",
                                     "[\"a\"]",
                                     "[true]",
                                     "{\"a\": 1}",
                                     "b\"a\"",
                                     "semver(\"1.2.3\")",
                                     "semver(\"2.0.0\")",
                                     "semver(\"x\")",
                                     "quantity(\"1Gi\")",
                                     "quantity(\"1x\")",
                                     "duration(\"1s\")"}));
  }

  std::string value() {
    switch (random_.below(16)) {
      case 0:
        return "device.driver";
      case 1:
        return cat(names(), ".?", id(), ".orValue(", literal(), ")");
      case 2:
        return cat(names(), "[?\"", id(), "\"].optMap(v, v == ", literal(), ").orValue(false)");
      case 3:
        return cat("size(", attribute(), ")");
      case 4:
        return cat("(", attribute(), random_.pick({" + ", " - ", " * ", " / ", " % "}),
                   random_.one_in(2) ? attribute() : literal(), ")");
      case 5:
        return cat(attribute(), random_.pick({".major()", ".minor()", ".lowerAscii()", ".size()",
                                              ".asInteger()", ".substring(1)", "[0]", "[?0]"}));
      case 6:
        return cat("string(", attribute(), ")");
      case 7:
        return cat("dyn(", attribute(), ")");
      case 8:
        return cat("(", leaf(), " ? ", attribute(), " : ", literal(), ")");
      case 9:
        return literal();
      default:
        return attribute();
    }
  }

  std::string leaf() {
    switch (random_.below(24)) {
      case 0:
        return random_.one_in(3) ? "device.allowMultipleAllocations" : "true";
      case 1:
      case 2:
        return attribute();
      case 3:
        return cat("has(", random_.one_in(4) ? attribute() : names(), ".", id(), ")");
      case 4:
        return cat("\"", id(), "\" in ", names());
      case 5:
        return cat("\"", domain(), "\" in device.attributes");
      case 6:
        return cat(attribute(), random_.pick({".startsWith(", ".contains(", ".endsWith("}),
                   "\"model\")");
      case 7:
        return cat(attribute(), ".matches(\"", random_.pick({"^m.*", "a$", "[ab]", "("}), "\")");
      case 8:
        return cat(attribute(), random_.pick({".isGreaterThan(", ".isLessThan("}), literal(), ")");
      case 9:
        return cat(attribute(), ".compareTo(", value(), ") == 0");
      case 10:
        return cat(attribute(), ".isInteger()");
      case 11:
        return cat(attribute(), ".includes(", value(), ")");
      case 12:
        return cat(attribute(), random_.pick({".exists(e, e ", ".all(e, e ", ".exists_one(e, e "}),
                   random_.pick({"==", "<", "!="}), " ", value(), ")");
      case 13:
        return cat(names(), random_.pick({".exists(k, k == \"a\")", ".all(k, k != \"zz\")",
                                          ".exists_one(k, k == \"b\")", ".size() > 1"}));
      case 14:
        return cat("device.attributes.exists(d, device.attributes[d].exists(k, k == \"", id(),
                   "\"))");
      case 15:
        return cat(attribute(), " in [", literal(), ", ", literal(), "]");
      case 16:
        return cat(literal(), " in ", attribute());
      case 17:
        return cat("type(", attribute(), ") == ", random_.pick({"int", "string", "list", "bool"}));
      case 18:
        return cat(attribute(), ".map(e, e).filter(e, e != ", literal(), ").size() > 0");
      case 19:
        if (random_.one_in(3)) return cat("dyn(", names(), ".?", id(), ")");
        return cat(names(), ".?", id(), random_.one_in(2) ? ".hasValue()" : "");
      case 20:
        return cat("[1, 2, 3].exists(i, i == ", attribute(), ")");
      default:
        return cat("(", value(),
                   random_.pick({" == ", " == ", " != ", " < ", " <= ", " > ", " >= "}), value(),
                   ")");
    }
  }

  std::string bind(int depth) {
    const std::string name = cat("v", depth, random_.below(3));
    const bool is_value = random_.one_in(2);
    const std::string bound = is_value ? value() : names();
    std::vector<std::string>& names_of_kind = is_value ? values_ : aliases_;
    names_of_kind.push_back(name);
    std::string made = cat("cel.bind(", name, ", ", bound, ", ", boolean(depth - 1), ")");
    names_of_kind.pop_back();
    return made;
  }

  Random& random_;
  std::vector<std::string> aliases_;  // variables that stand for a domain
  std::vector<std::string> values_;   // and those that stand for a value
};

/// A table whose rows can also be asked one by one.
struct Fixture {
  cel::Table table{1};
  std::vector<std::optional<DeviceInput>> devices;

  void put(Random& random, std::optional<cel::Row> row = std::nullopt) {
    DeviceInput read = DeviceInput::read(random.one_in(5) ? "x.example.org" : "example.com",
                                         random_device(random), true);
    const std::span<const cel::Value> bound(&read.value(), 1);
    const bool fails = !read.error().empty();
    if (!row)
      row = fails ? table.add_failed(read.error()) : table.add(bound);
    else if (fails)
      table.change_to_failed(*row, read.error());
    else
      table.change(*row, bound);
    devices.resize(std::max<std::size_t>(devices.size(), *row + 1));
    devices[*row] = std::move(read);
  }

  void shake(Random& random) {
    for (int i = 0; i < 6; ++i) {
      const auto row = static_cast<cel::Row>(random.below(devices.size()));
      if (!devices[row] || random.one_in(3)) {
        put(random);
      } else if (random.one_in(3)) {
        table.remove(row);
        devices[row].reset();
      } else {
        put(random, row);
      }
    }
  }

  /// Empty, or the first row that differs.
  std::string difference(const cel::Filter& filter, const cel::Program& program,
                         std::uint64_t cost) const {
    cel::Limits limits;
    limits.cost = cost;
    for (cel::Row row = 0; row < devices.size(); ++row) {
      const int sets =
          filter.yes().contains(row) + filter.no().contains(row) + filter.failed().contains(row);
      if (sets != (devices[row] ? 1 : 0)) return cat("row ", row, " is in ", sets, " sets");
      if (!devices[row]) continue;
      DeviceMatch wanted;
      if (!devices[row]->error().empty())
        wanted.error = devices[row]->error();
      else
        wanted = match_of(program.evaluate({&devices[row]->value(), 1}, limits));
      const bool right = wanted.error.empty() ? filter.yes().contains(row) == wanted.matches &&
                                                    filter.no().contains(row) == !wanted.matches
                                              : filter.failed().contains(row);
      if (!right)
        return cat("row ", row, " should be ",
                   wanted.error.empty() ? wanted.matches ? "yes" : "no" : wanted.error);
      if (!wanted.error.empty() && match_of(filter.explain(row)).error != wanted.error)
        return cat("row ", row, ": ", match_of(filter.explain(row)).error, ", not ", wanted.error);
    }
    return "";
  }
};

struct Counts {
  std::size_t compiled = 0;
  std::size_t refused = 0;
  std::size_t yes = 0;
  std::size_t no = 0;
  std::size_t failed = 0;
};

std::string run(std::uint32_t seed, Counts& counts) {
  constexpr std::size_t kDevices = 70;
  constexpr std::size_t kExpressions = 50;
  Random random(seed);
  Fixture fixture;
  for (std::size_t i = 0; i < kDevices; ++i) fixture.put(random);
  const cel::Environment& language = selector_language({.stored = true, .list_attributes = true});
  Expressions expressions(random);
  struct Asked {
    std::string source;
    std::shared_ptr<const cel::Program> program;
    std::uint64_t cost;
    std::unique_ptr<cel::Filter> filter;
  };
  std::vector<Asked> all;
  for (std::size_t i = 0; i < kExpressions; ++i) {
    Asked asked;
    asked.source = expressions.boolean(static_cast<int>(random.below(4)));
    asked.program = language.compile(asked.source).program;
    if (asked.program == nullptr || !asked.program->constant_error.empty()) {
      ++counts.refused;
      continue;
    }
    ++counts.compiled;
    asked.cost = random.one_in(3) ? random.below(40) : 1'000'000;
    asked.filter = std::make_unique<cel::Filter>(fixture.table, asked.program, asked.cost);
    all.push_back(std::move(asked));
  }
  for (int round = 0; round < 3; ++round) {
    for (const Asked& asked : all) {
      asked.filter->update();
      const std::string wrong = fixture.difference(*asked.filter, *asked.program, asked.cost);
      if (!wrong.empty())
        return cat("seed ", seed, ", round ", round, ", limit ", asked.cost, ", ", asked.source,
                   ": ", wrong);
      counts.yes += asked.filter->yes().size();
      counts.no += asked.filter->no().size();
      counts.failed += asked.filter->failed().size();
    }
    fixture.shake(random);
  }
  return "";
}

TEST(DeviceColumns, answer_as_the_evaluator_does) {
  Counts counts;
  if (const char* seed = std::getenv("DIBS_SEED")) {
    EXPECT_EQ(run(static_cast<std::uint32_t>(std::strtoul(seed, nullptr, 10)), counts), "");
    return;
  }
  const char* more = std::getenv("DIBS_SEEDS");
  const std::size_t seeds = more != nullptr ? std::strtoul(more, nullptr, 10) : 30;
  for (std::uint32_t seed = 1; seed <= seeds; ++seed) ASSERT_EQ(run(seed, counts), "");

  std::printf("%zu selectors, %zu refused; answers: %zu yes, %zu no, %zu failed\n", counts.compiled,
              counts.refused, counts.yes, counts.no, counts.failed);
  EXPECT_GT(counts.compiled, 20 * seeds);
  EXPECT_GT(counts.yes, counts.failed / 10);
  EXPECT_GT(counts.no, counts.failed / 10);
}

}  // namespace
}  // namespace dibs::api
