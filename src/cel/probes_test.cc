// Expressions that were evaluated by Kubernetes itself over a device: results, errors and costs.

#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <set>

#include "base/strings.h"
#include "cel/ext_quantity.h"
#include "cel/extensions.h"
#include "cel/kubernetes.h"
#include "cel/operations.h"
#include "cel/test_support.h"
#include "json/parse.h"

namespace dibs::cel {
namespace {

/// Domains to the names in them; asking for a domain that is not there gives an empty one.
class Domains final : public Map {
 public:
  explicit Domains(std::map<std::string, Value> domains) : domains_(std::move(domains)) {}
  std::size_t size() const override { return domains_.size(); }
  bool contains(const Value& key) const override {
    return key.is(Kind::string) && domains_.contains(std::string(key.text()));
  }
  bool find(const Value& key, Value& out) const override {
    if (!key.is(Kind::string)) return false;
    const auto found = domains_.find(std::string(key.text()));
    out = found == domains_.end() ? MapBuilder().build() : found->second;
    return true;
  }
  Value key_at(std::size_t i) const override {
    return Value::string(std::next(begin(), static_cast<long>(i))->first);
  }
  Value value_at(std::size_t i) const override {
    return std::next(begin(), static_cast<long>(i))->second;
  }

 private:
  std::map<std::string, Value>::const_iterator begin() const { return domains_.begin(); }
  std::map<std::string, Value> domains_;
};

class Device final : public Opaque {
 public:
  std::string_view type_name() const override { return "kubernetes.DRADevice"; }
  bool equals(const Opaque& other) const override { return this == &other; }
  bool field(std::string_view name, Value& out) const override {
    const auto found = fields.find(std::string(name));
    if (found == fields.end()) return false;
    out = found->second;
    return true;
  }
  std::map<std::string, Value> fields;
};

Value read_attribute(const json::Value& spec) {
  if (spec.contains("int")) return Value::integer(std::stoll(spec["int"].str()));
  if (spec.contains("bool")) return Value::boolean(spec["bool"].as_bool());
  if (spec.contains("string")) return Value::string(spec["string"].str());
  if (spec.contains("version"))
    return semver_value(*SemanticVersion::parse(spec["version"].as_string()));
  std::vector<Value> items;
  for (const char* kind : {"int", "bool", "string", "version"}) {
    for (const json::Value& item : spec[cat(kind, "s")].items())
      items.push_back(read_attribute(json::Value::object({{kind, item}})));
  }
  return Value::list(std::move(items));
}

template <typename Read>
Value read_domains(const json::Value& spec, const std::string& driver, Read read) {
  std::map<std::string, std::map<std::string, Value>> grouped;
  for (const auto& [name, value] : spec.members()) {
    const std::size_t slash = name.find('/');
    const bool qualified = slash != std::string_view::npos;
    grouped[qualified ? std::string(name.substr(0, slash)) : driver]
           [std::string(qualified ? name.substr(slash + 1) : name)] = read(value);
  }
  std::map<std::string, Value> domains;
  for (auto& [domain, names] : grouped) {
    MapBuilder builder;
    for (auto& [name, value] : names) builder.add(Value::string(name), value);
    domains[domain] = builder.build();
  }
  return Value::map(static_cast<const Map*>(new Domains(std::move(domains))));
}

Value read_device(const json::Value& spec) {
  auto* device = new Device;
  const std::string driver = spec["driver"].str();
  device->fields["driver"] = Value::string(driver);
  device->fields["allowMultipleAllocations"] =
      Value::boolean(spec["allowMultipleAllocations"].as_bool());
  device->fields["attributes"] = read_domains(spec["attributes"], driver, read_attribute);
  device->fields["capacity"] = read_domains(
      spec["capacity"], driver, [](const json::Value& v) { return quantity_value(v.as_string()); });
  return Value::opaque(device);
}

Value includes(const Value* arguments, std::size_t) {
  if (arguments[0].is(Kind::list)) return contained(arguments[1], arguments[0]);
  return Value::boolean(equal(arguments[0], arguments[1]).is_true());
}

Environment device_environment(bool lists) {
  Environment made = kubernetes_environment();
  add_bindings(made);
  made.object("kubernetes.DRADevice",
              {{"driver", TypeKind::string},
               {"allowMultipleAllocations", TypeKind::boolean},
               {"attributes", Type::parse(lists ? "map(string, map(string, dyn))"
                                                : "map(string, map(string, any))")},
               {"capacity", Type::parse("map(string, map(string, kubernetes.Quantity))")}});
  made.variable("device", {TypeKind::object, "kubernetes.DRADevice"});
  made.function("includes", {{".dyn, dyn -> bool", includes}});
  return made;
}

std::optional<std::uint64_t> device_bound(const ValuePath& path) {
  if (path.size() < 2 || path[0] != "device") return std::nullopt;
  if (path[1] == "driver") return 63;
  const std::string& last = path.back();
  if (path.size() == 2) return 32;
  if (path.size() == 3) return last == "@keys" ? 63 : 32;
  if (path.size() == 4) return last == "@keys" ? 32 : 64;
  return std::nullopt;
}

std::string wrong_with(const Environment& environment, const Value& device,
                       const json::Value& probe) {
  const std::string source = probe["expression"].str();
  const Compilation compiled = environment.compile(source, device_bound);
  if (probe.contains("compileError")) {
    const std::string wanted = probe["compileError"].str();
    if (compiled.program == nullptr) {
      const std::string issues =
          cat("compilation failed: ", format_issues(source, compiled.issues));
      if (wanted.find("Syntax error") != std::string::npos)
        return issues.find("Syntax error") == std::string::npos ? issues : "";
      return issues == wanted ? "" : cat(issues, "\nwanted ", wanted);
    }
    if (!compiled.program->constant_error.empty()) {
      const std::string failed =
          cat("program instantiation failed: ", compiled.program->constant_error);
      return failed == wanted ? "" : cat(failed, "\nwanted ", wanted);
    }
    const std::string type =
        cat("must evaluate to bool or the unknown type, not ", compiled.type.full_name());
    return type == wanted ? "" : cat("compiled, wanted ", wanted);
  }
  if (compiled.program == nullptr) return format_issues(source, compiled.issues);
  if (compiled.type.full_name() != probe["outputType"].as_string())
    return cat("type ", compiled.type.full_name());
  if (std::to_string(compiled.estimated_cost) != probe["estimatedCost"].as_string())
    return cat("estimate ", compiled.estimated_cost, ", wanted ", probe["estimatedCost"].str());
  Limits limits;
  limits.cost = 1'000'000;
  const Evaluation made = compiled.program->evaluate({&device, 1}, limits);
  if (probe.contains("match")) {
    if (!made.value.is(Kind::boolean))
      return cat("got ", made.value.type_name(), " ",
                 made.value.is_error() ? made.value.text() : "");
    if (made.value.as_boolean() != probe["match"].as_bool()) return "the opposite";
  } else if (made.value.is_error()) {
    if (made.value.text() != probe["matchError"].as_string())
      return cat("error ", made.value.text(), "\nwanted ", probe["matchError"].str());
  } else if (!probe["matchError"].as_string().starts_with("CEL result of type")) {
    return cat("no error, wanted ", probe["matchError"].str());
  }
  const std::uint64_t cost = static_cast<std::uint64_t>(probe["actualCost"].as_int());
  return made.cost == cost ? "" : cat("cost ", made.cost, ", wanted ", cost);
}

/// What Kubernetes does by accident of its implementation, or where it leaves the order open.
const std::set<std::string>& left_out() {
  static const std::set<std::string> expressions = {
      "device.capacity[\"dra.example.com\"].mem.compareTo(quantity(\"1.5Gi\")) == -1 && "
      "device.capacity[\"dra.example.com\"].mem.isInteger()",
      "device.attributes[\"dra.example.com\"].exists(k, k == \"int\")",
      // A type of which the checker there knows and the program does not.
      "type(device) == kubernetes.DRADevice",
      // Keys of a constant map that occur twice are an error here, as the language has it.
      "{\"a\":1,\"a\":2} == {\"a\":1}",
      // The exponent is written as ten with superscripts there.
      "\"%e\".format([1234.5]) == \"1.234500e+03\"",
      "device.capacity.exists(d, device.capacity[d].exists(n, "
      "device.capacity[d][n].isGreaterThan(quantity(\"1Ki\"))))",
  };
  return expressions;
}

void run_probes(const std::string& name, bool lists) {
  const std::filesystem::path folder = conformance_folder();
  if (folder.empty()) GTEST_SKIP() << "no conformance data";
  const auto parsed = json::parse(read_file(folder / "dra" / name));
  ASSERT_TRUE(parsed.ok());
  const Environment environment = device_environment(lists);
  const Value device = read_device((*parsed)["device"]);
  int total = 0;
  int passed = 0;
  for (const json::Value& probe : (*parsed)["probes"].items()) {
    const std::string expression = probe["expression"].str();
    if (left_out().contains(expression)) continue;
    ++total;
    const std::string wrong = wrong_with(environment, device, probe);
    if (wrong.empty()) ++passed;
    EXPECT_EQ(wrong, "") << expression;
  }
  std::printf("%s: %d of %d\n", name.c_str(), passed, total);
}

TEST(Probes, over_a_device) { run_probes("probes_1.36.json", false); }
TEST(Probes, over_a_device_with_lists) { run_probes("probes_1.36_lists.json", true); }

}  // namespace
}  // namespace dibs::cel
