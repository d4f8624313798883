#pragma once
// Writes what the scheduler proposes into PodSchedulingContexts.
//
// One write per pod is under way at a time; a proposal that comes meanwhile is written after it,
// and the last one counts. Until the answer is there Devices takes the proposal for what stands. A
// context is created with its pod as owner, else updated. Where somebody else has written in
// between, which drivers do to its status all the time, the spec is applied: nobody else writes
// that. An answer that did not come tells nothing: the context is read, and written again if it has
// to be.
//
// Owner: the scheduler's serial executor; answers are posted there.

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "client/client.h"
#include "runtime/runtime.h"
#include "scheduler/devices.h"
#include "scheduler/negotiation.h"
#include "scheduler/pod.h"

namespace dibs::scheduler {

inline const client::Gvr kContexts = {"resource.k8s.io", "v1alpha2", "podschedulingcontexts"};

class ContextWriter {
 public:
  using Post = std::function<void(std::function<void()> task)>;
  /// "" for success, else what went wrong.
  using Done = std::function<void(const std::string& failure)>;

  ContextWriter(client::Client& client, runtime::Runtime& runtime, Post post, Devices& devices,
                int release);

  void write(const PodPtr& pod, Proposal proposal, Done done);
  /// The pod has a node: the talk is over.
  void remove(const std::string& pod_key);

 private:
  struct Job {
    PodPtr pod;
    Proposal wanted;
    std::vector<Done> waiting;
  };
  using JobPtr = std::shared_ptr<Job>;

  void send(const JobPtr& job);
  void create(const JobPtr& job);
  void update(const JobPtr& job, json::Value context);
  void apply(const JobPtr& job);
  /// Reads what stands, then writes again if that is not it.
  void look(const JobPtr& job);
  void answered(const JobPtr& job, const Proposal& sent, const Result<json::Value>& answer);
  void finish(const JobPtr& job, const std::string& failure);
  void call(client::Request request, std::function<void(Result<json::Value>)> then);

  client::Client& client_;
  runtime::Runtime& runtime_;
  Post post_;
  Devices& devices_;
  const int release_;
  std::unordered_map<std::string, JobPtr> jobs_;  // by pod
  std::set<std::string> removing_;                // uids of contexts
};

}  // namespace dibs::scheduler
