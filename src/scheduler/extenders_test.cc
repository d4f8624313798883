#include "scheduler/extenders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "json/parse.h"
#include "scheduler/test_cluster.h"

namespace dibs::scheduler::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// An extender inside of the test: what it was told, and what it answers by verb.
class FakeExtender : public client::Transport {
 public:
  std::map<std::string, std::function<client::Response(const Value& body)>> answers;
  std::vector<std::pair<std::string, Value>> told;
  bool silent = false;

  Result<client::Response> send(client::Request) override { return Error::unavailable("not used"); }
  void send_async(client::Request request,
                  std::function<void(Result<client::Response>)> done) override {
    request.write_body();
    const Value body = json::parse(request.body).value();
    told.emplace_back(request.target, body);
    const auto answer = answers.find(request.target);
    if (silent) {
      held_.push_back({request.target, body, std::move(done)});
    } else if (answer == answers.end()) {
      done(Error::unavailable("Post \"http://extender/x\": connection refused"));
    } else {
      done(answer->second(body));
    }
  }
  std::unique_ptr<client::TransportStream> open_stream(client::Request,
                                                       client::StreamHandlers) override {
    return nullptr;
  }

  void answer(const std::string& verb, const std::string& text, int status = 200) {
    answers[verb] = [text, status](const Value&) {
      client::Response made;
      made.status = status;
      made.body = json::write(from_text(text));
      return made;
    };
  }
  /// As if its timeout had come.
  void time_out() {
    silent = false;
    for (const Held& held : std::exchange(held_, {}))
      held.done(Error::timeout("Post \"http://x\": too slow"));
  }
  /// What it was asked while it was silent.
  void speak() {
    for (const Held& held : std::exchange(held_, {})) held.done(answers.at(held.target)(held.body));
  }
  std::vector<std::string> verbs() const {
    std::vector<std::string> made;
    for (const auto& [verb, body] : told) made.push_back(verb);
    return made;
  }

 private:
  struct Held {
    std::string target;
    Value body;
    std::function<void(Result<client::Response>)> done;
  };
  std::vector<Held> held_;
};

struct World {
  std::shared_ptr<FakeExtender> extender = std::make_shared<FakeExtender>();

  Options options(const std::string& extenders) const {
    Options made;
    auto read = Configuration::parse(
        cat("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
            "extenders: ",
            extenders, "\n"),
        *api::Features::parse("1.37", ""));
    if (!read.ok()) ADD_FAILURE() << read.error().message();
    made.configuration = std::move(*read);
    made.extender_ways.assign(made.configuration.extenders.size(), extender);
    return made;
  }
};

std::vector<std::string> names_of(const Value& list) {
  std::vector<std::string> made;
  for (const Value& one : list.items()) {
    made.push_back(one.is_string() ? one.str() : one["metadata"]["name"].str());
  }
  std::sort(made.begin(), made.end());
  return made;
}

TEST(Extenders, get_the_pod_and_its_nodes_and_choose_among_them) {
  World world;
  world.extender->answer("/filter", "{'nodes':{'items':[{'metadata':{'name':'b'}}]}}");
  TestCluster cluster(world.options("[{urlPrefix: 'http://x/', filterVerb: filter}]"));
  for (const char* name : {"a", "b", "c"}) cluster.add_node(name);
  cluster.add_pod("p");
  cluster.settle();

  EXPECT_EQ(cluster.node_of("p"), "b");
  ASSERT_THAT(world.extender->verbs(), ElementsAre("/filter"));
  const Value& body = world.extender->told[0].second;
  EXPECT_EQ(body["Pod"]["metadata"]["name"].as_string(), "p");
  EXPECT_THAT(names_of(body["Nodes"]["items"]), ElementsAre("a", "b", "c"));
  EXPECT_TRUE(body["NodeNames"].is_null() && body.contains("NodeNames"));
}

TEST(Extenders, that_know_nodes_get_their_names) {
  World world;
  world.extender->answer("/f", "{'NodeNames':['a','c'],'FailedNodes':{'b':'not today'}}");
  world.extender->answer("/p", "[{'Host':'a','Score':1},{'Host':'c','Score':9}]");
  TestCluster cluster(world.options(
      "[{urlPrefix: 'http://x', filterVerb: f, prioritizeVerb: p, weight: 2, nodeCacheCapable: "
      "true}]"));
  for (const char* name : {"a", "b", "c"}) cluster.add_node(name);
  cluster.add_pod("p");
  cluster.settle();

  EXPECT_EQ(cluster.node_of("p"), "c");
  ASSERT_THAT(world.extender->verbs(), ElementsAre("/f", "/p"));
  EXPECT_THAT(names_of(world.extender->told[0].second["NodeNames"]), ElementsAre("a", "b", "c"));
  EXPECT_TRUE(world.extender->told[0].second["Nodes"].is_null());
  EXPECT_THAT(names_of(world.extender->told[1].second["NodeNames"]), ElementsAre("a", "c"));
}

TEST(Extenders, give_reasons_that_the_pod_gets_to_read) {
  World world;
  world.extender->answer("/f",
                         "{'NodeNames':[],'FailedNodes':{'a':'node is resting'},"
                         "'FailedAndUnresolvableNodes':{'b':'node is forbidden'}}");
  TestCluster cluster(
      world.options("[{urlPrefix: 'http://x', filterVerb: f, nodeCacheCapable: true}]"));
  cluster.add_node("a");
  cluster.add_node("b");
  cluster.add_pod("p");
  cluster.settle();
  EXPECT_THAT(cluster.condition("p"),
              HasSubstr("Unschedulable: 0/2 nodes are available: 1 node is forbidden, 1 node is "
                        "resting. preemption: 0/2 nodes are available: 1 No preemption victims "
                        "found for incoming pod, 1 Preemption is not helpful for scheduling."));

  // Whatever changes, it is asked again.
  world.extender->answer("/f", "{'NodeNames':['a']}");
  cluster.patch(kNodes, "", "b", "{'metadata':{'labels':{'x':'y'}}}");
  cluster.settle(std::chrono::seconds(3));
  EXPECT_EQ(cluster.node_of("p"), "a");
}

TEST(Extenders, that_fail_make_the_attempt_fail) {
  World world;
  TestCluster cluster(world.options("[{urlPrefix: 'http://x', filterVerb: f}]"));
  cluster.add_node("a");
  cluster.add_pod("p");
  cluster.settle();
  EXPECT_EQ(cluster.condition("p"),
            "SchedulerError: Post \"http://extender/x\": connection refused");

  world.extender->answer("/f", "{}", 503);
  cluster.settle(std::chrono::seconds(3));
  EXPECT_EQ(cluster.condition("p"),
            "SchedulerError: failed f with extender at URL http://x/f, code 503");

  world.extender->answer("/f", "{'Error':'out of order'}");
  cluster.settle(std::chrono::seconds(5));
  EXPECT_EQ(cluster.condition("p"), "SchedulerError: out of order");

  world.extender->answer("/f", "{'Nodes':{'items':[{'metadata':{'name':'a'}}]}}");
  cluster.settle(std::chrono::seconds(10));
  EXPECT_EQ(cluster.node_of("p"), "a");
}

TEST(Extenders, that_may_be_ignored_are) {
  World world;
  TestCluster cluster(world.options(
      "[{urlPrefix: 'http://x', filterVerb: f, bindVerb: b, prioritizeVerb: p, weight: 1, "
      "ignorable: true}]"));
  cluster.add_node("a");
  cluster.add_node("b");
  cluster.add_pod("p");
  cluster.settle();
  EXPECT_NE(cluster.node_of("p"), "");
  EXPECT_THAT(world.extender->verbs(), ElementsAre("/f", "/p", "/b"));
}

TEST(Extenders, that_name_a_node_they_were_not_told_of_fail) {
  World world;
  world.extender->answer("/f", "{'NodeNames':['z']}");
  TestCluster cluster(
      world.options("[{urlPrefix: 'http://x', filterVerb: f, nodeCacheCapable: true}]"));
  cluster.add_node("a");
  cluster.add_pod("p");
  cluster.settle();
  EXPECT_EQ(cluster.condition("p"),
            "SchedulerError: extender \"http://x\" claims a filtered node \"z\" which is not found "
            "in the input node list");
}

TEST(Extenders, see_only_pods_that_want_their_resources) {
  World world;
  world.extender->answer("/f", "{'NodeNames':['a']}");
  TestCluster cluster(world.options(
      "[{urlPrefix: 'http://x', filterVerb: f, nodeCacheCapable: true, managedResources: [{name: "
      "example.com/gpu, ignoredByScheduler: true}, {name: example.com/fpga}]}]"));
  cluster.add_node("a");
  cluster.add_pod("plain");
  cluster.add_pod("gpu", "{}", "{'limits':{'example.com/gpu':'1'}}");
  cluster.add_pod("fpga", "{}", "{'limits':{'example.com/fpga':'1'}}");
  cluster.settle();

  EXPECT_EQ(cluster.node_of("plain"), "a");
  // No node has either; one of them is the extender's business alone.
  EXPECT_EQ(cluster.node_of("gpu"), "a");
  EXPECT_THAT(cluster.condition("fpga"), HasSubstr("1 Insufficient example.com/fpga"));
  ASSERT_EQ(world.extender->told.size(), 1U);
  EXPECT_EQ(world.extender->told[0].second["Pod"]["metadata"]["name"].as_string(), "gpu");
}

TEST(Extenders, that_are_slow_delay_nobody_else) {
  World world;
  world.extender->silent = true;
  TestCluster cluster(world.options(
      "[{urlPrefix: 'http://x', filterVerb: f, managedResources: [{name: example.com/gpu, "
      "ignoredByScheduler: true}]}]"));
  cluster.add_node("a");
  cluster.add_pod("slow", "{}", "{'limits':{'example.com/gpu':'1'}}");
  cluster.add_pod("slower", "{}", "{'limits':{'example.com/gpu':'1'}}");
  cluster.add_pod("gone", "{}", "{'limits':{'example.com/gpu':'1'}}");
  cluster.settle();
  cluster.add_pod("plain");
  cluster.settle();
  EXPECT_EQ(cluster.node_of("plain"), "a");
  EXPECT_EQ(cluster.condition("slow"), "");
  // One at a time.
  EXPECT_EQ(world.extender->told.size(), 1U);

  // What went meanwhile is not asked about.
  cluster.remove(kPodsOf, "default", "gone");
  world.extender->answer("/f", "{'Nodes':{'items':[{'metadata':{'name':'a'}}]}}");
  world.extender->time_out();
  cluster.settle();
  EXPECT_EQ(cluster.condition("slow"), "SchedulerError: Post \"http://x\": too slow");
  EXPECT_EQ(cluster.node_of("slower"), "a");
  cluster.settle(std::chrono::seconds(3));
  EXPECT_EQ(cluster.node_of("slow"), "a");
  EXPECT_EQ(world.extender->told.size(), 3U);
}

TEST(Extenders, are_asked_once_about_a_pod_that_changes_meanwhile) {
  World world;
  world.extender->silent = true;
  world.extender->answer("/f", "{'NodeNames':['a','b']}");
  TestCluster cluster(
      world.options("[{urlPrefix: 'http://x', filterVerb: f, nodeCacheCapable: true}]"));
  cluster.add_node("a");
  cluster.add_node("b");
  cluster.add_pod("p");
  cluster.settle();
  cluster.patch(kPodsOf, "default", "p", "{'metadata':{'labels':{'x':'y'}}}");
  cluster.settle();
  world.extender->speak();
  cluster.settle(std::chrono::seconds(3));
  world.extender->speak();
  cluster.settle(std::chrono::seconds(3));

  EXPECT_NE(cluster.node_of("p"), "");
  EXPECT_EQ(world.extender->told.size(), 1U);
  EXPECT_EQ(cluster.events("p").size(), 1U);
}

TEST(Extenders, are_asked_about_the_most_important_pod_first) {
  World world;
  world.extender->silent = true;
  world.extender->answer("/f", "{'NodeNames':['a']}");
  TestCluster cluster(
      world.options("[{urlPrefix: 'http://x', filterVerb: f, nodeCacheCapable: true}]"));
  cluster.create({"scheduling.k8s.io", "v1", "priorityclasses"}, "",
                 "{'metadata':{'name':'high'},'value':1000}");
  cluster.add_node("a");
  for (const char* name : {"first", "second"}) cluster.add_pod(name);
  cluster.settle();
  cluster.add_pod("high", "{'priorityClassName':'high'}");
  cluster.settle();
  world.extender->speak();
  cluster.settle();

  ASSERT_EQ(world.extender->told.size(), 2U);
  EXPECT_EQ(world.extender->told[1].second["Pod"]["metadata"]["name"].as_string(), "high");
}

// What happens while they think about victims is not lost on the pod.
TEST(Extenders, that_think_about_victims_keep_nothing_from_the_pod) {
  World world;
  world.extender->silent = true;
  world.extender->answer("/preempt", "{'NodeNameToMetaVictims':{}}");
  TestCluster cluster(
      world.options("[{urlPrefix: 'http://x', preemptVerb: preempt, nodeCacheCapable: true}]"));
  cluster.create({"scheduling.k8s.io", "v1", "priorityclasses"}, "",
                 "{'metadata':{'name':'high'},'value':1000}");
  cluster.add_node("a");
  cluster.add_pod("low", "{}", "{'requests':{'cpu':'4'}}");
  cluster.settle();
  cluster.add_pod("high", "{'priorityClassName':'high'}", "{'requests':{'cpu':'4'}}");
  cluster.settle();
  ASSERT_EQ(world.extender->told.size(), 1U);
  cluster.add_node("b");
  cluster.settle();
  world.extender->silent = false;
  world.extender->speak();
  cluster.settle(std::chrono::seconds(5));

  EXPECT_EQ(cluster.node_of("high"), "b") << cluster.condition("high");
  EXPECT_EQ(cluster.node_of("low"), "a");
}

TEST(Extenders, do_not_go_together_with_groups) {
  World world;
  world.extender->answer("/f", "{'NodeNames':['a']}");
  TestCluster cluster(
      world.options("[{urlPrefix: 'http://x', filterVerb: f, nodeCacheCapable: true}]"), {}, false,
      "GenericWorkload=true");
  cluster.add_node("a");
  cluster.create({"scheduling.k8s.io", "v1beta1", "podgroups"}, "default",
                 "{'metadata':{'name':'g'},'spec':{'schedulingPolicy':{'gang':{'minCount':1}}}}");
  cluster.add_pod("p", "{'schedulingGroup':{'podGroupName':'g'}}");
  cluster.settle();

  EXPECT_EQ(cluster.condition("p"),
            "SchedulerError: pod default/p is judged by an extender, which pods of a group cannot "
            "be");
  EXPECT_EQ(world.extender->told.size(), 0U);
}

TEST(Extenders, bind_pods_themselves) {
  World world;
  world.extender->answer("/bind", "{'Error':'no'}");
  TestCluster cluster(world.options("[{urlPrefix: 'http://x', bindVerb: bind}]"));
  cluster.add_node("a");
  cluster.add_pod("p");
  cluster.settle();
  EXPECT_EQ(cluster.condition("p"), "SchedulerError: no");
  const Value& body = world.extender->told.at(0).second;
  EXPECT_EQ(body["PodName"].as_string(), "p");
  EXPECT_EQ(body["PodNamespace"].as_string(), "default");
  EXPECT_EQ(body["Node"].as_string(), "a");
  EXPECT_EQ(body["PodUID"], cluster.get(kPodsOf, "default", "p")["metadata"]["uid"]);

  // Whoever binds it is the extender, which here only says so.
  world.extender->answer("/bind", "{}");
  cluster.settle(std::chrono::seconds(3));
  EXPECT_THAT(cluster.events("p"),
              Contains("Normal Scheduled Successfully assigned default/p to a"));
  EXPECT_EQ(cluster.node_of("p"), "");
}

TEST(Extenders, choose_among_victims) {
  World world;
  TestCluster cluster(
      world.options("[{urlPrefix: 'http://x', preemptVerb: preempt, nodeCacheCapable: true}]"));
  cluster.create({"scheduling.k8s.io", "v1", "priorityclasses"}, "",
                 "{'metadata':{'name':'high'},'value':1000}");
  std::map<std::string, std::string> uids;
  for (const char* name : {"a", "b"}) {
    cluster.add_node(name);
    const Value pod = cluster.add_pod(
        cat("low-", name), cat("{'nodeSelector':{'kubernetes.io/hostname':'", name, "'}}"),
        "{'requests':{'cpu':'4'}}");
    uids[name] = pod["metadata"]["uid"].str();
    cluster.patch(kNodes, "", name,
                  cat("{'metadata':{'labels':{'kubernetes.io/hostname':'", name, "'}}}"));
  }
  cluster.settle(std::chrono::seconds(3));
  ASSERT_EQ(cluster.node_of("low-b"), "b");
  world.extender->answer(
      "/preempt", cat("{'NodeNameToMetaVictims':{'b':{'Pods':[{'UID':'", uids["b"], "'}]}}}"));
  cluster.add_pod("high", "{'priorityClassName':'high'}", "{'requests':{'cpu':'4'}}");
  cluster.settle(std::chrono::seconds(20));

  EXPECT_EQ(cluster.node_of("high"), "b");
  EXPECT_EQ(cluster.node_of("low-a"), "a");
  ASSERT_EQ(world.extender->told.size(), 1U);
  const Value& body = world.extender->told[0].second;
  EXPECT_TRUE(body["NodeNameToVictims"].is_null());
  EXPECT_EQ(body["NodeNameToMetaVictims"]["a"]["Pods"][0]["UID"].as_string(), uids["a"]);
}

TEST(Extenders, that_fail_about_victims_are_heard) {
  World world;
  TestCluster cluster(world.options("[{urlPrefix: 'http://x', preemptVerb: preempt}]"));
  cluster.create({"scheduling.k8s.io", "v1", "priorityclasses"}, "",
                 "{'metadata':{'name':'high'},'value':1000}");
  cluster.add_node("a");
  cluster.add_pod("low", "{}", "{'requests':{'cpu':'4'}}");
  cluster.settle();
  world.extender->answer("/preempt", "{'NodeNameToMetaVictims':{'a':{'Pods':[{'UID':'u'}]}}}");
  cluster.add_pod("high", "{'priorityClassName':'high'}", "{'requests':{'cpu':'4'}}");
  cluster.settle();
  EXPECT_THAT(cluster.condition("high"),
              HasSubstr("1 Insufficient cpu. preemption: extender: http://x claims to preempt pod "
                        "(UID: &{u}) on node: a, but the pod is not found on that node"));
  EXPECT_EQ(cluster.node_of("low"), "a");
  EXPECT_EQ(world.extender->told.at(0)
                .second["NodeNameToVictims"]["a"]["Pods"][0]["metadata"]["name"]
                .as_string(),
            "low");
}

}  // namespace
}  // namespace dibs::scheduler::test
