#include "scheduler/volume_binding.h"

#include "api/volumes/matching.h"
#include "api/volumes/volumes.h"
#include "base/strings.h"

namespace dibs::scheduler {
namespace {

using client::name_of;
using json::Value;

client::WriteOptions writing() {
  client::WriteOptions options;
  options.field_manager = "dibs-scheduler";
  return options;
}

/// The binder has done its last write, too: a node refuses a claim that is not Bound.
bool is_usable(const Value& claim) {
  return api::is_binding_complete(claim) && claim["status"]["phase"].as_string() == "Bound";
}

}  // namespace

struct VolumeBinder::Run {
  PodPtr pod;
  std::string node;
  VolumePlan plan;
  Done done;
  std::size_t open = 0;  // writes without an answer
  std::string failure;   // of a write
  bool over = false;
};

VolumeBinder::VolumeBinder(client::Client& client, runtime::Runtime& runtime, Post post,
                           ClusterState& state)
    : client_(client), runtime_(runtime), post_(std::move(post)), state_(state) {}

void VolumeBinder::start(const PodPtr& pod, const std::string& node, VolumePlan plan,
                         Duration timeout, Done done) {
  auto run = std::make_shared<Run>();
  run->pod = pod;
  run->node = node;
  run->plan = std::move(plan);
  run->done = std::move(done);
  state_.volumes().reserve(run->plan);
  runs_.insert(run);
  std::vector<client::Request> requests;
  for (const VolumePlan::Binding& one : run->plan.bindings)
    requests.push_back(client::update_request(kVolumes, "", one.volume, writing()));
  for (const Value& claim : run->plan.provisions) {
    requests.push_back(
        client::update_request(kVolumeClaims, client::namespace_of(claim), claim, writing()));
  }
  run->open = requests.size();
  for (client::Request& request : requests) {
    client_.call(std::move(request), [this, post = post_, run](const Result<Value>& answer) {
      post([this, run, answer] { written(run, answer); });
    });
  }
  runtime_.timers.after(timeout, [this, post = post_, run] {
    post([this, run] {
      finish(run, cat(kVolumePreBind, "binding volumes: context deadline exceeded"));
    });
  });
}

void VolumeBinder::written(const std::shared_ptr<Run>& run, const Result<Value>& answer) {
  --run->open;
  if (!answer.ok()) {
    // One that arrived all the same is found by the next attempt.
    run->failure = cat(kVolumePreBind, answer.error().message());
  } else if ((*answer)["kind"].as_string() == "PersistentVolume") {
    state_.volumes().put_volume(*answer);
  } else {
    state_.volumes().put_claim(*answer);
  }
  look(run);
}

void VolumeBinder::changed() {
  const std::set<std::shared_ptr<Run>> runs = runs_;
  for (const std::shared_ptr<Run>& run : runs) look(run);
}

void VolumeBinder::pod_gone(const std::string& key) {
  const std::set<std::shared_ptr<Run>> runs = runs_;
  for (const std::shared_ptr<Run>& run : runs)
    if (run->pod->key == key) finish(run, "pod is gone");
}

void VolumeBinder::end(const Pod& pod, const std::string& failure) {
  const std::set<std::shared_ptr<Run>> runs = runs_;
  for (const std::shared_ptr<Run>& run : runs)
    if (run->pod->uid == pod.uid) finish(run, failure);
}

void VolumeBinder::look(const std::shared_ptr<Run>& run) {
  if (run->over || run->open > 0) return;
  if (!run->failure.empty()) return finish(run, run->failure);
  bool bound = false;
  const std::string failure = judge(*run, bound);
  if (!failure.empty()) return finish(run, cat(kVolumePreBind, "binding volumes: ", failure));
  if (bound) finish(run, "");
}

std::string VolumeBinder::judge(const Run& run, bool& bound) const {
  const Volumes& volumes = state_.volumes();
  const NodeInfo* node = state_.find(run.node);
  if (node == nullptr) return cat("failed to get node ", quoted(run.node), ": not found");
  bool all = true;
  const auto elsewhere = [&](const Value& volume) {
    return cat("pv ", quoted(name_of(volume)), " node affinity doesn't match node ",
               quoted(run.node));
  };
  for (const VolumePlan::Binding& one : run.plan.bindings) {
    const Value& volume = volumes.volume(name_of(one.volume));
    const Value& claim = volumes.claim(client::key_of(one.claim));
    if (volume.is_null() || claim.is_null())
      return cat("failed to check binding: ", name_of(volume.is_null() ? one.volume : one.claim),
                 " not found");
    if (!api::volume_reaches(volume, node->object)) return elsewhere(volume);
    if (volume["spec"]["claimRef"]["uid"].as_string().empty())
      return cat("ClaimRef got reset for pv ", quoted(name_of(volume)));
    all = all && is_usable(claim);
  }
  for (const Value& wanted : run.plan.provisions) {
    const Value& claim = volumes.claim(client::key_of(wanted));
    if (claim.is_null())
      return cat("failed to check provisioning pvc: ", name_of(wanted), " not found");
    // Whoever fails to provision there takes it away.
    if (api::annotation_of(claim, api::kSelectedNode).as_string() != run.node)
      return cat("provisioning failed for PVC ", quoted(name_of(claim)));
    const std::string_view name = claim["spec"]["volumeName"].as_string();
    const Value& volume = volumes.volume(name);
    if (!volume.is_null() && !api::volume_reaches(volume, node->object)) return elsewhere(volume);
    all = all && !volume.is_null() && is_usable(claim);
  }
  bound = all;
  return {};
}

void VolumeBinder::finish(const std::shared_ptr<Run>& run, const std::string& failure) {
  if (run->over) return;
  run->over = true;
  runs_.erase(run);
  state_.volumes().release(run->plan);
  run->done(failure);
}

}  // namespace dibs::scheduler
