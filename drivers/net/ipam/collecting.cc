#include "drivers/net/ipam/collecting.h"

#include <algorithm>

#include "base/log.h"
#include "base/strings.h"

namespace dibs::drivers::net {
namespace {

using json::Value;

constexpr std::size_t kMostComplaints = 4096;

void keep(Value& to, const Value& from, std::initializer_list<const char*> members) {
  for (const char* member : members) {
    if (from.contains(member)) to.set(member, from[member]);
  }
}

Time time_of(const Value& value, Time fallback) {
  const auto parsed = parse_rfc3339(value.as_string());
  return parsed ? *parsed : fallback;
}

}  // namespace

Value pod_kept(const Value& pod) {
  Value out = Value::object({{"apiVersion", "v1"}, {"kind", "Pod"}});
  keep(out.mut("metadata"), pod["metadata"],
       {"name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp",
        "ownerReferences"});
  for (const auto& [key, value] : pod["metadata"]["annotations"].members()) {
    if (key.starts_with("ipam.spidernet.io/")) {
      out.mut("metadata").mut("annotations").set(key, value);
    }
  }
  for (const char* key : {"v1.multus-cni.io/default-network", "k8s.v1.cni.cncf.io/networks"}) {
    const Value& value = pod["metadata"]["annotations"][key];
    if (value.is_string()) out.mut("metadata").mut("annotations").set(key, value);
  }
  keep(out.mut("spec"), pod["spec"],
       {"restartPolicy", "hostNetwork", "terminationGracePeriodSeconds"});
  keep(out.mut("status"), pod["status"], {"phase", "reason"});
  const auto phase = pod["status"]["phase"].as_string();
  if (phase == "Succeeded" || phase == "Failed") {
    keep(out.mut("status"), pod["status"], {"containerStatuses"});
  }
  return out;
}

Time end_of_use(const Value& pod, Duration delay) {
  Time last = time_of(pod["metadata"]["creationTimestamp"], Time{});
  for (const auto& container : pod["status"]["containerStatuses"].items()) {
    last = std::max(last, time_of(container["state"]["terminated"]["finishedAt"], last));
  }
  const auto grace = std::chrono::seconds(pod["spec"]["terminationGracePeriodSeconds"].as_int());
  return last + grace + delay;
}

client::WorkOutcome outcome_of(const Result<>& result, std::string_view what) {
  if (result) return client::WorkOutcome::done();
  const Code code = result.error().code();
  if (code != Code::conflict && code != Code::unavailable) {
    log::warn("not collected yet", {{"what", what}, {"error", result.error().message()}});
  }
  return client::WorkOutcome::retry();
}

Value without_finalizer(const Value& object) {
  Value out = object;
  Value kept = Value::array();
  for (const auto& finalizer : object["metadata"]["finalizers"].items()) {
    if (finalizer.as_string() != kFinalizer) kept.push(finalizer);
  }
  out.mut("metadata").set("finalizers", std::move(kept));
  return out;
}

void Complaints::tell(const Value& object, std::string_view reason, const std::string& fault) {
  const std::string uid(client::uid_of(object));
  if (fault.empty()) {
    told_.erase(uid);
    return;
  }
  if (told_.size() >= kMostComplaints) told_.clear();
  std::string& told = told_[uid];
  if (told == fault) return;
  told = fault;
  client::EventInput event;
  event.regarding = object;
  event.warning = true;
  event.reason = reason;
  event.action = "Judging";
  event.note = fault;
  events_.record(std::move(event));
}

}  // namespace dibs::drivers::net
