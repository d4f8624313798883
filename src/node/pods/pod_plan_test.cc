#include "node/pods/pod_plan.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "base/strings.h"
#include "json/test_text.h"
#include "node/pods/container_config.h"

namespace dibs::node {
namespace {

using json::test::from_text;

/// "one=0 side=r main=-": exited with that code, running, created; what is not named is not there.
PodView make_view(const std::string& text, const json::Value& pod, bool ready = true) {
  PodView view;
  SandboxStatus sandbox;
  sandbox.id = "s";
  sandbox.state = ready ? SandboxState::ready : SandboxState::not_ready;
  view.add(sandbox);
  for (const auto part : split(text, ' ')) {
    const auto equals = part.find('=');
    if (equals == std::string_view::npos) continue;
    ContainerStatus status;
    status.name = part.substr(0, equals);
    status.id = cat("id-", status.name);
    status.sandbox_id = "s";
    const std::string_view state = part.substr(equals + 1);
    if (state == "r") {
      status.state = ContainerState::running;
    } else if (state == "-") {
      status.state = ContainerState::created;
    } else {
      status.state = ContainerState::exited;
      status.exit_code = std::atoi(std::string(state).c_str());
    }
    for (const auto& container : containers_of(pod)) {
      if (container.name() == status.name) {
        status.annotations[kContainerHashAnnotation] = container_hash(container.spec);
      }
    }
    view.add(status);
  }
  return view;
}

std::string text_of(const PodPlan& plan) {
  std::vector<std::string> out;
  if (plan.new_sandbox) out.push_back(cat("sandbox ", plan.sandbox_attempt));
  for (const auto& kill : plan.kill) out.push_back(cat("kill ", kill.name));
  for (const auto& container : plan.start) out.push_back(cat("start ", container.name()));
  if (plan.finished) out.push_back("finished");
  return join(out, ", ");
}

struct PlanCase {
  const char* name;
  const char* policy;
  const char* state;      // of the runtime; "" : no sandbox, "!": not ready
  const char* unstarted;  // a sidecar whose startup probe has not passed
  const char* expected;
};

class Plans : public testing::TestWithParam<PlanCase> {};

TEST_P(Plans, do_what_is_missing) {
  const PlanCase& c = GetParam();
  const json::Value pod = from_text(
      cat("{'spec': {'restartPolicy': '", c.policy,
          "', 'initContainers': [{'name': 'one'}, {'name': 'side', 'restartPolicy': 'Always'},"
          "{'name': 'two'}], 'containers': [{'name': 'a'}, {'name': 'b'}]}}"));
  const std::string state = c.state;
  const bool ready = !state.starts_with("!");
  const PodView view = state.empty() ? PodView() : make_view(state, pod, ready);
  const std::map<std::string, ProbeKind> failed;
  const std::map<std::string, bool> hooks;
  PlanInput input{pod, view, {}, failed, hooks};
  input.started = [&](std::string_view name, const std::string&) { return name != c.unstarted; };

  EXPECT_EQ(text_of(plan_pod(input)), c.expected);
}

INSTANTIATE_TEST_SUITE_P(
    All, Plans,
    testing::Values(
        PlanCase{"nothing", "Always", "", "", "sandbox 0, start one"},
        PlanCase{"sandbox", "Always", "x", "", "start one"},
        PlanCase{"first_runs", "Always", "one=r", "", ""},
        PlanCase{"first_created", "Always", "one=-", "", "start one"},
        PlanCase{"first_failed", "Always", "one=1", "", "start one"},
        PlanCase{"first_failed_for_good", "Never", "one=1", "", "finished"},
        PlanCase{"first_done", "Always", "one=0", "", "start side"},
        PlanCase{"sidecar_starts", "Always", "one=0 side=r", "side", ""},
        PlanCase{"sidecar_started", "Always", "one=0 side=r", "", "start two"},
        PlanCase{"sidecar_ended", "Always", "one=0 side=0", "", "start side"},
        PlanCase{"sidecar_ended_while_next_runs", "Always", "one=0 side=1 two=r", "", "start side"},
        PlanCase{"init_done", "Always", "one=0 side=r two=0", "", "start a, start b"},
        PlanCase{"one_runs", "Always", "one=0 side=r two=0 a=r", "", "start b"},
        PlanCase{"all_run", "Always", "one=0 side=r two=0 a=r b=r", "", ""},
        PlanCase{"init_containers_forgotten", "Always", "side=r a=r b=r", "", ""},
        PlanCase{"sidecar_lost_later", "Never", "side=2 a=r b=r", "", "start side"},
        PlanCase{"one_ended_always", "Always", "side=r a=0 b=r", "", "start a"},
        PlanCase{"one_ended_never", "Never", "side=r a=1 b=r", "", ""},
        PlanCase{"one_failed_onfailure", "OnFailure", "side=r a=1 b=0", "", "start a"},
        PlanCase{"all_ended_onfailure", "OnFailure", "side=r a=0 b=0", "", "finished"},
        PlanCase{"all_ended_never", "Never", "side=r a=1 b=0", "", "finished"},
        PlanCase{"sandbox_lost", "Always", "! side=137 a=137 b=137", "", "sandbox 1, start one"},
        PlanCase{"sandbox_lost_never", "Never", "! side=137 a=137 b=137", "", "finished"}),
    [](const auto& info) { return info.param.name; });

TEST(Plan, kills_what_a_probe_gave_up_and_what_was_changed) {
  const json::Value pod = from_text(
      "{'spec': {'containers': [{'name': 'a', 'image': 'x'}, {'name': 'b', 'image': 'x'}]}}");
  PodView view = make_view("a=r b=r", pod);
  view.containers["b"].front().annotations[kContainerHashAnnotation] = "another";
  const std::map<std::string, ProbeKind> failed = {{"id-a", ProbeKind::liveness}};
  const std::map<std::string, bool> hooks;
  PlanInput input{pod, view, [](std::string_view, const std::string&) { return true; }, failed,
                  hooks};

  const PodPlan plan = plan_pod(input);

  ASSERT_EQ(plan.kill.size(), 2U);
  EXPECT_EQ(plan.kill[0].message, "Container a failed liveness probe, will be restarted");
  EXPECT_EQ(plan.kill[1].message, "Container b definition changed, will be restarted");
}

TEST(RestartRules, beat_the_policy) {
  const json::Value pod = from_text("{'spec': {'restartPolicy': 'Never'}}");
  const SpecContainer container{
      ContainerKind::regular,
      from_text("{'name': 'a', 'restartPolicy': 'Never', 'restartPolicyRules': [{'action': "
                "'Restart', 'exitCodes': {'operator': 'In', 'values': [42]}}]}")};

  EXPECT_TRUE(restarts_after(pod, container, 42));
  EXPECT_FALSE(restarts_after(pod, container, 1));
}

}  // namespace
}  // namespace dibs::node
