#include "scheduler/binding.h"

#include <algorithm>
#include <utility>

#include "api/kinds/resource/versions/model.h"
#include "base/log.h"
#include "base/strings.h"
#include "scheduler/binding_run.h"
#include "scheduler/plugins.h"

namespace dibs::scheduler {
namespace {

using client::PatchType;
using json::Value;

std::set<std::string> drivers_with_conditions(const Value& claim) {
  std::set<std::string> out;
  for (const Value& result : claim["status"]["allocation"]["devices"]["results"].items()) {
    if (!result["bindingConditions"].empty()) out.insert(result["driver"].str());
  }
  return out;
}

}  // namespace

client::WriteOptions status_write() {
  client::WriteOptions options;
  options.subresource = "status";
  options.field_manager = "dibs-scheduler";
  return options;
}

const client::Gvr& claims_of(const Value& claim) {
  return api::is_classic(claim) ? kClassicClaims : kClaims;
}

bool is_unknown(const Error& error) {
  switch (error.code()) {
    case Code::unavailable:
    case Code::timeout:
    case Code::server_timeout:
    case Code::internal:
    case Code::plain:
    case Code::too_many_requests:
      return true;
    default:
      return false;
  }
}

client::Request release_request(const std::string& claim_key, const Value& claim,
                                std::string_view pod_uid) {
  const auto [name_space, name] = client::split_key(claim_key);
  const Value patch = Value::object(
      {{"metadata", Value::object({{"uid", claim["metadata"]["uid"]}})},
       {"status",
        Value::object({{"reservedFor", Value::array({Value::object(
                                           {{"$patch", "delete"}, {"uid", pod_uid}})})}})}});
  return client::patch_request(claims_of(claim), name_space, name, PatchType::strategic, patch,
                               status_write());
}

Binder::Binder(client::Client& client, runtime::Runtime& runtime, Post post, Devices& devices,
               client::EventRecorder& recorder, Extenders* extenders, int release, Done done)
    : client_(client),
      runtime_(runtime),
      post_(std::move(post)),
      devices_(devices),
      recorder_(recorder),
      extenders_(extenders),
      release_(release),
      done_(std::move(done)) {}

void Binder::call(client::Request request, std::function<void(Result<Value>)> then) {
  client_.call(std::move(request), [post = post_, then = std::move(then)](Result<Value> answer) {
    post([then, answer = std::move(answer)] { then(answer); });
  });
}

void Binder::later(Duration delay, std::function<void()> then) {
  runtime_.timers.after(delay, [post = post_, then = std::move(then)] { post(then); });
}

void Binder::start(BindJob job) {
  auto run = std::make_shared<Run>();
  run->job = std::move(job);
  run->open = run->job.claims.size();
  run->tries.resize(run->open);
  run->wrote.resize(run->open);
  run->began = runtime_.clock.steady();
  ++running_;
  // Nothing is written for a gang that has failed already, by somebody who was quicker.
  if (const auto& together = run->job.together; together != nullptr && !together->failure.empty()) {
    return finish(run, together->failure);
  }
  if (run->open == 0) return prepared(run);
  for (std::size_t i = 0; i < run->job.claims.size(); ++i) write_claim(run, i);
}

void Binder::give_up(BindJob job, const std::string& failure) {
  auto run = std::make_shared<Run>();
  run->job = std::move(job);
  run->counted_claims = true;  // they were not begun
  ++running_;
  finish(run, failure);
}

void Binder::claim_done(const std::shared_ptr<Run>& run) {
  --run->open;
  if (run->job.together != nullptr) resume(*run->job.together);
  if (run->open > 0) {
    if (run->postponed == run->open) rest(*run);
    return;
  }
  if (!run->failure.empty()) return finish(run, run->failure);
  land(*run);
  write_status(run);
}

void Binder::land(Run& run) {
  if (run.landed) return;
  run.landed = true;
  // A claim that another pod of the group allocates is for that one to give up.
  for (const ClaimWrite& write : run.job.claims) {
    if (write.allocation.is_null()) continue;
    devices_.unreserve(write.flight);
    if (run.job.together != nullptr) run.job.together->allocating.erase(write.key);
  }
}

void Binder::write_status(const std::shared_ptr<Run>& run) {
  const BindJob& job = run->job;
  Value status;
  if (!job.node_allocatable.empty()) {
    status.set("nodeAllocatableResourceClaimStatuses", job.node_allocatable);
    run->counted = true;
  }
  if (!job.mappings.empty()) {
    std::string name;
    for (const ClaimWrite& write : job.claims) {
      if (!write.create.is_null()) name = client::split_key(write.key).second;
    }
    status.set("extendedResourceClaimStatus",
               Value::object({{"resourceClaimName", name}, {"requestMappings", job.mappings}}));
  }
  if (status.empty()) return await_conditions(run);
  const Value patch = Value::object(
      {{"metadata", Value::object({{"uid", job.pod->uid}})}, {"status", std::move(status)}});
  call(client::patch_request(kPods, job.pod->name_space, job.pod->name, PatchType::strategic, patch,
                             status_write()),
       [this, run](const Result<Value>& answer) {
         if (!answer.ok()) {
           return finish(run, cat(kPreBind, "update pod status: ", answer.error().message()));
         }
         await_conditions(run);
       });
}

void Binder::await_conditions(const std::shared_ptr<Run>& run) {
  if (run->over) return;
  const BindJob& job = run->job;
  const Time now = runtime_.clock.now();
  if (!run->waits_since) {
    run->waits_since = runtime_.clock.steady();
    for (const ClaimWrite& write : job.claims) {
      for (const auto& driver : drivers_with_conditions(devices_.claim(write.key)))
        run->conditional.insert(driver);
    }
  }
  bool ready = true;
  for (const ClaimWrite& write : job.claims) {
    const Value claim = devices_.claim(write.key);
    const BindingState state = binding_state(claim);
    if (!state.failure.empty()) return stop_waiting(run, "failure", state.failure);
    if (!claim["status"]["allocation"].is_object()) {
      return stop_waiting(run, "error", cat("claim ", write.key, " got deallocated elsewhere"));
    }
    if (state.ready) continue;
    ready = false;
    const Time end = allocated_at(claim) + job.binding_timeout;
    if (end <= now) {
      return stop_waiting(
          run, "timeout",
          cat("device binding timeout: claim=", claim["metadata"]["name"].as_string()));
    }
    if (waiting_[write.key].insert(run).second) {
      later(end - now, [this, run] { await_conditions(run); });
    }
  }
  if (!ready) {
    if (run->announced) return;
    run->announced = true;
    rest(*run);
    recorder_.record({.regarding = job.pod->object,
                      .reason = "BindingConditionsPending",
                      .action = "Scheduling",
                      .note = cat("waiting for binding conditions for device on node ", job.node)});
    return;
  }
  for (const ClaimWrite& write : job.claims) {
    const auto found = waiting_.find(write.key);
    if (found == waiting_.end()) continue;
    found->second.erase(run);
    if (found->second.empty()) waiting_.erase(found);
  }
  stop_waiting(run, "success", "");
}

void Binder::stop_waiting(const std::shared_ptr<Run>& run, const char* status,
                          const std::string& failure) {
  if (metrics_ != nullptr) {
    const std::string& profile = run->job.pod->shape->scheduler_name;
    for (const std::string& driver : std::exchange(run->conditional, {})) {
      metrics_->conditional.with({profile, driver, status}).add();
      metrics_->condition_seconds.with({profile, driver, status})
          .observe(runtime_.clock.steady() - *run->waits_since);
    }
  }
  if (!failure.empty()) return finish(run, cat(kPreBind, failure));
  count_claims(*run, "Success");
  prepared(run);
}

void Binder::count_claims(Run& run, const char* status) {
  if (metrics_ == nullptr || run.job.claims.empty()) return;
  if (std::exchange(run.counted_claims, true)) return;
  metrics_->plugin_seconds.with({plugin_name(Plugin::dynamic_resources), "PreBind", status})
      .observe(runtime_.clock.steady() - run.began);
}

void Binder::rest(Run& run) {
  if (run.resting) return;
  run.resting = true;
  --running_;
  if (rested_) rested_();
}

void Binder::go_on(Run& run) {
  if (!run.resting) return;
  run.resting = false;
  ++running_;
}

void Binder::fail_all(const std::shared_ptr<Together>& together, const std::string& failure) {
  together->failure = cat("failed to schedule other pod from a pod group: ", failure);
  for (const auto& [go, end] : std::exchange(together->arrived, {})) end(together->failure);
  for (const auto& end : std::exchange(together->on_failure, {})) end(together->failure);
  std::set<std::shared_ptr<Run>> runs;
  for (const auto& [claim, waiting] : waiting_) {
    for (const std::shared_ptr<Run>& run : waiting) {
      if (run->job.together == together) runs.insert(run);
    }
  }
  for (const std::shared_ptr<Run>& run : runs) {
    if (!run->over) finish(run, together->failure);
  }
  resume(*together);
}

void Binder::resume(Together& together) {
  const auto postponed = std::move(together.postponed);
  together.postponed.clear();
  for (const auto& go_on : postponed) go_on();
}

/// All that comes before the pod itself is written. Pods of a gang wait for each other here.
void Binder::prepared(const std::shared_ptr<Run>& run) {
  const std::shared_ptr<Together> together = run->job.together;
  if (together == nullptr || !together->all_or_none) return bind(run);
  if (!together->failure.empty()) return finish(run, together->failure);
  together->arrived.emplace_back([this, run] { bind(run); },
                                 [this, run](const std::string& failure) { finish(run, failure); });
  if (together->arrived.size() < together->expected) return rest(*run);
  const auto all = std::move(together->arrived);
  together->arrived.clear();
  together->all_or_none = false;  // they are on their way
  for (const auto& [go, end] : all) go();
}

void Binder::claim_changed(const std::string& key) {
  const auto found = waiting_.find(key);
  if (found == waiting_.end()) return;
  const std::set<std::shared_ptr<Run>> runs = found->second;
  for (const std::shared_ptr<Run>& run : runs) await_conditions(run);
}

void Binder::pod_gone(const std::string& key) {
  std::set<std::shared_ptr<Run>> runs;
  for (const auto& [claim, waiting] : waiting_) {
    for (const std::shared_ptr<Run>& run : waiting) {
      if (run->job.pod->key == key) runs.insert(run);
    }
  }
  for (const std::shared_ptr<Run>& run : runs) finish(run, "pod is gone");
}

void Binder::bind(const std::shared_ptr<Run>& run) {
  if (run->over) return;
  run->over = true;  // no condition counts any more
  go_on(*run);
  const Pod& pod = *run->job.pod;
  if (extenders_ == nullptr || !extenders_->bind_pod(pod)) return bind_here(run);
  extenders_->bind(pod, run->job.node, [this, run](const Result<bool>& bound) {
    if (!bound.ok()) return check_bound(run, bound.error(), "");
    if (!*bound) return bind_here(run);
    finish(run, "");
  });
}

void Binder::bind_here(const std::shared_ptr<Run>& run) {
  const Pod& pod = *run->job.pod;
  const Value body = Value::object(
      {{"apiVersion", "v1"},
       {"kind", "Binding"},
       {"metadata",
        Value::object({{"name", pod.name}, {"namespace", pod.name_space}, {"uid", pod.uid}})},
       {"target", Value::object({{"kind", "Node"}, {"name", run->job.node}})}});
  call(client::make_request("POST", client::path_of(kPods, pod.name_space, pod.name, "binding"),
                            body),
       [this, run](const Result<Value>& answer) {
         if (answer.ok()) return finish(run, "");
         check_bound(run, answer.error(), "running Bind plugin \"DefaultBinder\": ");
       });
}

void Binder::check_bound(const std::shared_ptr<Run>& run, const Error& error, const char* who) {
  const std::string failure = cat(who, error.message());
  if (!is_unknown(error)) return finish(run, failure);
  later(kLookAgain, [this, run, failure, who] {
    const Pod& pod = *run->job.pod;
    call(client::make_request("GET", client::path_of(kPods, pod.name_space, pod.name)),
         [this, run, failure, who](const Result<Value>& answer) {
           if (!answer.ok() && is_unknown(answer.error())) {
             return check_bound(run, answer.error(), who);
           }
           const bool bound = answer.ok() &&
                              (*answer)["metadata"]["uid"].as_string() == run->job.pod->uid &&
                              (*answer)["spec"]["nodeName"].as_string() == run->job.node;
           finish(run, bound ? "" : failure);
         });
  });
}

void Binder::finish(const std::shared_ptr<Run>& run, const std::string& failure) {
  run->over = true;
  if (const std::shared_ptr<Together> together = run->job.together;
      together != nullptr && together->all_or_none && !failure.empty() &&
      together->failure.empty()) {
    fail_all(together, failure);
  }
  for (const ClaimWrite& write : run->job.claims) {
    const auto found = waiting_.find(write.key);
    if (found == waiting_.end()) continue;
    found->second.erase(run);
    if (found->second.empty()) waiting_.erase(found);
  }
  if (!failure.empty()) {
    land(*run);
    count_claims(*run, "Error");
  }
  if (run->job.together != nullptr && !failure.empty()) resume(*run->job.together);
  const auto end = [this, run, failure] {
    if (!run->resting) --running_;
    done_(run->job, failure);
  };
  const Pod& pod = *run->job.pod;
  const bool wrote = std::find(run->wrote.begin(), run->wrote.end(), true) != run->wrote.end();
  if (failure.empty() || (!wrote && !run->counted)) return end();
  // Where another scheduler has bound the pod, the reservation is needed.
  call(client::make_request("GET", client::path_of(kPods, pod.name_space, pod.name)),
       [this, run, end](const Result<Value>& answer) {
         const bool bound = answer.ok() &&
                            (*answer)["metadata"]["uid"].as_string() == run->job.pod->uid &&
                            !(*answer)["spec"]["nodeName"].as_string().empty();
         const bool unknown = !answer.ok() && is_unknown(answer.error());
         if (!bound && !unknown) give_back(*run);
         end();
       });
}

void Binder::give_back(const Run& run) {
  const Pod& pod = *run.job.pod;
  if (run.counted) {
    // Another node may have other devices; an empty list is what takes it away.
    const Value patch = Value::object(
        {{"metadata", Value::object({{"uid", pod.uid}})},
         {"status", Value::object({{"nodeAllocatableResourceClaimStatuses", Value::array()}})}});
    call(client::patch_request(kPods, pod.name_space, pod.name, PatchType::merge, patch,
                               status_write()),
         [](const Result<Value>&) {});
  }
  for (std::size_t i = 0; i < run.job.claims.size(); ++i) {
    const ClaimWrite& write = run.job.claims[i];
    // A claim that was created is removed by the next attempt: it needs the finalizer taken off
    // first.
    if (!run.wrote[i] || write.key.empty() || !write.create.is_null()) continue;
    const Value claim = devices_.claim(write.key);
    // What is reserved for a group stays: its other pods may be about to use it.
    if (!write.consumer.is_null() || !is_reserved_for(claim, run.job.pod->uid)) continue;
    call(release_request(write.key, claim, run.job.pod->uid), [this, key = write.key](
                                                                  const Result<Value>& answer) {
      if (answer.ok()) {
        devices_.put_claim(*answer);
      } else if (answer.error().code() != Code::not_found) {
        log::warn("reservation cannot be given back", {{"claim", key}, {"error", answer.error()}});
      }
    });
  }
}

}  // namespace dibs::scheduler
