#include "server/flow_control.h"

#include <utility>

#include "api/kinds/flow/flow_defaults.h"
#include "base/strings.h"
#include "base/time.h"
#include "server/headed_exchange.h"
#include "server/stored.h"

namespace dibs::server {
namespace {

constexpr Duration kEvery = std::chrono::minutes(1);

std::vector<Value> values(const auto& objects) {
  std::vector<Value> out;
  for (const auto& [name, one] : objects) out.push_back(one.object);
  return out;
}

}  // namespace

std::unique_ptr<calls::Exchange> labelled(std::unique_ptr<calls::Exchange> exchange,
                                          const Fairness::Flow& flow) {
  // Of a server that does not serve the objects there is nothing to tell.
  if (flow.schema().uid.empty()) return exchange;
  return headed(std::move(exchange), {{"X-Kubernetes-Pf-Flowschema-Uid", flow.schema().uid},
                                      {"X-Kubernetes-Pf-Prioritylevel-Uid", flow.level().uid}});
}

FlowControl::FlowControl(runtime::Runtime& runtime, store::Store& store, ResourceTable& resources,
                         Fairness& fairness)
    : runtime_(runtime), store_(store), resources_(resources), fairness_(fairness), wakes_([this] {
        look(false);
      }) {
  wakes_.begin();
  look(true);
  schedule();
}

void FlowControl::schedule() {
  const MutexLock lock(mutex_);
  if (stopped_) return;
  timer_ = runtime_.timers.after(kEvery, [this] {
    look(true);
    schedule();
  });
}

void FlowControl::stop() {
  runtime::TimerId timer = 0;
  Objects schemas;
  Objects levels;
  wakes_.end();
  {
    const MutexLock lock(mutex_);
    if (std::exchange(stopped_, true)) return;
    timer = timer_;
    // Watches end without the lock that those who wake take.
    schemas = std::move(schemas_);
    levels = std::move(levels_);
  }
  runtime_.timers.cancel(timer);
}

void FlowControl::wake() {
  wakes_.wake([this](std::function<void()> task) { runtime_.executor.post(std::move(task)); });
}

bool FlowControl::catch_up(Objects& objects) {
  bool changed = false;
  objects.follower->catch_up(
      [&] {
        objects.all.clear();
        changed = true;
      },
      [&](const std::string& key, const store::Record* now) {
        changed = true;
        objects.all.erase(key);
        if (now == nullptr) return;
        auto object = decode_stored(*now);
        if (object.ok()) objects.all[key] = {std::move(object).value(), now->modified};
      });
  return changed;
}

void FlowControl::mend(const Resource& resource, const Objects& objects,
                       const std::vector<Value>& wanted) {
  for (const Value& one : wanted) {
    const std::string name = one["metadata"]["name"].str();
    const auto found = objects.all.find(name);
    Value next;
    if (found != objects.all.end()) {
      if (!found->second.object["metadata"].contains("deletionTimestamp"))
        next = api::flow_kept_as(found->second.object, one);
    } else {
      next = one;
      next.set("kind", resource.kind);
      next.set("apiVersion", resource.api_version());
      next.mut("metadata").set("uid", runtime::make_uuid(runtime_.random));
      next.mut("metadata").set("creationTimestamp", format_rfc3339(runtime_.clock.now()));
    }
    if (next.is_null()) continue;
    // Who was faster did the same, or the next look sees what he did.
    (void)store_
        .commit({{resource.key("", name), share(encode_stored(next)),
                  found == objects.all.end() ? 0 : found->second.modified}})
        .ok();
  }
}

void FlowControl::tell_dangling(const Resource& schemas) {
  for (const auto& [name, one] : schemas_.all) {
    const std::string level = one.object["spec"]["priorityLevelConfiguration"]["name"].str();
    const bool found = levels_.all.contains(level) || api::is_mandatory_flow(level);
    const std::string_view status = found ? "False" : "True";
    const std::string message =
        cat("This FlowSchema references the PriorityLevelConfiguration object named ",
            quoted(level), found ? " and it exists" : " but there is no such object");
    Value others = Value::array();
    Value known;
    for (const Value& condition : one.object["status"]["conditions"].items()) {
      if (condition["type"].as_string() == "Dangling") {
        known = condition;
      } else {
        others.push(condition);
      }
    }
    if (known["status"].as_string() == status && known["message"].as_string() == message) continue;
    others.push(Value::object({{"type", "Dangling"},
                               {"status", status},
                               {"lastTransitionTime", format_rfc3339(runtime_.clock.now())},
                               {"reason", found ? "Found" : "NotFound"},
                               {"message", message}}));
    Value next = one.object;
    next.set("status", Value::object({{"conditions", std::move(others)}}));
    // Who was faster is seen by the next look.
    (void)store_.commit({{schemas.key("", name), share(encode_stored(next)), one.modified}}).ok();
  }
}

void FlowControl::look(bool mends) {
  const auto set = resources_.get();
  const ResourcePtr schemas = set->find_plural(api::kFlowGroup, "flowschemas");
  const ResourcePtr levels = set->find_plural(api::kFlowGroup, "prioritylevelconfigurations");
  if (!schemas || !levels) return;
  const MutexLock lock(mutex_);
  if (stopped_) return;
  if (!schemas_.follower) {
    const auto ready = [this] { wake(); };
    schemas_.follower = std::make_unique<StoreFollower>(store_, schemas->storage_prefix, ready);
    levels_.follower = std::make_unique<StoreFollower>(store_, levels->storage_prefix, ready);
  }
  bool changed = catch_up(levels_);
  changed = catch_up(schemas_) || changed;
  if (mends) {
    mend(*levels, levels_, api::default_priority_levels());
    mend(*schemas, schemas_, api::default_flow_schemas());
    changed = catch_up(levels_) || changed;
    changed = catch_up(schemas_) || changed;
  }
  if (!changed) return;
  fairness_.configure(FlowTable(values(schemas_.all), values(levels_.all)));
  tell_dangling(*schemas);
}

}  // namespace dibs::server
