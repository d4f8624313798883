#include "scheduler/counted_spec.h"

#include <gtest/gtest.h>

#include "json/test_text.h"
#include "scheduler/pod.h"

namespace dibs::scheduler {
namespace {

using json::Value;
using json::test::from_text;

Resources counted(const std::string& text) { return Pod::read(from_text(text))->shape->requests; }

TEST(CountedSpec, is_the_spec_where_nothing_changes) {
  const Value pod = from_text(
      "{'metadata': {'name': 'p'}, 'spec': {'containers': [{'name': 'c', 'resources': {'requests': "
      "{'cpu': '1'}}}]}, 'status': {'containerStatuses': [{'name': 'c', 'allocatedResources': "
      "{'cpu': '1'}, 'resources': {'requests': {'cpu': '1'}}}]}}");
  EXPECT_TRUE(counted_spec(pod).same_node(pod["spec"]));
}

TEST(CountedSpec, takes_the_most_of_what_is_asked_granted_and_held) {
  const char* const shown =
      "'containerStatuses': [{'name': 'c', 'allocatedResources': {'cpu': '2'}, 'resources': "
      "{'requests': {'cpu': '3'}}}]";
  const auto pod = [&](const std::string& cpu, const std::string& reason) {
    return counted(
               "{'metadata': {'name': 'p'}, 'spec': {'containers': [{'name': 'c', 'resources': "
               "{'requests': {'cpu': '" +
               cpu +
               "'}}}]}, 'status': {'conditions': [{'type': 'PodResizePending', 'reason': "
               "'" +
               reason + "'}], " + shown + "}}")
        .cpu;
  };
  EXPECT_EQ(pod("1", "Deferred"), 3000);
  EXPECT_EQ(pod("8", "Deferred"), 8000);
  EXPECT_EQ(pod("8", "Infeasible"), 3000);
}

TEST(CountedSpec, of_the_pod_as_a_whole_takes_the_most_too) {
  EXPECT_EQ(counted("{'metadata': {'name': 'p'}, 'spec': {'resources': {'requests': {'cpu': '1'}}, "
                    "'containers': [{'name': 'c'}]}, 'status': {'allocatedResources': {'cpu': "
                    "'4'}}}")
                .cpu,
            4000);
}

TEST(CountedSpec, has_claims_on_the_nodes_own_resources) {
  const char* const status =
      "'status': {'nodeAllocatableResourceClaimStatuses': [{'resourceClaimName': 'x', "
      "'containers': ['a', 'b'], 'mapping': [{'name': 'cpu', 'quantity': '1'}], 'overhead': "
      "[{'name': 'memory', 'perPod': '10', 'perContainer': '7'}, {'name': 'hugepages-2Mi', "
      "'perPod': '2Mi'}]}]}";
  const Resources plain =
      counted(std::string("{'metadata': {'name': 'p'}, 'spec': {'containers': [{'name': 'a'}, "
                          "{'name': 'b'}]}, ") +
              status + "}");
  EXPECT_EQ(plain.cpu, 1000);
  EXPECT_EQ(plain.memory, 24);
  EXPECT_EQ(plain.scalar("hugepages-2Mi"), 2 << 20);
  const Resources whole =
      counted(std::string("{'metadata': {'name': 'p'}, 'spec': {'resources': {'requests': {'cpu': "
                          "'2'}}, 'containers': [{'name': 'a'}, {'name': 'b'}]}, ") +
              status + "}");
  EXPECT_EQ(whole.cpu, 2000);
  EXPECT_EQ(whole.memory, 24);
}

}  // namespace
}  // namespace dibs::scheduler
