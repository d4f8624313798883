#include "node/pods/pod_events.h"

#include "node/pods/pod_spec.h"

namespace dibs::node {

void PodEvents::record(const json::Value& pod, std::string_view container, bool warning,
                       std::string reason, std::string note) {
  client::EventInput event;
  json::Value object = pod;
  if (object["kind"].as_string().empty()) object.set("kind", "Pod");
  if (object["apiVersion"].as_string().empty()) object.set("apiVersion", "v1");
  event.regarding = client::object_reference(object);
  // A later version of the same pod is the same object to whoever counts.
  event.regarding.erase("resourceVersion");
  if (!container.empty()) event.regarding.set("fieldPath", field_path(pod, container));
  event.warning = warning;
  event.reason = std::move(reason);
  event.note = std::move(note);
  recorder_.record(std::move(event));
}

}  // namespace dibs::node
