#pragma once
// For tests of this library: an API server and a scheduler in one thread, under virtual time.
//
// The scheduler can be killed in the middle of its writes and started again: each has a transport
// of its own that can stop passing requests on.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "client/resource_versions.h"
#include "cluster/test_cluster.h"
#include "scheduler/scheduler.h"

namespace dibs::scheduler::test {

using client::Gvr;
using json::Value;

inline const Gvr kNodes = {"", "v1", "nodes"};
inline const Gvr kPodsOf = {"", "v1", "pods"};
inline const Gvr kClaimsOf = {"resource.k8s.io", "v1", "resourceclaims"};
inline const Gvr kClasses = {"resource.k8s.io", "v1", "deviceclasses"};
inline const Gvr kSlices = {"resource.k8s.io", "v1", "resourceslices"};

using cluster::test::from_text;

/// Passes requests on until it is cut off; then nothing gets through, as after a kill.
class CutTransport : public client::Transport {
 public:
  explicit CutTransport(client::Transport& inner) : inner_(inner) {}

  /// Cuts off at the n-th write from now: before the server sees it, or before its answer.
  void cut_at(int write, bool arrives) {
    left_ = write;
    arrives_ = arrives;
  }
  /// The next request whose path ends so is answered with an error.
  void refuse_next(std::string path) { refused_ = std::move(path); }
  bool refuses() const { return !refused_.empty(); }
  /// The next request whose path ends so reaches the server when let_go() says so.
  void hold_next(std::string path) { delayed_ = std::move(path); }
  void let_go() {
    if (held_) std::exchange(held_, nullptr)();
  }
  bool cut() const { return cut_; }
  int writes() const { return writes_; }

  Result<client::Response> send(client::Request request) override {
    return inner_.send(std::move(request));
  }
  void send_async(client::Request request,
                  std::function<void(Result<client::Response>)> done) override {
    if (cut_) return;
    if (const std::string_view path =
            std::string_view(request.target).substr(0, request.target.find('?'));
        request.method != "GET" && !refused_.empty() && path.ends_with(refused_)) {
      refused_.clear();
      return done(Error::forbidden("refused by the test"));
    }
    if (const std::string_view path =
            std::string_view(request.target).substr(0, request.target.find('?'));
        !delayed_.empty() && path.ends_with(delayed_)) {
      delayed_.clear();
      held_ = [this, request, done] { inner_.send_async(request, done); };
      return;
    }
    const bool write =
        request.method != "GET" && request.target.find("/events") == std::string::npos;
    if (write) ++writes_;
    if (write && left_ > 0 && --left_ == 0) {
      cut_ = true;
      if (arrives_) inner_.send_async(std::move(request), [](const Result<client::Response>&) {});
      return;
    }
    inner_.send_async(std::move(request), std::move(done));
  }
  std::unique_ptr<client::TransportStream> open_stream(client::Request request,
                                                       client::StreamHandlers handlers) override {
    return inner_.open_stream(std::move(request), std::move(handlers));
  }
  bool protects_allocations() const override { return inner_.protects_allocations(); }

 private:
  client::Transport& inner_;
  std::string refused_;
  std::string delayed_;
  std::function<void()> held_;
  int left_ = 0;
  bool arrives_ = false;
  bool cut_ = false;
  int writes_ = 0;
};

class TestCluster : public cluster::test::TestCluster {
 public:
  /// `remote`: the scheduler's way to the server is HTTP alone.
  explicit TestCluster(Options options = {}, const runtime::SimOptions& world = {},
                       bool remote = false, const std::string& gates = "")
      : cluster::test::TestCluster(as_release(options.release, gates), world),
        options_(std::move(options)),
        is_remote_(remote) {
    create({"", "v1", "serviceaccounts"}, "default", "{'metadata':{'name':'default'}}");
    start();
  }
  ~TestCluster() {
    stop();
    close();
  }

  /// `slow`: the end of a path whose list comes after all others.
  void start(const std::string& slow = "") {
    cut = std::make_unique<CutTransport>(is_remote_ ? *remote_ : *transport_);
    models_ = client::make_resource_transport(*cut);
    client_ = std::make_unique<client::Client>(*models_);
    scheduler_ = std::make_unique<Scheduler>(*client_, sim.runtime(), options_);
    cut->hold_next(slow);
    scheduler_->start();
    settle();
    cut->let_go();
    settle();
    EXPECT_TRUE(scheduler_->ready());
  }
  void stop() {
    if (scheduler_ == nullptr) return;
    scheduler_->stop();
    scheduler_.reset();
    sim.run_until_idle();
    old_.push_back(std::move(client_));  // answers may still be on their way
    old_models_.push_back(std::move(models_));
    old_cuts_.push_back(std::move(cut));
  }

  void settle(Duration time = std::chrono::milliseconds(100)) { sim.advance(time); }

  void remove(const Gvr& gvr, const std::string& name_space, const std::string& name) {
    client::DeleteOptions now;
    now.grace_period_seconds = 0;
    cluster::test::TestCluster::remove(gvr, name_space, name, now);
  }

  void add_node(const std::string& name,
                const std::string& allocatable = "{'cpu':'4','memory':'8Gi','pods':'10'}",
                const std::string& labels = "{}") {
    create(kNodes, "", cat("{'metadata':{'name':'", name, "','labels':", labels, "}}"));
    patch(kNodes, "", name,
          cat("{'status':{'capacity':", allocatable, ",'allocatable':", allocatable, "}}"),
          "status");
    patch(kNodes, "", name, "{'spec':{'taints':null}}");
  }
  /// `spec`: members of the spec besides the container; `resources`: of the container.
  Value add_pod(const std::string& name, const std::string& spec = "{}",
                const std::string& resources = "{}", const std::string& labels = "{}") {
    Value pod = from_text(cat("{'metadata':{'name':'", name, "','labels':", labels,
                              "},'spec':{'terminationGracePeriodSeconds':0}}"));
    const Value more = from_text(spec);
    for (const auto& [key, value] : more.members()) pod.mut("spec").set(key, value);
    if (!pod["spec"].contains("containers")) {
      pod.mut("spec").set(
          "containers",
          from_text(cat("[{'name':'main','image':'x','resources':", resources, "}]")));
    }
    return expect(api->create(kPodsOf, "default", pod));
  }
  void add_devices(const std::string& node, int count, const std::string& more = "") {
    std::string devices;
    for (int i = 0; i < count; ++i) {
      append(devices, i > 0 ? "," : "", "{'name':'gpu-", i, "'", more, "}");
    }
    create(
        kSlices, "",
        cat("{'metadata':{'name':'", node,
            "-slice'},'spec':{'driver':'gpu.example.com','nodeName':'", node, "','pool':{'name':'",
            node, "','generation':1,'resourceSliceCount':1},'devices':[", devices, "]}}"));
  }
  void add_class(const std::string& name = "gpu", const std::string& more = "") {
    create(kClasses, "", cat("{'metadata':{'name':'", name, "'},'spec':{", more, "}}"));
  }
  void add_claim(const std::string& name, int count = 1, const std::string& device_class = "gpu") {
    create(kClaimsOf, "default",
           cat("{'metadata':{'name':'", name,
               "'},'spec':{'devices':{'requests':[{'name':'d','exactly':{'deviceClassName':'",
               device_class, "','count':", count, "}}]}}}"));
  }
  Value add_claim_pod(const std::string& name, const std::string& claim) {
    return add_pod(name,
                   cat("{'resourceClaims':[{'name':'d','resourceClaimName':'", claim, "'}]}"));
  }

  std::string node_of(const std::string& pod) {
    return get(kPodsOf, "default", pod)["spec"]["nodeName"].str();
  }
  /// "reason: message" of PodScheduled.
  std::string condition(const std::string& pod) {
    const Value object = get(kPodsOf, "default", pod);
    for (const Value& condition : object["status"]["conditions"].items()) {
      if (condition["type"].as_string() != "PodScheduled") continue;
      return cat(condition["reason"].as_string(), ": ", condition["message"].as_string());
    }
    return "";
  }
  std::vector<std::string> events(const std::string& name) {
    return cluster::test::TestCluster::events("default", name);
  }
  /// Every device that a claim holds, "pool/device", sorted.
  std::vector<std::string> held_devices() {
    std::vector<std::string> out;
    auto found = api->list(kClaimsOf, "default");
    for (const Value& claim : found->items) {
      for (const Value& result : claim["status"]["allocation"]["devices"]["results"].items()) {
        out.push_back(cat(result["pool"].as_string(), "/", result["device"].as_string()));
      }
    }
    std::sort(out.begin(), out.end());
    return out;
  }

  std::unique_ptr<CutTransport> cut;

 private:
  static cluster::Options as_release(int release, const std::string& gates) {
    cluster::Options made;
    made.server.feature_gates = gates;
    if (release == kNewestRelease) return made;
    made.server.release = cat("1.", release);
    made.server.feature_gates = "DynamicResourceAllocation=true";
    made.server.runtime_config = "resource.k8s.io/v1alpha2=true";
    return made;
  }

  Options options_;
  const bool is_remote_;
  std::vector<std::unique_ptr<CutTransport>> old_cuts_;
  std::vector<std::unique_ptr<client::Transport>> old_models_;
  std::unique_ptr<client::Transport> models_;
  std::vector<std::unique_ptr<client::Client>> old_;
  std::unique_ptr<client::Client> client_;
  std::unique_ptr<Scheduler> scheduler_;
};

}  // namespace dibs::scheduler::test
