#include "node/pods/container_config.h"

#include <gmock/gmock.h>

#include "node/pods/container_config_dns.h"
#include "node/pods/volume_test_support.h"

namespace dibs::node {
namespace {

using json::Value;
using test::from_text;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

Value pod_with(const std::string& spec) {
  return from_text("{'metadata': {'name': 'p', 'namespace': 'ns', 'uid': 'u1'}, 'spec': " + spec +
                   "}");
}

NodeFacts some_facts() {
  NodeFacts facts;
  facts.name = "node-0";
  facts.root = "/root-folder";
  facts.memory_bytes = 1000LL << 20;
  facts.resolv_conf = "/nonexistent";
  return facts;
}

TEST(SecurityContext, refuses_root_where_it_must_not_be) {
  const struct {
    const char* pod;
    const char* container;
    std::optional<std::int64_t> user;
    const char* user_name;
    const char* error;
  } cases[] = {
      {"{}", "{}", {}, "", ""},
      {"{}", "{'runAsNonRoot': true, 'runAsUser': 5}", {}, "", ""},
      {"{}", "{'runAsNonRoot': true}", 5, "", ""},
      {"{}",
       "{'runAsNonRoot': true}",
       {},
       "",
       "container has runAsNonRoot and image will run as root (pod: \"p_ns(u1)\", container: c)"},
      {"{}", "{'runAsNonRoot': true}", 0, "",
       "container has runAsNonRoot and image will run as root (pod: \"p_ns(u1)\", container: c)"},
      {"{'runAsNonRoot': true}",
       "{}",
       {},
       "www",
       "container has runAsNonRoot and image has non-numeric user (www), cannot verify user is "
       "non-root (pod: \"p_ns(u1)\", container: c)"},
      {"{'runAsNonRoot': true}",
       "{'runAsUser': 0}",
       {},
       "",
       "container's runAsUser breaks non-root policy (pod: \"p_ns(u1)\", container: c)"},
      {"{'runAsNonRoot': true}", "{'runAsNonRoot': false}", {}, "", ""},
  };
  for (const auto& one : cases) {
    const Value pod = pod_with(std::string("{'securityContext': ") + one.pod + "}");
    const Value container =
        from_text(std::string("{'name': 'c', 'securityContext': ") + one.container + "}");
    ImageInfo image;
    image.user_id = one.user;
    image.user_name = one.user_name;
    const auto security = effective_security(pod, container, image, some_facts());
    EXPECT_EQ(security ? "" : security.error().message(), one.error) << one.container;
  }
}

TEST(SecurityContext, merges_pod_and_container) {
  const Value pod = pod_with(
      "{'securityContext': {'runAsUser': 1000, 'runAsGroup': 3000, 'fsGroup': 2000, "
      "'supplementalGroups': [4000], 'seccompProfile': {'type': 'RuntimeDefault'}}}");
  const Value container = from_text(
      "{'name': 'c', 'securityContext': {'runAsUser': 1001, 'readOnlyRootFilesystem': true, "
      "'allowPrivilegeEscalation': false, 'capabilities': {'add': ['NET_ADMIN'], 'drop': ['ALL']},"
      " 'seccompProfile': {'type': 'Localhost', 'localhostProfile': 'my/p.json'}}}");

  const auto merged = effective_security(pod, container, {}, some_facts());

  ASSERT_TRUE(merged.ok());
  const ContainerSecurity& security = merged->security;
  EXPECT_EQ(security.run_as_user, 1001);
  EXPECT_EQ(security.run_as_group, 3000);
  EXPECT_THAT(security.supplemental_groups, ElementsAre(2000, 4000));
  EXPECT_TRUE(security.read_only_root);
  EXPECT_TRUE(security.no_new_privileges);
  EXPECT_FALSE(security.privileged);
  EXPECT_THAT(security.add_capabilities, ElementsAre("NET_ADMIN"));
  EXPECT_THAT(security.drop_capabilities, ElementsAre("ALL"));
  EXPECT_EQ(security.seccomp, "/root-folder/seccomp/my/p.json");
}

TEST(SecurityContext, images_decide_where_nobody_else_does) {
  ImageInfo image;
  image.user_name = "www";
  auto merged = effective_security(pod_with("{}"), from_text("{}"), image, some_facts());
  ASSERT_TRUE(merged.ok());
  EXPECT_EQ(merged->security.run_as_user, std::nullopt);
  EXPECT_EQ(merged->security.run_as_username, "www");
  EXPECT_EQ(merged->security.seccomp, "Unconfined");

  merged = effective_security(pod_with("{}"), from_text("{}"), {}, some_facts());
  EXPECT_EQ(merged->security.run_as_user, 0);
}

TEST(ContainerLimits, by_requests_and_limits) {
  const struct {
    const char* resources;
    std::int64_t shares, quota, memory, score;
  } cases[] = {
      {"{}", 2, 0, 0, 1000},
      {"{'requests': {'cpu': '100m'}, 'limits': {'memory': '24Mi'}}", 102, 0, 25165824, 999},
      {"{'requests': {'memory': '500Mi'}}", 2, 0, 0, 500},
      {"{'requests': {'memory': '1000Mi'}}", 2, 0, 0, 3},
      {"{'limits': {'cpu': '250m', 'memory': '32Mi'}}", 256, 25000, 33554432, -997},
      {"{'limits': {'cpu': '1m'}}", 2, 1000, 0, 999},
      {"{'requests': {'cpu': '2'}, 'limits': {'cpu': '4'}}", 2048, 400000, 0, 999},
  };
  for (const auto& one : cases) {
    const std::string container = std::string("{'name': 'c', 'resources': ") + one.resources + "}";
    const Value pod = pod_with("{'containers': [" + container + "]}");
    const auto limits = container_limits(pod, from_text(container), some_facts());
    EXPECT_EQ(limits.cpu_shares, one.shares) << one.resources;
    EXPECT_EQ(limits.cpu_quota, one.quota) << one.resources;
    EXPECT_EQ(limits.memory_bytes, one.memory) << one.resources;
    EXPECT_EQ(limits.oom_score_adj, one.score) << one.resources;
  }
}

TEST(ContainerLimits, scores_stay_where_this_process_may_put_them) {
  NodeFacts facts = some_facts();
  facts.lowest_oom_score = 0;
  const Value pod = from_text("{'status': {'qosClass': 'Guaranteed'}}");
  EXPECT_EQ(container_limits(pod, {}, facts).oom_score_adj, 0);
}

TEST(PodHostname, is_chosen_or_the_pods_name) {
  const NodeFacts facts = some_facts();
  EXPECT_EQ(pod_hostname(pod_with("{}"), facts).name, "p");
  EXPECT_EQ(pod_hostname(pod_with("{}"), facts).fqdn, "");
  const auto named = pod_hostname(pod_with("{'hostname': 'chosen', 'subdomain': 'group'}"), facts);
  EXPECT_EQ(named.name, "chosen");
  EXPECT_EQ(named.fqdn, "chosen.group.ns.svc.cluster.local");

  Value pod = pod_with("{}");
  pod.mut("metadata").set("name", std::string(62, 'a') + ".b.c");
  EXPECT_EQ(pod_hostname(pod, facts).name, std::string(62, 'a'));
}

TEST(ContainerLimits, have_huge_pages_by_size) {
  const Value container = from_text(
      "{'resources': {'limits': {'hugepages-2Mi': '8Mi', 'hugepages-1Gi': '1Gi', 'cpu': '1'}}}");
  EXPECT_THAT(container_limits(pod_with("{}"), container, some_facts()).huge_pages,
              testing::UnorderedElementsAre(Pair("2MB", 8 << 20), Pair("1GB", 1 << 30)));
}

TEST(ContainerLimits, have_no_huge_pages_of_other_containers) {
  const Value pod = pod_with(
      "{'containers': [{'name': 'a', 'resources': {'limits': {'hugepages-2Mi': '8Mi'}}},"
      " {'name': 'b'}]}");
  EXPECT_THAT(container_limits(pod, pod["spec"]["containers"][1], some_facts()).huge_pages,
              testing::ElementsAre(Pair("2MB", 0)));
  EXPECT_TRUE(pod_limits(pod).no_other_pages);
}

TEST(EffectiveSecurity, takes_profiles_below_the_node_s_folder_only) {
  for (const char* name : {"../../etc/p.json", "/etc/p.json", "", "a/../../p.json"}) {
    const Value container = Value::object(
        {{"securityContext",
          Value::object({{"seccompProfile",
                          Value::object({{"type", "Localhost"}, {"localhostProfile", name}})}})}});
    EXPECT_FALSE(effective_security(pod_with("{}"), container, {}, some_facts()).ok()) << name;
  }
}

TEST(PodDns, by_policy_and_config) {
  const NodeFacts facts = some_facts();
  const DnsSettings host = parse_resolv_conf(
      "# remark\nnameserver 192.0.2.53\nsearch old\nsearch corp.example. lab\n"
      "options timeout:1 rotate\n");
  EXPECT_EQ(host, (DnsSettings{{"192.0.2.53"}, {"corp.example", "lab"}, {"timeout:1", "rotate"}}));
  const DnsSettings cluster{
      {"10.0.0.10"},
      {"ns.svc.cluster.local", "svc.cluster.local", "cluster.local", "corp.example", "lab"},
      {"ndots:5"}};
  const struct {
    const char* spec;
    DnsSettings dns;
  } cases[] = {
      {"{}", cluster},
      {"{'dnsPolicy': 'ClusterFirst', 'hostNetwork': true}", host},
      {"{'dnsPolicy': 'ClusterFirstWithHostNet', 'hostNetwork': true}", cluster},
      {"{'dnsPolicy': 'Default'}", host},
      {"{'dnsPolicy': 'None', 'dnsConfig': {'nameservers': ['1.1.1.1'], 'searches': ['a'], "
       "'options': [{'name': 'ndots', 'value': '2'}, {'name': 'edns0'}]}}",
       {{"1.1.1.1"}, {"a"}, {"ndots:2", "edns0"}}},
      {"{'dnsPolicy': 'Default', 'dnsConfig': {'options': [{'name': 'timeout', 'value': '9'}]}}",
       {{"192.0.2.53"}, {"corp.example", "lab"}, {"timeout:9", "rotate"}}},
  };
  for (const auto& one : cases) {
    std::vector<std::pair<std::string, std::string>> notes;
    EXPECT_EQ(pod_dns(pod_with(one.spec), facts, host, notes), one.dns) << one.spec;
    EXPECT_THAT(notes, IsEmpty());
  }
}

TEST(PodDns, tells_what_it_left_out) {
  NodeFacts facts = some_facts();
  std::vector<std::pair<std::string, std::string>> notes;
  pod_dns(pod_with("{'dnsPolicy': 'None', 'dnsConfig': {'nameservers': ['1', '2', '3', '4']}}"),
          facts, {}, notes);
  EXPECT_THAT(notes, ElementsAre(Pair("DNSConfigForming",
                                      "Nameserver limits were exceeded, some nameservers have been "
                                      "omitted, the applied nameserver line is: 1 2 3")));
  notes.clear();
  facts.cluster_dns.clear();
  const DnsSettings host{{"9"}, {}, {}};
  EXPECT_EQ(pod_dns(pod_with("{}"), facts, host, notes), host);
  EXPECT_THAT(notes,
              ElementsAre(Pair("MissingClusterDNS",
                               "pod: \"p_ns(u1)\". kubelet does not have ClusterDNS IP configured "
                               "and cannot create Pod using \"ClusterFirst\" policy. Falling back "
                               "to \"Default\" policy.")));
}

TEST(SandboxConfig, tells_what_containers_share) {
  Value pod = pod_with(
      "{'hostname': 'h', 'subdomain': 's', 'setHostnameAsFQDN': true, 'hostPID': true, "
      "'shareProcessNamespace': true, 'securityContext': {'sysctls': "
      "[{'name': 'net.core.somaxconn', 'value': '5'}]}, 'containers': [{'name': 'c', 'ports': "
      "[{'containerPort': 80, 'hostPort': 8080, 'protocol': 'TCP'}]}]}");
  pod.mut("metadata").set("labels", from_text("{'app': 'x'}"));

  auto plan = build_sandbox_config(pod, 2, some_facts(), "/logs");

  ASSERT_TRUE(plan.ok());
  const SandboxConfig& config = plan->config;
  EXPECT_EQ(config.hostname, "h.s.ns.svc.cluster.local");
  EXPECT_EQ(config.log_directory, "/logs/ns_p_u1");
  EXPECT_EQ(config.attempt, 2U);
  EXPECT_TRUE(config.host_pid);
  EXPECT_TRUE(config.share_pid);
  EXPECT_THAT(config.sysctls, ElementsAre(Pair("net.core.somaxconn", "5")));
  ASSERT_EQ(config.ports.size(), 1U);
  EXPECT_EQ(config.ports[0].host_port, 8080);
  EXPECT_THAT(config.labels, ElementsAre(Pair("app", "x"), Pair(kPodNameLabel, "p"),
                                         Pair(kPodNamespaceLabel, "ns"), Pair(kPodUidLabel, "u1")));
  EXPECT_THAT(config.dns_searches,
              ElementsAre("ns.svc.cluster.local", "svc.cluster.local", "cluster.local"));
}

/// One container for each text, of 4 processors and 4 GiB in all.
Value pod_of(const std::string& qos, const std::string& spec) {
  Value pod = pod_with(spec);
  pod.set("status", Value::object({{"qosClass", qos}}));
  return pod;
}

TEST(PodLimits, are_those_of_all_containers_where_each_has_one) {
  const Value pod = pod_of(
      "Burstable",
      "{'overhead': {'cpu': '100m', 'memory': '1Mi'}, 'containers': ["
      "{'name': 'a', 'resources': {'requests': {'cpu': '1'}, 'limits': {'cpu': '2', 'memory': "
      "'1Gi'}}}, {'name': 'b', 'resources': {'limits': {'cpu': '1'}}}]}");

  const ContainerLimits limits = pod_limits(pod);

  EXPECT_EQ(limits.cpu_shares, 1126);
  EXPECT_EQ(limits.cpu_quota, 310'000);
  EXPECT_EQ(limits.memory_bytes, 0);  // b may take what it likes
  EXPECT_EQ(pod_group(pod), "burstable/podu1");
  EXPECT_EQ(pod_group(pod_of("Guaranteed", "{}")), "podu1");
  EXPECT_EQ(pod_group(pod_of("BestEffort", "{}")), "besteffort/podu1");
  EXPECT_EQ(pod_limits(pod_of("BestEffort", "{'containers': [{'name': 'a'}]}")).cpu_shares, 2);
}

TEST(PodLimits, of_the_pod_as_a_whole_hold_for_containers_without_their_own) {
  const Value pod =
      pod_of("Burstable",
             "{'resources': {'requests': {'cpu': '500m', 'memory': '1Gi'}, 'limits': {'cpu': '2', "
             "'memory': '2Gi'}}, 'containers': [{'name': 'a', 'resources': {'requests': {'memory': "
             "'512Mi'}}}, {'name': 'b', 'resources': {'limits': {'memory': '256Mi'}}}]}");

  const ContainerLimits limits = pod_limits(pod);

  EXPECT_EQ(limits.cpu_shares, 512);
  EXPECT_EQ(limits.cpu_quota, 200'000);
  EXPECT_EQ(limits.memory_bytes, 2LL << 30);
  const Value& first = pod["spec"]["containers"][0];
  EXPECT_EQ(container_limits(pod, first, some_facts()).memory_bytes, 2LL << 30);
  EXPECT_EQ(container_limits(pod, first, some_facts()).cpu_shares, 2048);
  EXPECT_EQ(container_limits(pod, pod["spec"]["containers"][1], some_facts()).memory_bytes,
            256LL << 20);
}

TEST(PodLimits, grow_by_claims_on_the_nodes_own_resources) {
  Value pod = pod_of(
      "Burstable",
      "{'containers': [{'name': 'c1', 'resources': {'requests': {'cpu': '1', 'memory': '1Gi'}, "
      "'limits': {'cpu': '2', 'memory': '2Gi'}}}, {'name': 'c2', 'resources': {'requests': {'cpu': "
      "'1', 'memory': '1Gi'}, 'limits': {'cpu': '2', 'memory': '2Gi'}}}]}");
  pod.mut("status").set(
      "nodeAllocatableResourceClaimStatuses",
      from_text("[{'resourceClaimName': 'x', 'containers': ['c1', 'c2'], 'mapping': [{'name': "
                "'cpu', 'quantity': '1'}, {'name': 'memory', 'quantity': '1000Mi'}], 'overhead': "
                "[{'name': 'cpu', 'perPod': '100m', 'perContainer': '100m'}, {'name': 'memory', "
                "'perPod': '100Mi', 'perContainer': '100Mi'}]}]"));

  const ContainerLimits all = pod_limits(pod);
  const ContainerLimits one = container_limits(pod, pod["spec"]["containers"][0], some_facts());

  EXPECT_EQ(all.cpu_shares, 3379);  // 3300m
  EXPECT_EQ(all.cpu_quota, 530'000);
  EXPECT_EQ(all.memory_bytes, 5396LL << 20);
  EXPECT_EQ(one.cpu_shares, 1024);
  EXPECT_EQ(one.cpu_quota, 320'000);
  EXPECT_EQ(one.memory_bytes, 3248LL << 20);
  NodeFacts facts = some_facts();
  facts.memory_bytes = 16LL << 30;
  // 1024 + 1000/2 + 100/2 + 100 of 16384 MiB
  EXPECT_EQ(oom_score_adjust(pod, pod["spec"]["containers"][0], facts), 1000 - 102);
}

TEST(OomScore, counts_what_the_pod_as_a_whole_asks_for_and_spares_sidecars) {
  NodeFacts facts = some_facts();
  facts.memory_bytes = 1000 << 20;
  const Value pod = pod_of(
      "Burstable",
      "{'resources': {'requests': {'memory': '400Mi'}}, 'initContainers': [{'name': 's', "
      "'restartPolicy': 'Always', 'resources': {'requests': {'memory': '10Mi'}}}], 'containers': "
      "[{'name': 'a', 'resources': {'requests': {'memory': '90Mi'}}}, {'name': 'b', 'resources': "
      "{'requests': {'memory': '200Mi'}}}]}");

  // 100 of the 400 are nobody's: 33 for each of three.
  EXPECT_EQ(oom_score_adjust(pod, pod["spec"]["containers"][0], facts), 1000 - 123);
  EXPECT_EQ(oom_score_adjust(pod, pod["spec"]["containers"][1], facts), 1000 - 233);
  EXPECT_EQ(oom_score_adjust(pod, pod["spec"]["initContainers"][0], facts), 1000 - 123);
  const Value critical = pod_of("BestEffort",
                                "{'priority': 2000001000, 'priorityClassName': "
                                "'system-node-critical', 'containers': [{}]}");
  EXPECT_EQ(oom_score_adjust(critical, critical["spec"]["containers"][0], facts), -997);
  const Value merely = pod_of("BestEffort",
                              "{'priority': 2000000000, 'priorityClassName': "
                              "'system-cluster-critical', 'containers': [{}]}");
  EXPECT_EQ(oom_score_adjust(merely, merely["spec"]["containers"][0], facts), 1000);
}

TEST(SandboxConfig, refuses_names_that_no_kernel_takes) {
  Value pod = pod_with("{'hostname': '" + std::string(60, 'h') +
                       "', 'subdomain': 's', 'setHostnameAsFQDN': true}");
  auto plan = build_sandbox_config(pod, 0, some_facts(), "/logs");
  ASSERT_FALSE(plan.ok());
  EXPECT_THAT(plan.error().message(),
              testing::HasSubstr("too long (64 characters is the max, 83 characters requested)"));
}

}  // namespace
}  // namespace dibs::node
