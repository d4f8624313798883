#include "proxy/far_backends.h"

#include "base/log.h"
#include "base/strings.h"

namespace dibs::proxy {
namespace {

const client::Gvr kPods{"", "v1", "pods"};

}  // namespace

bool FarBackends::leave_out(ServiceView& service, const Machine& machine) {
  bool any = false;
  for (ServicePort& port : service.ports) {
    const auto gone = std::erase_if(
        port.backends, [&](const Backend& backend) { return is_far(backend, machine); });
    any = any || gone > 0;
  }
  return any;
}

bool FarBackends::is_far(const Backend& backend, const Machine& machine) {
  // One that is no pod's is wherever who wrote it says.
  if (backend.pod.empty() || machine.nodes.contains(backend.node)) return false;
  const auto away = applier_.leads_away(backend.address);
  if (away.ok() && !*away) {
    told_.erase(backend.address);
    return false;
  }
  // The machine's own network may well be behind the default route.
  if (away.ok() && is_on_host_network(backend)) return false;
  if (told_.insert(backend.address).second) {
    log::warn(away.ok()
                  ? "a Service's backend is left out: only the default route leads there, this "
                    "machine needs a route to the pods of that node"
                  : away.error().message(),
              {{"address", backend.address}, {"pod", backend.pod}, {"node", backend.node}});
  }
  return true;
}

bool FarBackends::is_on_host_network(const Backend& backend) {
  if (const auto known = on_host_network_.find(backend.pod_uid); known != on_host_network_.end())
    return known->second;
  const auto slash = backend.pod.find('/');
  // A list, since who programs Services may list pods and not get them.
  client::ListOptions one;
  one.field_selector = cat("metadata.name=", backend.pod.substr(slash + 1));
  const auto found = api_.list(kPods, backend.pod.substr(0, slash), one);
  if (!found.ok() || found->items.empty()) return false;
  const json::Value& pod = found->items.front();
  constexpr std::size_t kMost = 10'000;
  if (on_host_network_.size() >= kMost) on_host_network_.clear();
  const bool own = client::uid_of(pod) == backend.pod_uid && pod["spec"]["hostNetwork"].as_bool();
  on_host_network_[backend.pod_uid] = own;
  return own;
}

}  // namespace dibs::proxy
