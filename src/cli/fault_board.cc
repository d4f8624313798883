#include "cli/fault_board.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/did_you_mean.h"
#include "base/strings.h"
#include "cli/top_devices.h"
#include "client/resource_versions.h"

namespace dibs::cli {
namespace {

using json::Value;

const client::Gvr kNodes = {"", "v1", "nodes"};
const client::Gvr kSlices = {"resource.k8s.io", "v1", "resourceslices"};
constexpr int kTries = 5;

bool fits(std::string_view pattern, std::string_view text) {
  const auto star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  const std::string_view rest = pattern.substr(star + 1);
  for (std::size_t at = star; at <= text.size(); ++at) {
    if (fits(rest, text.substr(at))) return true;
  }
  return false;
}

bool has_star(std::string_view text) { return text.find('*') != std::string_view::npos; }

struct Target {
  std::string node;
  std::string driver = "*";
  std::string pool = "*";
  std::string device;
};

Result<Target> parse_target(std::string_view text) {
  std::vector<std::string> parts;
  for (const auto part : split(text, '/')) parts.emplace_back(part);
  const bool whole = std::none_of(parts.begin(), parts.end(),
                                  [](const std::string& part) { return part.empty(); });
  if (parts.size() < 2 || !whole) {
    return Error::bad_request(
        cat(quoted(text),
            ": must be NODE/DEVICE, NODE/DRIVER/DEVICE or NODE/DRIVER/POOL/DEVICE, as `dibs top "
            "devices` shows them"));
  }
  Target out;
  out.node = parts.front();
  out.device = parts.back();
  if (parts.size() > 2) out.driver = parts[1];
  // The name of a pool may have slashes itself.
  if (parts.size() > 3) out.pool = join({parts.begin() + 2, parts.end() - 1}, "/");
  return out;
}

/// What is asked for and what there is, if anything is near: for "no node".
std::string near(std::string_view word, const std::set<std::string>& names) {
  return did_you_mean(word, {names.begin(), names.end()});
}

/// The newest generation of each pool of each driver.
struct PoolSlices {
  std::int64_t generation = -1;
  std::int64_t wanted = 0;
  std::vector<const Value*> slices;
};
using Pools = std::map<std::pair<std::string, std::string>, PoolSlices>;  // by driver and name

Pools pools_in(const std::vector<Value>& slices) {
  Pools out;
  for (const Value& slice : slices) {
    const Value& spec = slice["spec"];
    if (!spec["pool"].is_object()) continue;
    PoolSlices& pool = out[{spec["driver"].str(), spec["pool"]["name"].str()}];
    const std::int64_t generation = spec["pool"]["generation"].as_int();
    if (generation < pool.generation) continue;
    if (generation > pool.generation) pool = {};
    pool.generation = generation;
    pool.wanted = spec["pool"]["resourceSliceCount"].as_int();
    pool.slices.push_back(&slice);
  }
  return out;
}

/// What the driver has taken of the faults of this pool; null: it does not take any.
const Value& taken_text(const PoolSlices& pool) {
  static const Value kNone;
  for (const Value* slice : pool.slices) {
    const Value& text = (*slice)["metadata"]["annotations"][driver::kFaultsTaken];
    if (text.is_string()) return text;
  }
  return kNone;
}

Result<std::vector<Value>> slices_on(client::Client& client, const std::string& node) {
  client::ListOptions options;
  if (!node.empty()) options.field_selector = cat("spec.nodeName=", node);
  auto listed = client.list(kSlices, "", options);
  if (!listed) return listed.error().within("list resourceslices");
  return std::move(listed->items);
}

Result<Value> node_named(client::Client& client, const std::string& name) {
  auto node = client.get(kNodes, "", name);
  if (node || node.error().code() != Code::not_found) return node;
  std::set<std::string> names;
  if (const auto all = client.list(kNodes, "", {.metadata_only = true})) {
    for (const Value& one : all->items) names.emplace(client::name_of(one));
  }
  return Error::not_found(cat("there is no node ", quoted(name), near(name, names)));
}

}  // namespace

std::string BoardDevice::text() const { return cat(node, "/", name, " (", driver, ")"); }

std::string BoardDevice::address() const { return cat(node, "/", driver, "/", pool, "/", name); }

Result<FaultBoard> FaultBoard::read(client::Client& client, const std::vector<std::string>& nodes) {
  client::ResourceClient models(client);
  FaultBoard out;
  for (const std::string& name : nodes) {
    DIBS_TRY(const Value node, node_named(client, name));
    DIBS_TRY(const auto slices, slices_on(models, name));
    out.add(node, slices);
  }
  if (nodes.empty()) {
    DIBS_TRY(const auto all, client.list(kNodes, ""));
    DIBS_TRY(auto slices, slices_on(models, ""));
    std::map<std::string, std::vector<Value>> by_node;
    for (Value& slice : slices) {
      by_node[slice["spec"]["nodeName"].str()].push_back(std::move(slice));
    }
    for (const Value& node : all.items) out.add(node, by_node[std::string(client::name_of(node))]);
  }
  std::sort(out.devices_.begin(), out.devices_.end(), [](const auto& a, const auto& b) {
    if (a.node != b.node) return comes_before(a.node, b.node);
    if (a.driver != b.driver) return a.driver < b.driver;
    if (a.pool != b.pool) return comes_before(a.pool, b.pool);
    return comes_before(a.name, b.name);
  });
  return out;
}

void FaultBoard::add(const Value& node, const std::vector<Value>& slices) {
  const std::string name(client::name_of(node));
  std::map<std::string, BoardDriver> drivers;
  std::map<std::pair<std::string, std::string>, BoardDevice> devices;  // by driver and key
  const auto device_at = [&](const std::string& driver, std::string_view pool,
                             std::string_view device) -> BoardDevice& {
    BoardDevice& made = devices[{driver, driver::fault_key(pool, device)}];
    made = {name, driver, std::string(pool), std::string(device), made.published};
    return made;
  };
  const auto driver_at = [&](const std::string& driver) -> BoardDriver& {
    BoardDriver& made = drivers[driver];
    if (!made.name.empty()) return made;
    made.node = name;
    made.name = driver;
    made.text = node["metadata"]["annotations"][driver::faults_annotation(driver)].str();
    auto faults = driver::parse_faults(made.text);
    if (faults) {
      made.faults = std::move(faults).value();
    } else {
      made.trouble = faults.error().message();
    }
    return made;
  };
  const std::string begin = driver::faults_annotation("");
  for (const auto& [key, text] : node["metadata"]["annotations"].members()) {
    if (std::string_view(key).starts_with(begin)) {
      driver_at(std::string(std::string_view(key).substr(begin.size())));
    }
  }
  for (const auto& [id, pool] : pools_in(slices)) {
    BoardDriver& driver = driver_at(id.first);
    const Value& taken = taken_text(pool);
    const bool same = taken.is_string() && taken.as_string() == driver.text;
    driver.taken = same && (driver.taken || !driver.takes);
    driver.takes = driver.takes || taken.is_string();
    for (const Value* slice : pool.slices) {
      for (const Value& device : (*slice)["spec"]["devices"].items()) {
        device_at(id.first, id.second, device["name"].as_string()).published = true;
      }
    }
  }
  for (const auto& [driver, one] : drivers) {
    for (const auto& [key, faults] : one.faults) {
      const auto slash = key.rfind('/');
      device_at(driver, std::string_view(key).substr(0, slash),
                std::string_view(key).substr(slash + 1));
    }
  }
  for (auto& [driver, one] : drivers) drivers_.push_back(std::move(one));
  for (auto& [id, device] : devices) devices_.push_back(std::move(device));
}

const BoardDriver& FaultBoard::driver_of(const BoardDevice& device) const {
  return *std::find_if(drivers_.begin(), drivers_.end(), [&](const BoardDriver& driver) {
    return driver.node == device.node && driver.name == device.driver;
  });
}

Result<std::vector<const BoardDevice*>> FaultBoard::choose(std::string_view text) const {
  DIBS_TRY(const Target target, parse_target(text));
  std::vector<const BoardDevice*> on_nodes;
  std::vector<const BoardDevice*> of_drivers;
  std::vector<const BoardDevice*> chosen;
  std::set<std::string> drivers;
  std::set<std::string> names;
  for (const BoardDevice& device : devices_) {
    if (!fits(target.node, device.node)) continue;
    on_nodes.push_back(&device);
    drivers.insert(device.driver);
    if (!fits(target.driver, device.driver) || !fits(target.pool, device.pool)) continue;
    of_drivers.push_back(&device);
    names.insert(device.name);
    if (fits(target.device, device.name)) chosen.push_back(&device);
  }
  if (on_nodes.empty()) {
    return Error::not_found(cat(text, ": node ", target.node, " has no devices"));
  }
  if (of_drivers.empty()) {
    const std::string of_pool = target.pool == "*" ? "" : cat(" in pool ", target.pool);
    return Error::not_found(cat(text, ": driver ", target.driver, " has no devices on ",
                                target.node, of_pool, near(target.driver, drivers)));
  }
  if (chosen.empty()) {
    return Error::not_found(cat(text, ": ", target.node, " has no device ", quoted(target.device),
                                near(target.device, names)));
  }
  if (chosen.size() > 1 && !has_star(text)) {
    std::vector<std::string> all;
    for (const BoardDevice* device : chosen) all.push_back(device->address());
    return Error::bad_request(
        cat(text, " is ", chosen.size(), " devices: name one of ", join(all, ", ")));
  }
  return chosen;
}

std::vector<std::string> nodes_of_targets(const std::vector<std::string>& targets) {
  std::set<std::string> nodes;
  for (const std::string& target : targets) {
    const std::string node = target.substr(0, target.find('/'));
    if (has_star(node)) return {};
    nodes.insert(node);
  }
  return {nodes.begin(), nodes.end()};
}

Result<WrittenFaults> change_faults(client::Client& client, const BoardDriver& driver,
                                    const std::vector<const BoardDevice*>& devices,
                                    const std::function<void(driver::DeviceFaults&)>& change) {
  const std::string annotation = driver::faults_annotation(driver.name);
  for (int tries = 1;; ++tries) {
    DIBS_TRY(const Value node, client.get(kNodes, "", driver.node));
    const Value& before = node["metadata"]["annotations"][annotation];
    auto faults = driver::parse_faults(before.as_string());
    if (!faults) {
      return faults.error().within(cat("node ", driver.node, ", annotation ", annotation,
                                       ", which kubectl annotate node ", driver.node, " ",
                                       annotation, "- takes away"));
    }
    for (const BoardDevice* device : devices) {
      driver::DeviceFaults& one = (*faults)[device->key()];
      change(one);
      if (one.none()) faults->erase(device->key());
    }
    WrittenFaults written = {driver.node, driver.name, driver::write_faults(*faults)};
    if (written.text == before.as_string()) return written;
    const Value patch = Value::object(
        {{"metadata",
          Value::object(
              {{"resourceVersion", node["metadata"]["resourceVersion"]},
               {"annotations",
                Value::object(
                    {{annotation, written.text.empty() ? Value() : Value(written.text)}})}})}});
    auto patched = client.patch(kNodes, "", driver.node, client::PatchType::merge, patch);
    if (patched) return written;
    if (patched.error().code() != Code::conflict || tries == kTries) {
      return patched.error().within(cat("node ", driver.node));
    }
  }
}

Result<bool> are_taken(client::Client& client, const WrittenFaults& written) {
  client::ResourceClient models(client);
  DIBS_TRY(const auto slices, slices_on(models, written.node));
  bool any = false;
  for (const auto& [id, pool] : pools_in(slices)) {
    if (id.first != written.driver) continue;
    any = true;
    const bool whole = static_cast<std::int64_t>(pool.slices.size()) == pool.wanted;
    const Value& taken = taken_text(pool);
    if (!whole || !taken.is_string() || taken.as_string() != written.text) return false;
  }
  return any;
}

}  // namespace dibs::cli
