// Drivers: where they have devices, which of their pools are not whole, what they fail at.
#include <algorithm>
#include <map>
#include <set>

#include "base/nearest.h"
#include "base/strings.h"
#include "cli/why_story.h"

namespace dibs::cli {
namespace {

using json::Value;

constexpr std::size_t kMostShown = 10;

class DriverStory {
 public:
  DriverStory(const WhyWorld& world, const std::string& name) : world_(world), name_(name) {}

  WhyStory tell() {
    gather();
    find_troubles();
    made_.status = troubles_.empty() ? 0 : 2;
    const std::string message =
        troubles_.empty()
            ? cat("has ", devices_, devices_ == 1 ? " device" : " devices", " in ", pools_.size(),
                  pools_.size() == 1 ? " pool" : " pools",
                  pools_.empty() ? ", and is registered for volumes" : ", and nothing waits for it")
            : troubles_.front().text;
    made_.document = Value::object(
        {{"kind", "Driver"},
         {"name", name_},
         {"state", troubles_.empty() ? "Running" : "Failing"},
         {"reason", troubles_.empty() ? std::string("Published") : troubles_.front().reason},
         {"message", message}});
    made_.page.line(0, cat("driver ", name_, " ", message));
    for (std::size_t i = 1; i < troubles_.size(); ++i) {
      made_.page.line(2, cat("also: it ", troubles_[i].text));
    }
    tell_remedies(troubles_, made_.page);
    made_.document.set("troubles", troubles_document(troubles_));
    tell_pools();
    tell_nodes();
    made_.brief = message;
    return std::move(made_);
  }

 private:
  void gather() {
    for (PoolView& pool : pools_of(world_)) {
      if (pool.driver != name_) {
        others_.insert(pool.driver);
        continue;
      }
      devices_ += pool.devices;
      const std::string place = pool.place();
      if (find_object(world_.objects.nodes, "", place) != nullptr) here_.insert(place);
      everywhere_ = everywhere_ || place == "all nodes";
      pools_.push_back(std::move(pool));
    }
    for (const Value& object : world_.objects.volumes) {
      if (object["kind"].as_string() != "CSINode") continue;
      for (const Value& driver : object["spec"]["drivers"].items()) {
        if (driver["name"].as_string() == name_)
          csi_.insert(object["metadata"]["name"].str());
        else
          others_.insert(driver["name"].str());
      }
    }
    for (const Value& claim : world_.objects.claims) {
      bool held = claim["status"]["driverName"].as_string() == name_;
      for (const Value& result : claim["status"]["allocation"]["devices"]["results"].items()) {
        if (result["driver"].as_string() != name_) continue;
        held = true;
        const auto has = [&](const PoolView& pool) {
          return pool.name == result["pool"].as_string();
        };
        if (std::none_of(pools_.begin(), pools_.end(), has)) orphans_.insert(key_of(claim));
      }
      if (held) ++claims_;
    }
  }

  static std::string key_of(const Value& object) {
    return cat(object["metadata"]["namespace"].as_string(), "/",
               object["metadata"]["name"].as_string());
  }

  static std::string some(const std::vector<std::string>& all) {
    const std::vector<std::string> first(
        all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), kMostShown)));
    return all.size() <= kMostShown
               ? join(all, ", ")
               : cat(join(first, ", "), " and ", all.size() - kMostShown, " more");
  }

  void find_troubles() {
    if (pools_.empty() && csi_.empty()) {
      const std::vector<std::string> near = nearest(name_, {others_.begin(), others_.end()}, 1);
      std::vector<std::string> remedies = {
          "start it on the nodes that have its devices: it publishes them as ResourceSlices once "
          "the node's agent has registered it"};
      if (!near.empty())
        remedies.insert(remedies.begin(), cat("perhaps ", near.front(), " is meant"));
      troubles_.push_back(
          {"NothingPublished",
           cat("has published no devices on any node",
               claims_ == 0 ? ""
                            : cat(", and ", claims_, claims_ == 1 ? " claim has" : " claims have",
                                  " devices of it")),
           std::move(remedies)});
    }
    std::vector<std::string> partial;
    for (const PoolView& pool : pools_) {
      if (!pool.complete()) {
        partial.push_back(cat(pool.name, " (", pool.slices.size(), " of ", pool.wanted,
                              " slices of generation ", pool.generation, ")"));
      }
    }
    if (!partial.empty()) {
      troubles_.push_back(
          {"IncompletePools",
           cat("has pools that are not complete, whose devices are not given: ", some(partial)),
           {"wait while it publishes the rest; where that does not end, see its log: slices may be "
            "refused, or left by an earlier instance"}});
    }
    if (!orphans_.empty() && !pools_.empty()) {
      troubles_.push_back(
          {"DevicesGone",
           cat("has claims with devices of pools that are gone: ",
               some({orphans_.begin(), orphans_.end()})),
           {"start it where these pools were, so that the claims can be given back"}});
    }
    for (const auto& [reason, event] : failures()) {
      const Value& about = (*event)["involvedObject"];
      troubles_.push_back({reason,
                           cat("fails: ", to_lower(about["kind"].as_string()), " ",
                               about["namespace"].as_string(), "/", about["name"].as_string(), ": ",
                               (*event)["message"].as_string(), " (", time_of_event(*event), ")"),
                           {cat("see its log there; dibs why ", to_lower(about["kind"].as_string()),
                                "/", about["name"].as_string(), " -n ",
                                about["namespace"].as_string(), " tells the rest")}});
    }
  }

  /// Warnings that name the driver, of each reason the last; about objects that are still there.
  std::map<std::string, const Value*> failures() const {
    std::map<std::string, const Value*> last;
    for (const Value& event : world_.objects.events) {
      const std::string_view message = event["message"].as_string();
      // The scheduler names devices by their drivers, which have no part in it.
      if (event["reason"].as_string() == "FailedScheduling") continue;
      bool named = message.find(name_) != std::string_view::npos || is_its_call(event);
      for (const char* field : {"reportingComponent", "reportingController"}) {
        named = named || event[field].as_string().find(name_) != std::string_view::npos;
      }
      if (!named || !is_there(event)) continue;
      const Value*& known = last[event["reason"].str()];
      if (known == nullptr || time_of_event(*known) <= time_of_event(event)) known = &event;
    }
    return last;
  }

  /// An agent's word on what it asked drivers for, which names none: a pod has devices of this one
  /// alone.
  bool is_its_call(const Value& event) const {
    const auto reason = event["reason"].as_string();
    const Value& about = event["involvedObject"];
    if (!reason.ends_with("PrepareDynamicResources") &&
        !reason.ends_with("UnprepareDynamicResources"))
      return false;
    const Value* pod =
        find_object(world_.objects.pods, about["namespace"].as_string(), about["name"].as_string());
    if (pod == nullptr) return false;
    std::set<std::string> drivers;
    for (const std::string& name : claim_names(*pod, world_.release)) {
      const Value* claim = find_object(world_.objects.claims, about["namespace"].as_string(), name);
      if (claim == nullptr) continue;
      for (const Value& result : (*claim)["status"]["allocation"]["devices"]["results"].items()) {
        drivers.insert(result["driver"].str());
      }
    }
    return drivers.size() == 1 && drivers.contains(name_);
  }

  bool is_there(const Value& event) const {
    const Value& about = event["involvedObject"];
    const auto kind = about["kind"].as_string();
    const auto& list = kind == "Pod" ? world_.objects.pods : world_.objects.claims;
    if (kind != "Pod" && kind != "ResourceClaim") return true;
    const Value* found =
        find_object(list, about["namespace"].as_string(), about["name"].as_string());
    if (found == nullptr || (*found)["metadata"]["uid"] != about["uid"]) return false;
    // A pod that runs has got over it.
    return kind != "Pod" || !troubles_of(world_, *found).empty();
  }

  void tell_pools() {
    Value pools = Value::array();
    made_.page.gap();
    std::size_t shown = 0;
    for (const PoolView& pool : pools_) {
      pools.push(Value::object({{"pool", pool.name},
                                {"place", pool.place()},
                                {"generation", pool.generation},
                                {"slices", pool.slices.size()},
                                {"wantedSlices", pool.wanted},
                                {"devices", pool.devices}}));
      if (shown++ == kMostShown) {
        made_.page.line(0, cat(pools_.size() - kMostShown, " more pools: -o json has all of them"));
      }
      if (shown > kMostShown) continue;
      made_.page.line(0, cat("pool ", pool.name, " on ", pool.place(), ": ", pool.devices,
                             pool.devices == 1 ? " device" : " devices", " in ", pool.slices.size(),
                             " of ", pool.wanted, pool.wanted == 1 ? " slice" : " slices"));
    }
    if (claims_ > 0) {
      made_.page.line(0,
                      cat(claims_, claims_ == 1 ? " claim has" : " claims have", " devices of it"));
    }
    made_.document.set("pools", std::move(pools));
    made_.document.set("claims", claims_);
  }

  void tell_nodes() {
    std::vector<std::string> without;
    for (const Value& node : world_.objects.nodes) {
      const std::string name = node["metadata"]["name"].str();
      if (!here_.contains(name) && !csi_.contains(name)) without.push_back(name);
    }
    if (!csi_.empty()) {
      made_.page.line(
          0, cat("registered for volumes (CSINode) on ", some({csi_.begin(), csi_.end()})));
    }
    Value nodes = Value::array();
    for (const std::string& name : without) nodes.push(name);
    made_.document.set("nodesWithout", std::move(nodes));
    if (without.empty() || (pools_.empty() && csi_.empty()) || everywhere_) return;
    if (here_.empty() && csi_.empty()) return;  // its pools are of no single node
    made_.page.line(0, cat("nothing of it is on ", some(without)));
  }

  const WhyWorld& world_;
  std::string name_;
  std::vector<PoolView> pools_;
  std::size_t devices_ = 0;
  std::size_t claims_ = 0;
  bool everywhere_ = false;
  std::set<std::string> here_;
  std::set<std::string> csi_;
  std::set<std::string> orphans_;
  std::set<std::string> others_;
  std::vector<Trouble> troubles_;
  WhyStory made_;
};

}  // namespace

WhyStory tell_driver(const WhyWorld& world, const std::string& name) {
  return DriverStory(world, name).tell();
}

}  // namespace dibs::cli
