#include "alloc/testing/random_case.h"

#include <string>

#include "base/strings.h"

namespace dibs::alloc {
namespace {

using json::Value;

/// Small and the same everywhere, so that a seed means one case for good.
class Chance {
 public:
  explicit Chance(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15U + 1) {}
  std::uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }
  int below(int limit) { return static_cast<int>(next() >> 33) % limit; }
  int from(int least, int most) { return least + below(most - least + 1); }
  bool one_in(int n) { return below(n) == 0; }

 private:
  std::uint64_t state_;
};

class Maker {
 public:
  Maker(std::uint64_t seed, const RandomCaseOptions& options)
      : name_(cat("random-", seed)), chance_(seed), options_(options) {}

  Value make() {
    Value slices = Value::array();
    Value used = Value::array();
    const int pools = chance_.from(1, options_.pools);
    for (int p = 0; p < pools; ++p) add_pool(p, slices, used);
    Value claims = Value::array();
    const int count = chance_.from(1, options_.claims);
    for (int c = 0; c < count; ++c) claims.push(claim(c));
    Value features = Value::array();
    for (const char* gate :
         {"DRAAdminAccess", "DRAConsumableCapacity", "DRADeviceTaints", "DRAPartitionableDevices",
          "DRAPrioritizedList", "DRADeviceCompatibilityGroups", "DRADerivedAttributes"}) {
      features.push(gate);
    }
    if (options_.lists && chance_.one_in(2)) features.push("DRAListTypeAttributes");
    return Value::object(
        {{"name", name_},
         {"features", std::move(features)},
         {"node", Value::object({{"metadata", Value::object({{"name", "n"}})}})},
         {"classes",
          Value::array({device_class("any", "true"),
                        device_class("even", R"(device.attributes["d"].index % 2 == 0)")})},
         {"slices", std::move(slices)},
         {"claims", std::move(claims)},
         {"allocatedDevices", std::move(used)}});
  }

 private:
  static Value selector(std::string_view expression) {
    return Value::object({{"cel", Value::object({{"expression", expression}})}});
  }
  static Value device_class(std::string_view name, std::string_view expression) {
    return Value::object(
        {{"metadata", Value::object({{"name", name}})},
         {"spec", Value::object({{"selectors", Value::array({selector(expression)})}})}});
  }
  static Value amount(int value) { return Value::object({{"value", std::to_string(value)}}); }

  Value attributes(int index) {
    Value made = Value::object({{"index", Value::object({{"int", index}})}});
    if (!chance_.one_in(8)) made.set("numa", Value::object({{"int", chance_.below(3)}}));
    if (options_.lists && chance_.one_in(3)) {
      Value list = Value::array();
      const int size = chance_.from(1, 2);
      for (int i = 0; i < size; ++i) list.push(cat("root-", chance_.below(4)));
      made.set("root", Value::object({{"strings", std::move(list)}}));
    } else {
      made.set("root", Value::object({{"string", cat("root-", chance_.below(4))}}));
    }
    if (!options_.faults || !chance_.one_in(20)) {
      made.set("model", Value::object({{"string", chance_.one_in(2) ? "a" : "b"}}));
    }
    return made;
  }

  void add_pool(int p, Value& slices, Value& used) {
    const std::string pool = cat("pool-", p);
    const bool counters = options_.counters && chance_.one_in(2);
    const int sets = chance_.from(1, 3);
    Value devices = Value::array();
    const int count = chance_.from(1, options_.devices);
    for (int i = 0; i < count; ++i) {
      Value device = Value::object({{"name", cat("dev-", i)}, {"attributes", attributes(i)}});
      if (counters && !chance_.one_in(4)) {
        Value consumed = Value::object({{"c", amount(chance_.from(1, 3))}});
        if (chance_.one_in(3)) consumed.set("m", amount(chance_.from(0, 2)));
        Value consumption = Value::object(
            {{"counterSet", cat("set-", chance_.below(sets))}, {"counters", std::move(consumed)}});
        if (chance_.one_in(4)) {
          consumption.set("compatibilityGroups",
                          Value::array({Value(chance_.one_in(2) ? "x" : "y")}));
        }
        device.set("consumesCounters", Value::array({std::move(consumption)}));
      }
      if (options_.capacity && chance_.one_in(3)) {
        Value memory = amount(chance_.from(2, 5));
        if (chance_.one_in(2)) {
          memory.set("requestPolicy",
                     Value::object({{"default", "1"},
                                    {"validRange", Value::object({{"min", "1"}, {"step", "1"}})}}));
        }
        device.set("capacity", Value::object({{"memory", std::move(memory)}}));
        if (!chance_.one_in(3)) device.set("allowMultipleAllocations", true);
      }
      if (chance_.one_in(6)) {
        device.set("taints", Value::array({Value::object(
                                 {{"key", "t"}, {"value", "v"}, {"effect", "NoSchedule"}})}));
      }
      if (chance_.one_in(8)) used.push(cat("d/", pool, "/dev-", i));
      devices.push(std::move(device));
    }
    const Value description = Value::object(
        {{"name", pool}, {"generation", 1}, {"resourceSliceCount", counters ? 2 : 1}});
    slices.push(slice(cat(pool, "-devices"), description, "devices", std::move(devices)));
    if (!counters) return;
    Value shared = Value::array();
    for (int s = 0; s < sets; ++s) {
      shared.push(Value::object(
          {{"name", cat("set-", s)},
           {"counters", Value::object({{"c", amount(chance_.from(2, 6))}, {"m", amount(3)}})}}));
    }
    slices.push(slice(cat(pool, "-counters"), description, "sharedCounters", std::move(shared)));
  }

  static Value slice(std::string_view name, const Value& pool, std::string_view what,
                     Value content) {
    Value spec = Value::object({{"driver", "d"}, {"pool", pool}, {"nodeName", "n"}});
    spec.set(what, std::move(content));
    return Value::object(
        {{"metadata", Value::object({{"name", name}})}, {"spec", std::move(spec)}});
  }

  Value request(bool sub) {
    Value made = Value::object({{"deviceClassName", chance_.one_in(4) ? "even" : "any"}});
    Value selectors = Value::array();
    if (chance_.one_in(4)) selectors.push(selector(R"(device.attributes["d"].index > 2)"));
    if (chance_.one_in(5)) {
      selectors.push(selector(options_.faults ? R"(device.attributes["d"].model == "a")"
                                              : R"("model" in device.attributes["d"])"));
    }
    if (!selectors.empty()) made.set("selectors", std::move(selectors));
    if (chance_.one_in(10)) {
      made.set("allocationMode", "All");
    } else {
      made.set("allocationMode", "ExactCount");
      made.set("count", chance_.from(1, options_.count));
    }
    if (!sub && chance_.one_in(8)) made.set("adminAccess", true);
    if (options_.capacity && chance_.one_in(5)) {
      made.set("capacity",
               Value::object(
                   {{"requests", Value::object({{"memory", chance_.one_in(2) ? "1" : "2"}})}}));
    }
    if (chance_.one_in(3)) {
      made.set("tolerations",
               Value::array({Value::object({{"key", "t"}, {"operator", "Exists"}})}));
    }
    if (chance_.one_in(8)) {
      made.set(
          "derivedAttributes",
          Value::array({Value::object({{"name", "x/half"},
                                       {"expression", R"(device.attributes["d"].index / 2)"}}),
                        Value::object({{"name", "d/numa"},
                                       {"expression", R"(device.attributes["d"].index % 3)"}})}));
    }
    return made;
  }

  Value claim(int number) {
    Value requests = Value::array();
    Value names = Value::array();
    const int count = chance_.from(1, options_.requests);
    for (int r = 0; r < count; ++r) {
      Value made = Value::object({{"name", cat("r", r)}});
      names.push(cat("r", r));
      if (chance_.one_in(4)) {
        Value list = Value::array();
        const int alternatives = chance_.from(2, 3);
        for (int i = 0; i < alternatives; ++i) {
          Value alternative = request(true);
          alternative.set("name", cat("s", i));
          list.push(std::move(alternative));
        }
        made.set("firstAvailable", std::move(list));
      } else {
        made.set("exactly", request(false));
      }
      requests.push(std::move(made));
    }
    Value constraints = Value::array();
    while (chance_.one_in(2)) {
      static constexpr const char* kAttributes[] = {"d/numa", "d/root", "x/half", "d/index"};
      Value constraint = Value::object();
      constraint.set(chance_.one_in(3) ? "distinctAttribute" : "matchAttribute",
                     kAttributes[chance_.below(chance_.one_in(4) ? 4 : 2)]);
      if (chance_.one_in(2)) {
        Value some = Value::array();
        for (const Value& name : names.items()) {
          if (chance_.one_in(2)) some.push(name);
        }
        if (!some.empty()) constraint.set("requests", std::move(some));
      }
      constraints.push(std::move(constraint));
    }
    Value devices = Value::object({{"requests", std::move(requests)}});
    if (!constraints.empty()) devices.set("constraints", std::move(constraints));
    return Value::object({{"metadata", Value::object({{"name", cat("c", number)}})},
                          {"spec", Value::object({{"devices", std::move(devices)}})}});
  }

  std::string name_;
  Chance chance_;
  RandomCaseOptions options_;
};

}  // namespace

json::Value random_case(std::uint64_t seed, const RandomCaseOptions& options) {
  return Maker(seed, options).make();
}

}  // namespace dibs::alloc
