#include "scheduler/context_writer.h"

#include "base/log.h"
#include "base/strings.h"
#include "scheduler/binding.h"

namespace dibs::scheduler {
namespace {

using json::Value;

constexpr Duration kLookAgain = std::chrono::seconds(1);

client::WriteOptions spec_write() {
  client::WriteOptions options;
  options.field_manager = "kube-scheduler";
  return options;
}

}  // namespace

ContextWriter::ContextWriter(client::Client& client, runtime::Runtime& runtime, Post post,
                             Devices& devices, int release)
    : client_(client),
      runtime_(runtime),
      post_(std::move(post)),
      devices_(devices),
      release_(release) {}

void ContextWriter::call(client::Request request, std::function<void(Result<Value>)> then) {
  client_.call(std::move(request), [post = post_, then = std::move(then)](Result<Value> answer) {
    post([then, answer = std::move(answer)] { then(answer); });
  });
}

void ContextWriter::write(const PodPtr& pod, Proposal proposal, Done done) {
  JobPtr& job = jobs_[pod->key];
  if (job != nullptr && job->pod->uid == pod->uid) {
    job->wanted = std::move(proposal);
    job->waiting.push_back(std::move(done));
    devices_.assume_proposal(pod->key, job->wanted);
    return;
  }
  job = std::make_shared<Job>();
  job->pod = pod;
  job->wanted = std::move(proposal);
  job->waiting.push_back(std::move(done));
  devices_.assume_proposal(pod->key, job->wanted);
  send(job);
}

void ContextWriter::send(const JobPtr& job) {
  const Value context = devices_.context(job->pod->key);
  if (context.is_null()) return create(job);
  if (!is_owned_by(context, job->pod->uid)) {
    return finish(job, cat("PodSchedulingContext object with UID ", client::uid_of(context),
                           " is not owned by Pod ", job->pod->key));
  }
  if (Proposal::read(context) == job->wanted) return finish(job, "");
  update(job, context);
}

void ContextWriter::create(const JobPtr& job) {
  const Proposal sent = job->wanted;
  call(client::create_request(kContexts, job->pod->name_space,
                              make_context(job->pod->object, sent, release_), spec_write()),
       [this, job, sent](const Result<Value>& answer) {
         if (!answer.ok() && answer.error().code() == Code::already_exists) return look(job);
         answered(job, sent, answer);
       });
}

void ContextWriter::update(const JobPtr& job, Value context) {
  const Proposal sent = job->wanted;
  context.set("spec", sent.to_json());
  call(client::update_request(kContexts, job->pod->name_space, context, spec_write()),
       [this, job, sent](const Result<Value>& answer) {
         if (!answer.ok() && answer.error().code() == Code::conflict) return apply(job);
         answered(job, sent, answer);
       });
}

void ContextWriter::apply(const JobPtr& job) {
  const Value context = devices_.context(job->pod->key);
  if (context.is_null()) return look(job);
  const Proposal sent = job->wanted;
  Value spec = sent.to_json();
  // Said even if empty: what is left out would stay.
  spec.set("selectedNode", sent.selected_node);
  // The uid keeps it from making a context that belongs to nobody.
  const Value body = Value::object({{"apiVersion", "resource.k8s.io/v1alpha2"},
                                    {"kind", "PodSchedulingContext"},
                                    {"metadata", Value::object({{"name", job->pod->name},
                                                                {"namespace", job->pod->name_space},
                                                                {"uid", client::uid_of(context)}})},
                                    {"spec", spec}});
  client::WriteOptions options = spec_write();
  options.force = true;
  call(client::patch_request(kContexts, job->pod->name_space, job->pod->name,
                             client::PatchType::apply, body, options),
       [this, job, sent](const Result<Value>& answer) {
         if (!answer.ok() && answer.error().code() == Code::conflict) return look(job);
         answered(job, sent, answer);
       });
}

void ContextWriter::look(const JobPtr& job) {
  call(
      client::make_request("GET", client::path_of(kContexts, job->pod->name_space, job->pod->name)),
      [this, job](const Result<Value>& answer) {
        if (answer.ok()) {
          devices_.put_context(*answer);
        } else if (answer.error().code() == Code::not_found) {
          devices_.remove_context(devices_.context(job->pod->key));
        } else {
          return answered(job, job->wanted, answer);
        }
        send(job);
      });
}

void ContextWriter::answered(const JobPtr& job, const Proposal& sent, const Result<Value>& answer) {
  if (answer.ok()) {
    devices_.put_context(*answer);
    // Another proposal may have come in the meantime.
    if (sent == job->wanted) return finish(job, "");
    return send(job);
  }
  if (answer.error().code() == Code::not_found && !devices_.context(job->pod->key).is_null()) {
    return look(job);  // the context has gone
  }
  if (!is_unknown(answer.error())) return finish(job, answer.error().message());
  runtime_.timers.after(kLookAgain,
                        [post = post_, this, job] { post([this, job] { look(job); }); });
}

void ContextWriter::finish(const JobPtr& job, const std::string& failure) {
  const auto mine = jobs_.find(job->pod->key);
  if (mine != jobs_.end() && mine->second == job) {
    jobs_.erase(mine);
    devices_.settle_proposal(job->pod->key);
  }
  for (const Done& done : job->waiting) done(failure);
}

void ContextWriter::remove(const std::string& pod_key) {
  const Value context = devices_.context(pod_key);
  const std::string uid(client::uid_of(context));
  if (context.is_null() || !removing_.insert(uid).second) return;
  client::DeleteOptions options;
  options.uid = uid;
  call(client::delete_request(kContexts, client::namespace_of(context), client::name_of(context),
                              options),
       [this, pod_key, uid](const Result<Value>& answer) {
         removing_.erase(uid);
         if (answer.ok() || answer.error().code() == Code::not_found) return;
         // It goes with its pod.
         log::warn("context cannot be removed", {{"pod", pod_key}, {"error", answer.error()}});
       });
}

}  // namespace dibs::scheduler
