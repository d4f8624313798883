#pragma once
// A classic driver: cats, each with a colour and a size. A claim says which by an object of a kind
// of its own (install.yaml has its definition):
//   apiVersion: cats.resource.example.com/v1
//   kind: ClaimParameters
//   spec: {color: black, size: large}
// Its controller half (Shelter) knows which cats live on which node and gives them away; its node
// half (Carrier) shows a container its cat in the environment: CAT_0_COLOR=black CAT_0_SIZE=large.
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "client/client.h"
#include "driver/allocator.h"
#include "driver/driver.h"
#include "json/parse.h"

namespace cats {

namespace driver = dibs::driver;
using dibs::Error;
using dibs::Result;
using dibs::json::Value;

inline constexpr const char* kName = "resource-driver.example.com";
inline const driver::ParameterKind kParameters = {"cats.resource.example.com", "ClaimParameters"};
inline constexpr const char* kSomeCats =
    "*=black/large,black/large,black/small,white/large,white/small";

struct Cat {
  std::string name;  // "cat-0", on its node
  std::string color;
  std::string size;
};

/// Which cats live where: "*=black/large,white/small;node-1=black/small". "*" are all nodes that
/// are not named.
class Inventory {
 public:
  static Result<Inventory> parse(std::string_view text) {
    Inventory out;
    for (const auto entry : dibs::split(text, ';')) {
      const std::size_t equals = entry.find('=');
      if (equals == entry.npos || equals == 0) {
        return Error::invalid(dibs::cat("--cats: not NODE=COLOR/SIZE,…: ", entry));
      }
      auto& cats = out.cats_[std::string(entry.substr(0, equals))];
      for (const auto one : dibs::split(entry.substr(equals + 1), ',')) {
        if (one.empty()) continue;  // a node may have none
        const std::size_t slash = one.find('/');
        if (slash == one.npos) {
          return Error::invalid(dibs::cat("--cats: not COLOR/SIZE: ", one));
        }
        cats.push_back({dibs::cat("cat-", cats.size()), std::string(one.substr(0, slash)),
                        std::string(one.substr(slash + 1))});
      }
    }
    return out;
  }

  const std::vector<Cat>& on(const std::string& node) const {
    static const std::vector<Cat> none;
    auto found = cats_.find(node);
    if (found == cats_.end()) found = cats_.find("*");
    return found == cats_.end() ? none : found->second;
  }

 private:
  std::map<std::string, std::vector<Cat>> cats_;
};

/// The controller half. It has no memory: who has which cat stands in the claims.
class Shelter : public driver::Allocator {
 public:
  /// `api` must outlive it.
  Shelter(Inventory inventory, dibs::client::Client& api)
      : inventory_(std::move(inventory)), api_(api) {}

  Result<Value> claim_parameters(const driver::PendingClaim& pending,
                                 driver::ObjectFinder& objects) override {
    return objects.parameters(pending.claim["spec"]["parametersRef"],
                              dibs::client::namespace_of(pending.claim), {kParameters});
  }

  std::vector<Result<driver::Allocation>> allocate(const std::vector<driver::PendingClaim>& claims,
                                                   const std::string& node,
                                                   const driver::Taken& taken) override {
    auto used = used_by(taken);
    std::vector<Result<driver::Allocation>> out;
    for (const auto& claim : claims) out.push_back(allocate_one(claim, node, used));
    return out;
  }

  Result<driver::Unsuitable> unsuitable_nodes(const Value&,
                                              const std::vector<driver::PendingClaim>& claims,
                                              const std::vector<std::string>& nodes,
                                              const driver::Taken& taken) override {
    const auto used = used_by(taken);
    std::vector<std::string> unsuitable;
    for (const auto& node : nodes) {
      auto now = used;
      for (const auto& claim : claims) {
        if (find(claim, node, now) != nullptr) continue;
        unsuitable.push_back(node);
        break;
      }
    }
    return driver::Unsuitable{driver::NodeLists(claims.size(), unsuitable)};
  }

 private:
  using Used = std::set<std::pair<std::string, std::string>>;  // node, cat

  static Used used_by(const driver::Taken& taken) {
    Used used;
    for (const auto& claim : taken) {
      for (const auto& handle : driver::handles_of(claim, kName)) {
        const auto cat = dibs::json::parse(handle.data);
        if (cat) used.insert({(*cat)["node"].str(), (*cat)["name"].str()});
      }
    }
    return used;
  }

  /// A free cat as the claim wants it, now used; null when there is none.
  const Cat* find(const driver::PendingClaim& claim, const std::string& node, Used& used) const {
    const Value& spec = claim.claim_parameters["spec"];
    for (const auto& cat : inventory_.on(node)) {
      if (spec["color"].as_string(cat.color) != cat.color) continue;
      if (spec["size"].as_string(cat.size) != cat.size) continue;
      if (used.insert({node, cat.name}).second) return &cat;
    }
    return nullptr;
  }

  Result<driver::Allocation> allocate_one(const driver::PendingClaim& claim,
                                          const std::string& node, Used& used) const {
    std::vector<std::string> nodes = {node};
    if (node.empty()) {
      // No pod is waiting: any node will do.
      DIBS_TRY(const auto list, api_.list({"", "v1", "nodes"}, ""));
      nodes.clear();
      for (const auto& one : list.items) nodes.emplace_back(dibs::client::name_of(one));
    }
    for (const auto& place : nodes) {
      const Cat* cat = find(claim, place, used);
      if (cat == nullptr) continue;
      const Value handle = Value::object(
          {{"node", place}, {"name", cat->name}, {"color", cat->color}, {"size", cat->size}});
      const bool shareable = claim.claim_parameters["spec"]["shareable"].as_bool();
      return driver::Allocation{{dibs::json::write(handle)}, driver::only_on(place), shareable};
    }
    const std::string where = node.empty() ? "" : dibs::cat(" on node ", node);
    return Error::invalid(dibs::cat("no such cat is free", where));
  }

  const Inventory inventory_;
  dibs::client::Client& api_;
};

/// The node half.
class Carrier : public driver::Driver {
 public:
  Carrier(Inventory inventory, std::string node)
      : inventory_(std::move(inventory)), node_(std::move(node)) {}

  /// Where the scheduler gives the cats away (release 1.30), it must know them.
  Result<std::vector<driver::Pool>> devices() override {
    std::vector<driver::Device> devices;
    for (const auto& cat : inventory_.on(node_)) {
      driver::Device device(cat.name);
      device.attribute("color", cat.color).attribute("size", cat.size);
      devices.push_back(std::move(device));
    }
    return std::vector<driver::Pool>{driver::make_pool(node_, std::move(devices))};
  }

  Result<std::vector<driver::PreparedDevice>> prepare(const driver::Claim& claim) override {
    std::vector<driver::PreparedDevice> out;
    for (const auto& handle : claim.handles) {
      if (!handle.structured.is_null()) continue;
      DIBS_TRY(const Value cat, dibs::json::parse(handle.data));
      if (cat["node"].as_string() != node_) {
        return Error::invalid(dibs::cat("the cat is on node ", cat["node"].as_string()));
      }
      out.push_back(shown({cat["name"].str(), cat["color"].str(), cat["size"].str()}));
    }
    for (const auto& device : claim.devices) {
      DIBS_TRY(const Cat cat, named(device.device));
      out.push_back(shown(cat));
    }
    return out;
  }

  Result<> unprepare(const driver::ClaimName&) override { return dibs::success(); }

 private:
  Result<Cat> named(const std::string& name) const {
    for (const auto& cat : inventory_.on(node_)) {
      if (cat.name == name) return cat;
    }
    return Error::not_found(dibs::cat("no cat here is named ", name));
  }

  /// "cat-0" is CAT_0.
  static driver::PreparedDevice shown(const Cat& cat) {
    const std::string variable = dibs::cat("CAT_", cat.name.substr(cat.name.find('-') + 1));
    driver::PreparedDevice device;
    device.device = cat.name;
    device.edits = driver::env_edits(
        {dibs::cat(variable, "_COLOR=", cat.color), dibs::cat(variable, "_SIZE=", cat.size)});
    return device;
  }

  const Inventory inventory_;
  const std::string node_;
};

/// What the scheduler is told of the parameters of a claim, where it gives the cats away.
inline Result<Value> parameters_for_scheduler(const Value& vendor) {
  std::string selector;
  for (const char* field : {"color", "size"}) {
    const auto wanted = vendor["spec"][field].as_string();
    if (wanted.empty()) continue;
    dibs::append(selector, selector.empty() ? "" : " && ", "attributes.string[\"", field,
                 "\"] == ", dibs::quoted(wanted));
  }
  const Value request = Value::object(
      {{"namedResources",
        Value::object({{"selector", selector.empty() ? "true" : selector.c_str()}})}});
  const Value driver_request =
      Value::object({{"driverName", kName}, {"requests", Value::array({request})}});
  Value out = Value::object({{"driverRequests", Value::array({driver_request})}});
  if (vendor["spec"]["shareable"].as_bool()) out.set("shareable", true);
  return out;
}

}  // namespace cats
