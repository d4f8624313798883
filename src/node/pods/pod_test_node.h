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

#include "client/client.h"
#include "client/event_recorder.h"
#include "client/transport.h"
#include "json/parse.h"
#include "node/pods/pod_fakes.h"
#include "node/pods/pod_spec.h"
#include "node/pods/pod_workers.h"
#include "runtime/sim_runtime.h"
#include "server/api_server.h"
#include "store/memory_store.h"

namespace dibs::node::test {

using json::Value;

inline const client::Gvr kPodResource{"", "v1", "pods"};

/// JSON with ' in place of ".
inline Value from_text(std::string text) {
  std::replace(text.begin(), text.end(), '\'', '"');
  auto value = json::parse(text);
  if (!value) {
    ADD_FAILURE() << value.error().message() << " in " << text;
    return {};
  }
  return std::move(value).value();
}

class TestNode {
 public:
  TestNode() : machine(sim.runtime()), store_(store::make_memory_store({})) {
    server::Options options;
    options.disabled_plugins = {"ServiceAccount"};
    auto opened = server::ApiServer::open(sim.runtime(), *store_, std::move(options));
    if (!opened) {
      ADD_FAILURE() << opened.error().message();
      std::abort();
    }
    server_ = std::move(opened).value();
    transport_ = make_transport("system:admin", "system:masters");
    api = std::make_unique<client::Client>(*transport_);
    settle();
    start_agent();
  }

  ~TestNode() {
    end_agent();
    server_->close();
    sim.run_until_idle();
  }

  /// One agent's life on the machine.
  struct Agent {
    explicit Agent(TestNode& node, int actions)
        : transport(node.make_transport("system:node:node-0", "system:nodes")),
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
      options.node = [&node] { return node.node_object; };
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
    auto created = api->create(kPodResource, "default", pod);
    if (!created) {
      ADD_FAILURE() << created.error().message();
      return {};
    }
    return std::move(created).value();
  }
  Value pod(const std::string& name) {
    auto found = api->get(kPodResource, "default", name);
    return found ? *found : Value();
  }
  void remove(const std::string& name, int grace = -1) {
    client::DeleteOptions options;
    options.grace_period_seconds = grace;
    const auto removed = api->remove(kPodResource, "default", name, options);
    EXPECT_TRUE(removed.ok()) << removed.error().message();
  }
  void patch(const std::string& name, const std::string& text) {
    const auto done =
        api->patch(kPodResource, "default", name, client::PatchType::merge, from_text(text));
    EXPECT_TRUE(done.ok()) << done.error().message();
  }
  /// "Type Reason: message (count)" of the node's events about a pod, without (1).
  std::vector<std::string> events(const std::string& name) {
    std::vector<std::string> out;
    auto found = api->list({"", "v1", "events"}, "default");
    if (!found) return out;
    for (const auto& event : found->items) {
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

  std::unique_ptr<client::Transport> make_transport(const std::string& user,
                                                    const std::string& group) {
    client::InProcessOptions in_process;
    in_process.identity = {user, {group, "system:authenticated"}};
    in_process.pump = [this] { return sim.run_until_idle() > 0; };
    return client::make_in_process_transport(server_->handler(), sim.runtime(), in_process);
  }

  runtime::SimRuntime sim;
  FakeMachine machine;
  FakeDrivers drivers;
  Value node_object;

 private:
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<server::ApiServer> server_;
  std::unique_ptr<client::Transport> transport_;
  std::vector<std::unique_ptr<Agent>> graveyard_;

 public:
  std::unique_ptr<client::Client> api;
  std::unique_ptr<Agent> agent;
};

}  // namespace dibs::node::test
