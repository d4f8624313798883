#include "alloc/testing/hard_cases.h"

#include <functional>
#include <utility>

#include "base/strings.h"

namespace dibs::alloc {
namespace {

using json::Value;

/// Puts a case together piece by piece.
class Builder {
 public:
  Value& device() {
    devices_.push(Value::object({{"name", cat("dev-", devices_.size())}}));
    return devices_.mut(devices_.size() - 1);
  }
  /// Devices whose attribute `name` is what `value` says.
  void devices(int count, const std::function<void(int, Value&)>& fill) {
    for (int i = 0; i < count; ++i) fill(i, device());
  }
  static void attribute(Value& device, std::string_view name, int value) {
    device.mut("attributes").set(name, Value::object({{"int", value}}));
  }
  static void consumes(Value& device, std::string_view set, int amount) {
    device.set(
        "consumesCounters",
        Value::array({Value::object(
            {{"counterSet", set}, {"counters", Value::object({{"slices", quantity(amount)}})}})}));
  }
  void counter_set(std::string_view name, int amount) {
    sets_.push(Value::object(
        {{"name", name}, {"counters", Value::object({{"slices", quantity(amount)}})}}));
  }
  static Value quantity(int amount) { return Value::object({{"value", std::to_string(amount)}}); }

  void claim() { claims_.push(Value::object({{"requests", Value::array()}})); }
  /// A request of the claim begun last.
  Value& request(int count, std::string_view expression = {}) {
    Value made = Value::object(
        {{"deviceClassName", "any"}, {"allocationMode", "ExactCount"}, {"count", count}});
    if (!expression.empty()) {
      made.set(
          "selectors",
          Value::array({Value::object({{"cel", Value::object({{"expression", expression}})}})}));
    }
    Value& requests = last_claim().mut("requests");
    requests.push(Value::object({{"name", cat("r", requests.size())}, {"exactly", made}}));
    return requests.mut(requests.size() - 1).mut("exactly");
  }
  void alternatives(const std::vector<std::pair<int, std::string>>& list) {
    Value made = Value::array();
    for (const auto& [count, expression] : list) {
      made.push(Value::object(
          {{"name", cat("s", made.size())},
           {"deviceClassName", "any"},
           {"allocationMode", "ExactCount"},
           {"count", count},
           {"selectors", Value::array({Value::object(
                             {{"cel", Value::object({{"expression", expression}})}})})}}));
    }
    Value& requests = last_claim().mut("requests");
    requests.push(Value::object({{"name", cat("r", requests.size())}, {"firstAvailable", made}}));
  }
  void constraint(std::string_view kind, std::string_view attribute,
                  const std::vector<int>& requests = {}) {
    Value made = Value::object({{kind, cat("d/", attribute)}});
    if (!requests.empty()) {
      Value names = Value::array();
      for (const int r : requests) names.push(cat("r", r));
      made.set("requests", std::move(names));
    }
    last_claim().mut("constraints").push(std::move(made));
  }

  HardCase build(std::string name, bool solvable) const {
    Value slices = Value::array();
    // No more devices in a slice than the API takes.
    constexpr std::size_t kMost = 64;
    const std::size_t device_slices = (devices_.size() + kMost - 1) / kMost;
    const Value pool = Value::object(
        {{"name", "p"},
         {"generation", 1},
         {"resourceSliceCount", static_cast<int>(device_slices + (sets_.empty() ? 0 : 1))}});
    for (std::size_t s = 0; s < device_slices; ++s) {
      Value some = Value::array();
      for (std::size_t i = s * kMost; i < devices_.size() && i < (s + 1) * kMost; ++i) {
        some.push(devices_[i]);
      }
      slices.push(slice(cat("p-", s), pool, "devices", std::move(some)));
    }
    if (!sets_.empty()) slices.push(slice("p-counters", pool, "sharedCounters", sets_));
    Value claims = Value::array();
    for (const Value& devices : claims_.items()) {
      claims.push(Value::object({{"metadata", Value::object({{"name", cat("c", claims.size())}})},
                                 {"spec", Value::object({{"devices", devices}})}}));
    }
    Value features = Value::array();
    for (const char* gate : {"DRAConsumableCapacity", "DRAPartitionableDevices",
                             "DRAPrioritizedList", "DRAListTypeAttributes", "DRAAdminAccess"}) {
      features.push(gate);
    }
    Value source = Value::object(
        {{"name", name},
         {"features", std::move(features)},
         {"node", Value::object({{"metadata", Value::object({{"name", "n"}})}})},
         {"classes", Value::array({Value::object({{"metadata", Value::object({{"name", "any"}})},
                                                  {"spec", Value::object()}})})},
         {"slices", std::move(slices)},
         {"claims", std::move(claims)}});
    return {std::move(name), solvable, std::move(source)};
  }

 private:
  Value& last_claim() { return claims_.mut(claims_.size() - 1); }
  static Value slice(std::string_view name, const Value& pool, std::string_view what,
                     Value content) {
    Value spec = Value::object({{"driver", "d"}, {"pool", pool}, {"nodeName", "n"}});
    spec.set(what, std::move(content));
    return Value::object(
        {{"metadata", Value::object({{"name", name}})}, {"spec", std::move(spec)}});
  }

  Value devices_ = Value::array();
  Value sets_ = Value::array();
  Value claims_ = Value::array();
};

std::string index_below(int limit) { return cat(R"(device.attributes["d"].index < )", limit); }

/// Equal devices, one too few.
HardCase pigeons(int devices, int claims, int per_claim) {
  Builder made;
  made.devices(devices, [](int, Value&) {});
  for (int c = 0; c < claims; ++c) {
    made.claim();
    made.request(per_claim);
  }
  return made.build(cat("equal-", devices, "-for-", claims, "x", per_claim),
                    devices >= claims * per_claim);
}

/// Requests that can each be served, but too many of them want the same few devices.
HardCase hall(int devices, int requests, int shared) {
  Builder made;
  made.devices(devices, [](int i, Value& device) { Builder::attribute(device, "index", i); });
  made.claim();
  for (int r = 0; r < requests; ++r) made.request(1, index_below(devices - r));
  made.claim();
  for (int r = 0; r < shared + 1; ++r) made.request(1, index_below(shared));
  return made.build(cat("overlap-", devices, "-", requests, "-", shared), false);
}

/// Groups of devices by value, none of them large enough for all requests together.
HardCase match_groups(int devices, int groups, int requests, int count) {
  Builder made;
  made.devices(devices, [groups](int i, Value& device) {
    Builder::attribute(device, "index", i);
    Builder::attribute(device, "numa", i % groups);
  });
  made.claim();
  for (int r = 0; r < requests; ++r) made.request(count);
  made.constraint("matchAttribute", "numa");
  return made.build(cat("match-", devices, "-in-", groups, "-for-", requests, "x", count),
                    devices / groups >= requests * count);
}

/// The same, behind a claim that leaves many ways to be served.
HardCase match_behind(int devices, int groups, int before, int count) {
  Builder made;
  made.devices(devices, [groups](int i, Value& device) {
    Builder::attribute(device, "index", i);
    Builder::attribute(device, "numa", i % groups);
  });
  made.claim();
  for (int r = 0; r < before; ++r) made.request(1);
  made.claim();
  made.request(count);
  made.request(count);
  made.constraint("matchAttribute", "numa");
  return made.build(cat("match-behind-", before, "-", devices, "-in-", groups, "-for-2x", count),
                    false);
}

/// Two constraints over the same requests whose values never come together often enough.
HardCase match_two(int devices, int count) {
  Builder made;
  made.devices(devices, [](int i, Value& device) {
    Builder::attribute(device, "row", i / 8);
    Builder::attribute(device, "column", i % 8);
  });
  made.claim();
  made.request(1);
  made.request(count);
  made.constraint("matchAttribute", "row");
  made.constraint("matchAttribute", "column");
  return made.build(cat("match-two-", devices, "-for-", count), false);
}

/// Neighbouring requests tied by constraints of their own, in a ring that does not close.
HardCase chain(int devices, int links, bool closed) {
  Builder made;
  made.devices(devices, [](int i, Value& device) {
    Builder::attribute(device, "a", i / 4);
    Builder::attribute(device, "b", (i + 2) / 4);
    Builder::attribute(device, "index", i);
  });
  made.claim();
  for (int r = 0; r <= links; ++r) {
    const bool last = r == links;
    made.request(1, last && closed ? cat(R"(device.attributes["d"].index == )", devices - 1)
                    : r == 0       ? R"(device.attributes["d"].index == 0)"
                                   : "");
  }
  for (int r = 0; r < links; ++r) {
    made.constraint("matchAttribute", r % 2 == 0 ? "a" : "b", {r, r + 1});
  }
  return made.build(cat(closed ? "ring-" : "chain-", devices, "-", links), !closed);
}

/// Fewer values than devices wanted.
HardCase distinct_short(int devices, int values, int count, int before) {
  Builder made;
  made.devices(devices,
               [values](int i, Value& device) { Builder::attribute(device, "root", i % values); });
  made.claim();
  for (int r = 0; r < before; ++r) made.request(1);
  const int first = before;
  made.request(count / 2);
  made.request(count - count / 2);
  made.constraint("distinctAttribute", "root", {first, first + 1});
  return made.build(
      cat("distinct-", devices, "-", values, "-values-for-", count, "-behind-", before),
      values >= count);
}

/// GPUs with partitions of 1, 2, 4 and 7 slices of 7.
HardCase partitions(int gpus, std::vector<int> wanted, bool solvable) {
  Builder made;
  static constexpr int kSizes[] = {1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 4, 7};
  for (int g = 0; g < gpus; ++g) {
    for (const int size : kSizes) {
      Value& device = made.device();
      Builder::attribute(device, "size", size);
      Builder::consumes(device, cat("gpu-", g), size);
    }
    made.counter_set(cat("gpu-", g), 7);
  }
  made.claim();
  std::string name = cat("partitions-", gpus, "-for");
  int in_claim = 0;
  for (std::size_t i = 0; i < wanted.size(); i += 2) {
    if (in_claim + wanted[i] > 32) {
      made.claim();
      in_claim = 0;
    }
    in_claim += wanted[i];
    made.request(wanted[i], cat(R"(device.attributes["d"].size == )", wanted[i + 1]));
    name += cat("-", wanted[i], "x", wanted[i + 1]);
  }
  return made.build(std::move(name), solvable);
}

/// Shared devices whose capacity suffices in sum but cannot be cut up as wanted.
HardCase packing(int devices, int capacity, std::vector<int> sizes, bool solvable) {
  Builder made;
  made.devices(devices, [capacity](int, Value& device) {
    device.set("allowMultipleAllocations", true);
    device.set("capacity", Value::object({{"memory", Builder::quantity(capacity)}}));
  });
  made.claim();
  std::string name = cat("packing-", devices, "x", capacity, "-for");
  for (const int size : sizes) {
    Value& request = made.request(1);
    request.set("capacity",
                Value::object({{"requests", Value::object({{"memory", std::to_string(size)}})}}));
    name += cat("-", size);
  }
  return made.build(std::move(name), solvable);
}

/// Many alternatives, and a last request that the ones before it starve.
HardCase alternatives(int devices, int requests) {
  Builder made;
  made.devices(devices, [](int i, Value& device) { Builder::attribute(device, "index", i); });
  made.claim();
  for (int r = 0; r < requests; ++r) {
    std::vector<std::pair<int, std::string>> list;
    for (int a = 0; a < 8; ++a) list.emplace_back(2 + a % 2, index_below(devices - a));
    made.alternatives(list);
  }
  made.claim();
  made.request(devices - 2 * requests + 1);
  return made.build(cat("alternatives-", devices, "-", requests), false);
}

/// Devices with sets of values of which no two overlap often enough.
HardCase lists(int devices, int count) {
  Builder made;
  made.devices(devices, [devices](int i, Value& device) {
    Value values = Value::array();
    for (int k = 0; k < 4; ++k) values.push(cat("v", (i + k * 7) % devices));
    device.mut("attributes").set("links", Value::object({{"strings", std::move(values)}}));
  });
  made.claim();
  made.request(1);
  made.request(count);
  made.constraint("matchAttribute", "links");
  return made.build(cat("lists-", devices, "-for-", count + 1), false);
}

/// Lists of values that are a device's own, and one that the last devices share, before or behind
/// their own: a request for each of them, whose devices are found behind those that fit nothing.
HardCase shared_value(int alone, int sharing, int requests, bool behind) {
  Builder made;
  made.devices(alone + sharing, [alone, behind](int i, Value& device) {
    Value values = Value::array();
    if (i >= alone && !behind) values.push("shared");
    for (int k = 0; k < 47; ++k) values.push(cat("d", i, "-", k));
    if (i >= alone && behind) values.push("shared");
    device.mut("attributes").set("links", Value::object({{"strings", std::move(values)}}));
  });
  made.claim();
  for (int r = 0; r < requests; ++r) made.request(1);
  made.constraint("matchAttribute", "links");
  return made.build(
      cat("shared-value-", alone, "-", sharing, "-for-", requests, behind ? "-behind" : ""),
      sharing >= requests);
}

/// Every device shares values with many others, but a single value is common to enough of them.
HardCase shared_groups(int groups, int size, int requests, bool solvable) {
  Builder made;
  made.devices(groups * size, [groups, size, solvable](int i, Value& device) {
    Value values = Value::array();
    for (int k = 0; k < 16; ++k) values.push(cat("g", i / size, "-", (i + k) % (size + 1)));
    if (i % groups == 1 && i > groups) values.push("rare");  // one too few
    if (solvable && i / size == groups - 1) values.push("last");
    device.mut("attributes").set("links", Value::object({{"strings", std::move(values)}}));
  });
  made.claim();
  for (int r = 0; r < requests; ++r) made.request(1);
  made.constraint("matchAttribute", "links");
  return made.build(
      cat("shared-groups-", groups, "x", size, "-for-", requests, solvable ? "" : "-short"),
      solvable);
}

/// "All" of devices that earlier requests cannot leave alone.
HardCase all_behind(int devices, int before) {
  Builder made;
  made.devices(devices, [](int i, Value& device) { Builder::attribute(device, "index", i); });
  made.claim();
  made.request(before);
  made.request(before);
  made.claim();
  Value& all = made.request(0, index_below(devices - before));
  all.set("allocationMode", "All");
  all.erase("count");
  return made.build(cat("all-behind-", devices, "-2x", before), false);
}

}  // namespace

std::vector<HardCase> hard_cases() {
  std::vector<HardCase> made;
  made.push_back(pigeons(31, 1, 32));
  made.push_back(pigeons(63, 2, 32));
  made.push_back(pigeons(127, 4, 32));
  made.push_back(pigeons(128, 4, 32));
  made.push_back(hall(64, 16, 8));
  made.push_back(hall(128, 30, 20));
  made.push_back(match_groups(64, 16, 5, 1));
  made.push_back(match_groups(128, 16, 3, 3));
  made.push_back(match_groups(128, 4, 4, 8));
  made.push_back(match_behind(64, 16, 8, 3));
  made.push_back(match_behind(128, 32, 24, 3));
  made.push_back(match_two(64, 1));
  made.push_back(match_two(128, 2));
  made.push_back(chain(64, 8, false));
  made.push_back(chain(64, 8, true));
  made.push_back(chain(128, 20, true));
  made.push_back(distinct_short(64, 8, 9, 0));
  made.push_back(distinct_short(128, 16, 17, 10));
  made.push_back(distinct_short(128, 20, 20, 8));
  made.push_back(partitions(4, {5, 7}, false));
  made.push_back(partitions(4, {9, 3}, false));
  made.push_back(partitions(8, {8, 4, 8, 3, 1, 1}, false));
  made.push_back(partitions(8, {8, 4, 8, 3}, true));
  made.push_back(partitions(8, {8, 3, 8, 2, 8, 2}, true));
  made.push_back(partitions(8, {8, 3, 8, 2, 8, 2, 1, 1}, false));
  made.push_back(partitions(4, {4, 3, 4, 3, 4, 2}, false));
  made.push_back(partitions(8, {5, 4, 5, 3, 5, 2, 6, 1}, true));
  made.push_back(packing(8, 10, {6, 6, 6, 6, 6, 6, 6, 6, 6}, false));
  made.push_back(packing(4, 10, {4, 4, 4, 4, 4, 3, 3, 3, 3, 3, 5}, false));
  made.push_back(
      packing(8, 10, {7, 7, 6, 6, 5, 5, 4, 4, 4, 3, 3, 3, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2}, true));
  made.push_back(packing(6, 12, {7, 7, 7, 7, 7, 7, 5, 5, 5, 5, 3, 3, 3}, false));
  made.push_back(alternatives(24, 6));
  made.push_back(alternatives(40, 6));
  made.push_back(lists(64, 4));
  made.push_back(lists(128, 6));
  made.push_back(shared_value(32, 32, 32, false));
  made.push_back(shared_value(32, 32, 32, true));
  made.push_back(shared_value(33, 31, 32, false));
  made.push_back(shared_value(96, 32, 30, true));
  made.push_back(shared_groups(4, 32, 32, true));
  made.push_back(shared_groups(4, 32, 32, false));
  made.push_back(all_behind(32, 8));
  made.push_back(all_behind(46, 15));
  return made;
}

}  // namespace dibs::alloc
