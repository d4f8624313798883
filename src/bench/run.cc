#include "bench/run.h"

#include <atomic>
#include <set>
#include <thread>

#include "api/schema/features.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "bench/cluster.h"
#include "bench/load.h"
#include "bench/objects.h"
#include "runtime/files.h"

namespace dibs::bench {
namespace {

using json::Value;

constexpr Duration kPodsDeadline = std::chrono::minutes(2);

constexpr std::string_view kPlainNode = R"(
apiVersion: v1
kind: Node
metadata:
  generateName: scheduler-perf-
spec: {}
status:
  capacity: {pods: "110", cpu: "4", memory: 32Gi}
  conditions: [{status: "True", type: Ready}]
)";

constexpr std::string_view kPlainPod = R"(
apiVersion: v1
kind: Pod
metadata:
  generateName: pod-
spec:
  containers:
  - name: pause
    image: registry.k8s.io/pause:3.10.1
    ports: [{containerPort: 80}]
    resources:
      requests: {cpu: 100m, memory: 500Mi}
)";

/// Gates of schedulers that need no switch here.
const std::set<std::string> kNoSwitch = {"SchedulerQueueingHints"};

Result<std::string> gates_text(const Workload& workload, const std::string& release) {
  DIBS_TRY(const api::Features features, api::Features::parse(release.empty() ? "1.37" : release));
  std::set<std::string> known;
  for (const auto& gate : features.all()) known.insert(gate.name);
  std::string out;
  for (const auto& [name, on] : workload.gates) {
    if (kNoSwitch.contains(name)) continue;
    if (!known.contains(name)) {
      if (!on) continue;
      return Error::not_found(cat("feature gate ", name, " is unknown"));
    }
    append(out, out.empty() ? "" : ",", name, "=", on);
  }
  return out;
}

class Run {
 public:
  Run(const Workload& workload, const BenchRunOptions& options)
      : workload_(workload), options_(options) {}

  Result<BenchMeasured> all() {
    BenchClusterOptions wanted;
    wanted.release = options_.release;
    wanted.store = options_.store;
    wanted.etcd_endpoints = options_.etcd_endpoints;
    wanted.all_controllers = options_.all_controllers;
    wanted.kubeconfig = options_.kubeconfig;
    DIBS_TRY(wanted.feature_gates, gates_text(workload_, options_.release));
    if (!workload_.scheduler_config.empty()) {
      if (!options_.kubeconfig.empty()) {
        return Error::not_found("the scheduler that runs has a configuration of its own");
      }
      DIBS_TRY(const std::string text,
               runtime::system_files().read(cat(options_.folder, "/", workload_.scheduler_config)));
      DIBS_TRY(const api::Features gates,
               api::Features::parse(
                   wanted.release.empty() ? api::known_releases().back() : wanted.release,
                   wanted.feature_gates));
      DIBS_TRY(wanted.configuration, scheduler::Configuration::parse(text, gates));
    }
    wanted.attempt = [this](Duration took) {
      if (!measuring_) return;
      MutexLock lock(mutex_);
      attempt_seconds_.push_back(std::chrono::duration<double>(took).count());
    };
    DIBS_TRY(cluster_, BenchCluster::start(wanted));
    objects_ = std::make_unique<BenchObjects>(*cluster_, options_.folder, options_.window);
    follower_ = std::make_unique<PodFollower>(cluster_->client(), cluster_->runtime());
    for (const WorkloadOp& op : workload_.ops) {
      auto done = perform(op);
      if (!done.ok()) {
        finish();
        return done.error().code() == Code::not_found ? done.error() : done.error().within(op.code);
      }
    }
    finish();
    return std::move(measured_);
  }

 private:
  Duration now() const { return cluster_->runtime().clock.steady(); }
  static double seconds(Duration duration) {
    return std::chrono::duration<double>(duration).count();
  }

  void finish() {
    churning_ = false;
    if (churn_.joinable()) churn_.join();
    measured_.megabytes = resident_megabytes();
    follower_.reset();
    cluster_.reset();
    MutexLock lock(mutex_);
    measured_.attempt_seconds = std::move(attempt_seconds_);
  }

  Result<> perform(const WorkloadOp& op) {
    const Value& f = op.fields;
    const std::string name_space = f["namespace"].str();
    const auto count = static_cast<std::size_t>(f["count"].as_int(1));
    if (op.code == "createNodes") {
      const std::string path = f["nodeTemplatePath"].str();
      DIBS_TRY(const Bodies bodies,
               path.empty() ? BenchObjects::fill_text(kPlainNode, op.template_params, count)
                            : objects_->fill(path, op.template_params, count));
      DIBS_CHECK(objects_->create(bodies, count, ""));
      return objects_->open_nodes();
    }
    if (op.code == "createAny" || op.code == "createResourceClaims" ||
        op.code == "createPodGroups") {
      DIBS_CHECK(objects_->make_namespace(name_space));
      DIBS_TRY(const Bodies bodies,
               objects_->fill(f["templatePath"].str(), op.template_params, count));
      if (measuring_) measured_.objects += count;
      return objects_->create(bodies, count, name_space);
    }
    if (op.code == "createResourceDriver") {
      std::string nodes = f["nodes"].str();
      if (nodes.ends_with('*')) nodes.pop_back();
      if (measuring_) measured_.objects += 1;
      return objects_->publish(f["driverName"].str(), nodes,
                               static_cast<std::size_t>(f["maxClaimsPerNode"].as_int()));
    }
    if (op.code == "createNamespaces") {
      for (std::size_t i = 0; i < count; ++i) {
        DIBS_CHECK(objects_->make_namespace(cat(f["prefix"].as_string(), "-", i)));
      }
      return success();
    }
    if (op.code == "allocResourceClaims") return objects_->allocate_claims(name_space);
    if (op.code == "createPods") return create_pods(op, name_space, count);
    if (op.code == "deletePods") return delete_pods(name_space);
    if (op.code == "churn") return churn(op, name_space);
    if (op.code == "barrier") return wait_for_all();
    if (op.code == "sleep") {
      DIBS_TRY(const Duration length, parse_duration(f["duration"].as_string()));
      std::this_thread::sleep_for(length);
      return success();
    }
    if (op.code == "startCollectingMetrics") {
      cluster_->settle();
      begin();
      return success();
    }
    if (op.code == "stopCollectingMetrics") {
      end(now());
      return success();
    }
    return Error::not_found(cat("operation ", op.code, " is unknown"));
  }

  void begin() {
    follower_->take_times();
    began_ = now();
    used_before_ = processor_seconds();
    bound_before_ = follower_->bound();
    measuring_ = true;
  }

  void end(Duration at) {
    measuring_ = false;
    measured_.pods += follower_->bound() - bound_before_;
    measured_.seconds += seconds(at - began_);
    measured_.processor_seconds += processor_seconds() - used_before_;
    for (const double time : follower_->take_times()) measured_.bound_seconds.push_back(time);
  }

  Result<> wait_for_all() {
    if (follower_->wait_for(expected_, kPodsDeadline)) return success();
    return Error::timeout(cat(follower_->bound(), " of ", expected_, " pods have a node after ",
                              format_duration(kPodsDeadline), waiting_pod()));
  }

  /// What the scheduler says about a pod that waits.
  std::string waiting_pod() {
    client::ListOptions options;
    options.field_selector = "spec.nodeName=";
    options.limit = 1;
    const auto pods = cluster_->client().list_page({"", "v1", "pods"}, "", options);
    if (!pods.ok() || pods->items.empty()) return {};
    for (const Value& condition : pods->items[0]["status"]["conditions"].items()) {
      if (condition["type"].as_string() == "PodScheduled") {
        return cat("; one waits: ", condition["message"].as_string());
      }
    }
    return "; one waits and was not tried";
  }

  Result<> create_pods(const WorkloadOp& op, std::string name_space, std::size_t count) {
    const Value& f = op.fields;
    if (name_space.empty()) name_space = cat("namespace-", ++namespaces_);
    DIBS_CHECK(objects_->make_namespace(name_space));
    std::string path = f["podTemplatePath"].str();
    if (path.empty()) path = workload_.pod_template;
    const bool steady = f["steadyState"].as_bool();
    // Pods of a steady state go on being made: numbers for more than the first ones are needed.
    const std::size_t bodies_count = steady ? std::max<std::size_t>(count, 1) : count;
    DIBS_TRY(const Bodies bodies,
             path.empty() ? BenchObjects::fill_text(kPlainPod, op.template_params, bodies_count)
                          : objects_->fill(path, op.template_params, bodies_count));
    if (count == 0 && !steady) return success();
    const bool collect = f["collectMetrics"].as_bool();
    if (collect) {
      cluster_->settle();
      begin();
    }
    if (steady) {
      DIBS_TRY(const Duration length, parse_duration(f["duration"].as_string()));
      if (bodies.named) {
        return Error::bad_request("pods of a steady state must have a generateName");
      }
      const double rate = f["podsPerSecond"].as_double();
      DIBS_CHECK(steadily(bodies.texts[0], name_space, count, length, rate));
      if (collect) end(now());
      expected_ = follower_->bound();
      return success();
    }
    expected_ += count;
    const std::string target = client::path_of({"", "v1", "pods"}, name_space);
    std::vector<Duration> sent(count);
    DIBS_CHECK(send_many(
        cluster_->client(), count, options_.window,
        [&](std::size_t i) {
          sent[i] = now();
          return body_request("POST", target, bodies.at(i));
        },
        [&](std::size_t i, const client::Response& response) {
          follower_->created(quick_key(response.body), sent[i]);
        }));
    if (f["skipWaitToCompletion"].as_bool()) return success();
    DIBS_CHECK(wait_for_all());
    if (collect) end(follower_->last_bound());
    return success();
  }

  /// Each pod that gets a node is deleted and followed by a new one; with a rate, new ones come by
  /// the clock instead.
  Result<> steadily(const std::string& body, const std::string& name_space, std::size_t count,
                    Duration length, double rate) {
    client::Transport& transport = cluster_->client().transport();
    const std::string target = client::path_of({"", "v1", "pods"}, name_space);
    std::atomic<bool> going{true};
    std::atomic<std::size_t> open{0};
    std::atomic<std::size_t> failed{0};
    const auto create = [&] {
      ++open;
      transport.send_async(body_request("POST", target, body),
                           [&, sent = now()](const Result<client::Response>& answer) {
                             if (answer.ok() && answer->status < 300) {
                               follower_->created(quick_key(answer->body), sent);
                             } else {
                               ++failed;
                             }
                             --open;
                           });
    };
    follower_->on_bound([&](const std::string& key) {
      ++open;
      const auto [space, name] = client::split_key(key);
      transport.send_async(
          body_request("DELETE", client::path_of({"", "v1", "pods"}, space, name),
                       R"({"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0})"),
          [&](const Result<client::Response>&) { --open; });
      if (going && rate <= 0) create();
    });
    const Duration until = now() + length;
    if (rate > 0) {
      const Duration start = now();
      std::size_t made = 0;
      while (now() < until) {
        const auto due = static_cast<std::size_t>(seconds(now() - start) * rate);
        for (; made < due; ++made) create();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    } else {
      for (std::size_t i = 0; i < count; ++i) create();
      std::this_thread::sleep_for(until - now());
    }
    going = false;
    measuring_ = false;
    follower_->on_bound(nullptr);
    while (open > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (failed > 0) return Error::internal(cat(failed.load(), " pods could not be created"));
    return success();
  }

  Result<> delete_pods(const std::string& name_space) {
    client::Client& client = cluster_->client();
    DIBS_TRY(const client::List pods, client.list({"", "v1", "pods"}, name_space));
    return send_many(client, pods.items.size(), options_.window, [&](std::size_t i) {
      return body_request("DELETE",
                          client::path_of({"", "v1", "pods"}, name_space,
                                          pods.items[i]["metadata"]["name"].as_string()),
                          R"({"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0})");
    });
  }

  /// Makes objects of the templates again and again beside what follows ("create"), or makes and
  /// deletes them in turn ("recreate").
  Result<> churn(const WorkloadOp& op, const std::string& name_space) {
    const Value& f = op.fields;
    const auto interval = std::chrono::milliseconds(f["intervalMilliseconds"].as_int(500));
    const auto most = static_cast<std::size_t>(f["number"].as_int());
    const bool again = f["mode"].as_string() == "recreate";
    std::vector<std::pair<std::string, std::string>> requests;  // path, body
    for (const Value& path : f["templatePaths"].items()) {
      DIBS_TRY(const Bodies bodies, objects_->fill(path.str(), op.template_params, 1));
      DIBS_CHECK(objects_->make_namespace(name_space));
      DIBS_TRY(std::string target, objects_->path_for(bodies.first, name_space));
      requests.emplace_back(std::move(target), bodies.texts[0]);
    }
    churning_ = true;
    churn_ = std::thread([this, requests, interval, most, again] {
      client::Client& client = cluster_->client();
      for (std::size_t made = 0; churning_ && (most == 0 || again || made < most); ++made) {
        std::vector<std::string> paths;
        for (const auto& [path, body] : requests) {
          auto answer = client.call(body_request("POST", path, body));
          if (answer.ok()) {
            paths.push_back(cat(path, "/", (*answer)["metadata"]["name"].as_string()));
          }
          std::this_thread::sleep_for(interval);
        }
        for (const std::string& path : paths) {
          // What is gone already is as good.
          if (again) (void)client.call(client::make_request("DELETE", path)).ok();
        }
      }
    });
    return success();
  }

  const Workload& workload_;
  const BenchRunOptions& options_;
  std::unique_ptr<BenchCluster> cluster_;
  std::unique_ptr<BenchObjects> objects_;
  std::unique_ptr<PodFollower> follower_;
  BenchMeasured measured_;
  Mutex mutex_;
  std::vector<double> attempt_seconds_ DIBS_GUARDED_BY(mutex_);
  std::atomic<bool> measuring_{false};
  Duration began_{0};
  double used_before_ = 0;
  std::size_t bound_before_ = 0;
  std::size_t expected_ = 0;
  std::size_t namespaces_ = 0;
  std::atomic<bool> churning_{false};
  std::thread churn_;
};

}  // namespace

Result<BenchMeasured> run_workload(const Workload& workload, const BenchRunOptions& options) {
  if (!workload.problem.empty()) return Error::not_found(workload.problem);
  return Run(workload, options).all();
}

}  // namespace dibs::bench
