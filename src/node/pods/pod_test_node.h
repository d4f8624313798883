#pragma once
// For tests: an API server and the pods' part of one node, in one thread, under virtual time.
//
//   TestNode node;
//   node.create("a", R"('restartPolicy': 'Never', 'containers': [{'name': 'c'}])");
//   node.settle();

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "client/event_recorder.h"
#include "cluster/test_cluster.h"
#include "node/pods/pod_fakes.h"
#include "node/pods/pod_spec.h"
#include "node/pods/pod_workers.h"

namespace dibs::node::test {

using json::Value;

inline const client::Gvr kPodResource{"", "v1", "pods"};

using cluster::test::from_text;

class TestNode : public cluster::test::TestCluster {
 public:
  TestNode() : TestCluster(server_options()), machine(sim.runtime()) {
    settle();
    start_agent();
  }

  ~TestNode() {
    end_agent();
    close();
  }

  /// One agent's life on the machine.
  struct Agent {
    explicit Agent(TestNode& node, int actions)
        : transport(node.connect({"system:node:node-0", {"system:nodes", "system:authenticated"}})),
          mortal(*transport, budget),
          client(mortal),
          containers(node.machine, budget),
          claims(node.drivers, budget, node.machine) {
      budget.left = actions;
      facts.name = "node-0";
      facts.root = "/nowhere";
      facts.addresses = {"192.0.2.1"};
      facts.simulated = true;
      facts.allocatable_milli_cpu = 4000;
      facts.memory_bytes = 1 << 30;
      client::EventRecorderOptions events;
      events.controller = "kubelet";
      events.core = true;
      events.host = "node-0";
      recorder = std::make_unique<client::EventRecorder>(client, node.sim.runtime(), events);
      objects = make_pod_objects(client, node.sim.runtime(), {.watch = false});
      volumes = std::make_unique<Volumes>(client, node.sim.runtime(), *objects, facts);
      PodWorkersOptions options;
      options.node = [&node](bool fresh) {
        return fresh && !node.fresh_object.is_null() ? node.fresh_object : node.node_object;
      };
      options.disk_pressure = [&node] { return node.disk_pressure; };
      options.concurrency = 4;
      workers = std::make_unique<PodWorkers>(client, node.sim.runtime(), containers, claims,
                                             *volumes, *objects, *recorder, facts, options);
    }

    Budget budget;
    NodeFacts facts;
    std::unique_ptr<client::Transport> transport;
    MortalTransport mortal;
    client::Client client;
    FakeRuntime containers;
    FakeClaims claims;
    std::unique_ptr<client::EventRecorder> recorder;
    std::unique_ptr<PodObjects> objects;
    std::unique_ptr<Volumes> volumes;
    std::unique_ptr<PodWorkers> workers;
  };

  void start_agent(int actions = -1) {
    agent = std::make_unique<Agent>(*this, actions);
    const auto started =
        agent->workers->start(watch_own_pods(agent->client, sim.runtime(), "node-0"));
    EXPECT_TRUE(started.ok());
  }
  void end_agent() {
    if (!agent) return;
    agent->workers->stop();
    machine.listeners.clear();
    // Callbacks of a dead agent may still lie around: it is kept, but deaf.
    agent->budget.dead = true;
    graveyard_.push_back(std::move(agent));
    sim.run_until_idle();
  }

  void settle(Duration time = std::chrono::milliseconds(500)) { sim.advance(time); }

  Value create(const std::string& name, const std::string& spec, const std::string& metadata = "") {
    Value pod =
        from_text(cat("{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': '", name, "'",
                      metadata.empty() ? "" : ", ", metadata, "}, 'spec': {", spec, "}}"));
    Value& body = pod.mut("spec");
    body.set("nodeName", "node-0");
    for (const char* list : {"containers", "initContainers"}) {
      if (!body.contains(list)) continue;
      Value& containers = body.mut(list);
      for (std::size_t i = 0; i < containers.size(); ++i) {
        if (!containers[i].contains("image")) containers.mut(i).set("image", "busybox:1.36");
      }
    }
    return expect(api->create(kPodResource, "default", pod));
  }
  Value pod(const std::string& name) { return get(kPodResource, "default", name); }
  void remove(const std::string& name, int grace = -1) {
    client::DeleteOptions options;
    options.grace_period_seconds = grace;
    TestCluster::remove(kPodResource, "default", name, options);
  }
  void patch(const std::string& name, const std::string& text) {
    TestCluster::patch(kPodResource, "default", name, text);
  }
  /// "Type Reason: message (count)" of the node's events about a pod, without (1).
  std::vector<std::string> events(const std::string& name) {
    std::vector<std::string> out;
    for (const auto& event : list({"", "v1", "events"}, "default")) {
      if (event["involvedObject"]["name"].as_string() != name) continue;
      if (event["source"]["component"].as_string() != "kubelet") continue;
      out.push_back(cat(event["type"].as_string(), " ", event["reason"].as_string(), ": ",
                        event["message"].as_string()));
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }
  /// "phase; c ready=… state" of a pod, in one line.
  std::string line(const std::string& name) {
    const Value found = pod(name);
    if (found.is_null()) return "gone";
    std::string out = found["status"]["phase"].str();
    for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
      for (const Value& status : found["status"][list].items()) {
        append(out, "; ", status["name"].as_string(), " ", state_text(status["state"]));
        if (status["ready"].as_bool()) out += " ready";
        if (status["restartCount"].as_int() > 0) {
          append(out, " restarts=", status["restartCount"].as_int());
        }
        if (!status["lastState"].empty()) append(out, " last=", state_text(status["lastState"]));
      }
    }
    return out;
  }
  static std::string state_text(const Value& state) {
    if (state["running"].is_object()) return "running";
    if (const Value& waiting = state["waiting"]; waiting.is_object()) {
      return waiting["reason"].str();
    }
    const Value& ended = state["terminated"];
    return cat(ended["reason"].as_string(), "(", ended["exitCode"].as_int(), ")");
  }
  std::string condition(const std::string& name, std::string_view type) {
    const Value held = pod(name);
    const Value& found = find_condition(held["status"], type);
    std::string out = found["status"].str();
    if (found.contains("reason")) append(out, " ", found["reason"].as_string());
    if (found.contains("message")) append(out, ": ", found["message"].as_string());
    return out;
  }

  FakeMachine machine;
  FakeDrivers drivers;
  Value node_object;
  Value fresh_object;  // what reading it anew gives; null: the same
  bool disk_pressure = false;
  std::unique_ptr<Agent> agent;

 private:
  static server::Options server_options() {
    server::Options options;
    options.disabled_plugins = {"ServiceAccount"};
    return options;
  }

  std::vector<std::unique_ptr<Agent>> graveyard_;
};

}  // namespace dibs::node::test
