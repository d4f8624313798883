// EndpointSlices that say what the Endpoints of a Service without selector say: those are written
// by people and by programs that know of nothing newer, and who routes reads slices alone.
#include <map>

#include "base/strings.h"
#include "controllers/controllers.h"
#include "controllers/endpoints/endpoint_objects.h"
#include "controllers/endpoints/slice_keeper.h"
#include "controllers/endpoints/subsets.h"
#include "controllers/workload_objects.h"

namespace dibs::controllers {
namespace {

constexpr const char* kMirror = "endpointslicemirroring-controller.k8s.io";
constexpr const char* kSkipMirror = "endpointslice.kubernetes.io/skip-mirror";
constexpr const char* kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";
constexpr const char* kComponent = "endpoint-slice-mirroring-controller";
// Of one subset, which becomes one slice.
constexpr std::size_t kCapacity = 1000;

bool is_mirrored(const Value& endpoints) {
  return label_of(endpoints, kSkipMirror) != "true" &&
         endpoints["metadata"]["annotations"][kLeaderRecord].is_null();
}

Value endpoint_of_address(const Value& address, const std::string& ip, bool ready) {
  Value out = Value::object(
      {{"addresses", Value::array({ip})}, {"conditions", Value::object({{"ready", ready}})}});
  for (const char* field : {"hostname", "nodeName", "targetRef"})
    if (!address[field].is_null()) out.set(field, address[field]);
  return out;
}

Value slice_ports(const Value& ports) {
  Value out = Value::array();
  for (const Value& port : ports.items()) {
    Value one = port;
    one.set("name", port["name"].as_string());
    out.push(std::move(one));
  }
  return out;
}

struct MirrorPlan {
  SliceWrites writes;
  std::size_t invalid = 0;
  std::size_t skipped = 0;  // beyond what a slice holds
};

/// What each slice must hold, by address type and ports.
std::map<std::string, Value> wanted_slices(const Value& endpoints, const Value& metadata_of,
                                           MirrorPlan& plan) {
  std::map<std::string, Value> out;
  const Value subsets = packed_subsets(endpoints["subsets"]);
  for (const Value& subset : subsets.items()) {
    const Value ports = slice_ports(subset["ports"]);
    std::size_t added = 0;
    for (const bool ready : {true, false}) {
      for (const Value& address : subset[ready ? "addresses" : "notReadyAddresses"].items()) {
        const auto ip = canonical_ip(address["ip"].as_string());
        if (!ip) {
          ++plan.invalid;
          continue;
        }
        if (added++ >= kCapacity) {
          ++plan.skipped;
          continue;
        }
        const char* type = ip->find(':') == std::string::npos ? "IPv4" : "IPv6";
        Value& slice = out[cat(type, ports_key(ports))];
        if (slice.is_null()) {
          slice = new_slice(endpoints, type, metadata_of["labels"], ports);
          if (!metadata_of["annotations"].empty())
            slice.mut("metadata").set("annotations", metadata_of["annotations"]);
        }
        slice.mut("endpoints").push(endpoint_of_address(address, *ip, ready));
      }
    }
  }
  return out;
}

bool says_the_same(const Value& slice, const Value& wanted) {
  const auto endpoints = [](const Value& of) {
    std::map<std::string, Value> out;
    for (const Value& one : of["endpoints"].items()) out[endpoint_key(one)] = one;
    return out;
  };
  const Value& is = slice["metadata"];
  const Value& must = wanted["metadata"];
  return is["labels"] == must["labels"] &&
         labels_without(is["annotations"], {}) == labels_without(must["annotations"], {}) &&
         is["ownerReferences"][0]["uid"] == must["ownerReferences"][0]["uid"] &&
         endpoints(slice) == endpoints(wanted);
}

MirrorPlan plan_mirror(const Value& endpoints, const std::vector<Value>& slices) {
  Value labels = labels_without(endpoints["metadata"]["labels"], {});
  labels.set(kServiceNameLabel, name_of(endpoints));
  labels.set(kSliceManagerLabel, kMirror);
  const Value metadata =
      Value::object({{"labels", std::move(labels)},
                     {"annotations", labels_without(endpoints["metadata"]["annotations"],
                                                    {kTriggerTime, kLastApplied})}});
  MirrorPlan plan;
  auto wanted = wanted_slices(endpoints, metadata, plan);
  for (const Value& slice : slices) {
    const auto found =
        wanted.find(cat(slice["addressType"].as_string(), ports_key(slice["ports"])));
    if (found == wanted.end()) {
      plan.writes.remove.push_back(slice);
      continue;
    }
    if (!says_the_same(slice, found->second)) {
      Value next = std::move(found->second);
      Value& meta = next.mut("metadata");
      meta.erase("generateName");
      meta.set("name", slice["metadata"]["name"]);
      meta.set("resourceVersion", slice["metadata"]["resourceVersion"]);
      plan.writes.update.push_back(std::move(next));
    }
    wanted.erase(found);
  }
  for (auto& [key, slice] : wanted) plan.writes.create.push_back(std::move(slice));
  plan.writes.reuse_removed(uid_of(endpoints));
  return plan;
}

class SliceMirror : public Controller {
 public:
  explicit SliceMirror(Environment& environment)
      : environment_(environment),
        endpoints_(environment.informers.of(kEndpointsResource)),
        services_(environment.informers.of(kServiceResource)),
        loop_(environment, "endpoint-slice-mirroring",
              [this](const std::string& key) { return reconcile(key); }),
        slices_(environment, loop_, kMirror) {
    loop_.follow(endpoints_, [this](const Value& endpoints) {
      if (is_mirrored(endpoints)) loop_.add(client::key_of(endpoints));
    });
    const auto seen = [this](const Value& service) {
      if (service["spec"]["selector"].empty()) loop_.add(client::key_of(service));
    };
    services_.add_handler({.added = [seen](const Value& service, bool) { seen(service); },
                           .updated =
                               [seen](const Value& before, const Value& after) {
                                 if (before["spec"]["selector"].empty() ==
                                     after["spec"]["selector"].empty())
                                   return;
                                 seen(before);
                                 seen(after);
                               },
                           .removed = seen});
  }

  void stop() override { loop_.stop(); }

 private:
  Result<WorkOutcome> reconcile(const std::string& key) {
    const auto slices = slices_.slices_of(key);
    if (!slices) return WorkOutcome::again_after(SliceKeeper::kLookAgain);
    const auto endpoints = endpoints_.get(key);
    const auto service = services_.get(key);
    const bool mirrored =
        endpoints && is_mirrored(*endpoints) && service && (*service)["spec"]["selector"].empty();
    if (!mirrored) {
      SliceWrites writes;
      writes.remove = *slices;
      DIBS_CHECK(slices_.write(key, writes, false));
      if (writes.empty()) slices_.forget(key);
      return done();
    }
    const MirrorPlan plan = plan_mirror(*endpoints, *slices);
    tell_skipped(*endpoints, plan);
    DIBS_CHECK(slices_.write(key, plan.writes, !is_deleting(*endpoints)));
    return done();
  }

  void tell_skipped(const Value& endpoints, const MirrorPlan& plan) {
    if (plan.invalid > 0) {
      environment_.events.event(
          kComponent, endpoints, true, "InvalidIPAddress",
          cat("Skipped ", plan.invalid, " invalid IP addresses when mirroring to EndpointSlices"));
    }
    if (plan.skipped > 0) {
      environment_.events.event(
          kComponent, endpoints, true, "TooManyAddressesToMirror",
          cat("A max of ", kCapacity,
              " addresses can be mirrored to EndpointSlices per Endpoints subset. ",
              plan.skipped + plan.invalid, " addresses were skipped"));
    }
  }

  Environment& environment_;
  client::Informer& endpoints_;
  client::Informer& services_;
  Reconciler loop_;
  SliceKeeper slices_;
};

}  // namespace

ControllerPtr make_slice_mirroring_controller(Environment& environment) {
  return std::make_unique<SliceMirror>(environment);
}

}  // namespace dibs::controllers
