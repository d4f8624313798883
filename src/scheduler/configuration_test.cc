#include "scheduler/configuration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "scheduler/scores/scores.h"

namespace dibs::scheduler {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kHead =
    "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

api::Features gates_of(const std::string& release, const std::string& changes = "") {
  return *api::Features::parse(release, changes);
}

Configuration parse(const std::string& text) {
  auto read = Configuration::parse(cat(kHead, text), gates_of("1.37"));
  if (read.ok()) return std::move(*read);
  ADD_FAILURE() << text << "\n" << read.error().message();
  return {};
}

std::string refusal(const std::string& text, const api::Features& gates = gates_of("1.37")) {
  const auto read = Configuration::parse(cat(kHead, text), gates);
  return read.ok() ? "" : read.error().message();
}

/// The only profile, from its `plugins` and `pluginConfig` in flow style.
std::string profile(const std::string& plugins, const std::string& config = "[]") {
  return cat("profiles: [{plugins: ", plugins, ", pluginConfig: ", config, "}]\n");
}

std::string args(const std::string& plugin, const std::string& given) {
  return profile("{}", cat("[{name: ", plugin, ", args: ", given, "}]"));
}

TEST(Configuration, reads_profiles_plugins_and_timings) {
  const Configuration read = parse(
      "podInitialBackoffSeconds: 3\n"
      "profiles:\n"
      "- schedulerName: plain\n"
      "  plugins:\n"
      "    multiPoint: {disabled: [{name: DynamicResources}]}\n"
      "    score: {disabled: [{name: '*'}], enabled: [{name: NodeAffinity, weight: 7}]}\n"
      "- schedulerName: default-scheduler\n"
      "  pluginConfig: [{name: DynamicResources, args: {bindingTimeout: 30s}}]\n");

  ASSERT_EQ(read.profiles.size(), 2U);
  EXPECT_FALSE(read.profiles[0].devices());
  EXPECT_TRUE(read.profiles[0].has(Point::filter, Plugin::taint_toleration));
  EXPECT_EQ(read.profiles[0].weight("NodeAffinity"), 7);
  EXPECT_EQ(read.profiles[0].weight("TaintToleration"), 0);
  EXPECT_EQ(read.profiles[1].binding_timeout, Duration(std::chrono::seconds(30)));
  EXPECT_EQ(read.initial_backoff, Duration(std::chrono::seconds(3)));
  EXPECT_THAT(read.warnings, IsEmpty());
}

TEST(Configuration, has_a_percentage_of_nodes_to_score) {
  const Configuration both = parse(
      "percentageOfNodesToScore: 20\nprofiles:\n- schedulerName: a\n"
      "- schedulerName: b\n  percentageOfNodesToScore: 70\n");
  EXPECT_EQ(both.profiles[0].percentage_to_score, 20);
  EXPECT_EQ(both.profiles[1].percentage_to_score, 70);
  EXPECT_EQ(parse("percentageOfNodesToScore: 5\n").profiles[0].percentage_to_score, 5);
}

TEST(Configuration, is_the_default_when_it_says_nothing) {
  const Configuration read = parse("");

  const Profile standard = Profile::standard();
  ASSERT_EQ(read.profiles.size(), 1U);
  EXPECT_EQ(read.profiles[0].name, "default-scheduler");
  EXPECT_EQ(read.profiles[0].plugins, standard.plugins);
  for (std::size_t i = 0; i < kPlugins; ++i) {
    const PluginInfo& plugin = info(static_cast<Plugin>(i));
    const Score* score = find_score(plugin.name);
    const bool scores = plugin.here && (plugin.points & bit(Point::score)) != 0;
    EXPECT_EQ(score != nullptr, scores) << plugin.name;
    EXPECT_EQ(standard.weight(plugin.name), score != nullptr ? score->weight : 0) << plugin.name;
  }
}

TEST(Configuration, switches_plugins_as_kube_scheduler_does) {
  // A plugin that is named without a weight has 1, whatever the default is.
  EXPECT_EQ(parse(profile("{score: {enabled: [{name: TaintToleration}]}}"))
                .profiles[0]
                .weight("TaintToleration"),
            1);
  // A list for a point wins over multiPoint.
  EXPECT_EQ(parse(profile("{multiPoint: {enabled: [{name: NodeAffinity, weight: 5}]}, "
                          "score: {enabled: [{name: NodeAffinity, weight: 9}]}}"))
                .profiles[0]
                .weight("NodeAffinity"),
            9);
  // What is enabled wins over what is disabled.
  EXPECT_TRUE(parse(profile("{multiPoint: {disabled: [{name: NodePorts}], "
                            "enabled: [{name: NodePorts}]}}"))
                  .profiles[0]
                  .has(Point::filter, Plugin::node_ports));
  const Profile bare =
      parse(profile("{multiPoint: {disabled: [{name: '*'}], enabled: [{name: PrioritySort}, "
                    "{name: DefaultBinder}, {name: NodeName}]}}"))
          .profiles[0];
  EXPECT_EQ(bare.filters(), bit(Plugin::node_name));
  EXPECT_THAT(bare.scores, IsEmpty());
  const Profile calm =
      parse(profile("{postFilter: {disabled: [{name: DefaultPreemption}]}}")).profiles[0];
  EXPECT_FALSE(calm.has(Point::post_filter, Plugin::default_preemption));
  EXPECT_TRUE(calm.has(Point::post_filter, Plugin::dynamic_resources));
}

TEST(Configuration, takes_arguments_of_plugins) {
  const auto of = [](const std::string& plugin, const std::string& given) {
    return parse(args(plugin, given)).profiles[0];
  };
  EXPECT_EQ(of("InterPodAffinity", "{hardPodAffinityWeight: 7}").hard_affinity_weight, 7);
  EXPECT_TRUE(
      of("InterPodAffinity", "{ignorePreferredTermsOfExistingPods: true}").ignore_preferred_terms);
  EXPECT_EQ(of("DefaultPreemption", "{minCandidateNodesAbsolute: 3}").victims_absolute, 3);
  EXPECT_EQ(of("DefaultPreemption", "{minCandidateNodesAbsolute: 3}").victims_percentage, 10);
  EXPECT_EQ(of("NodeResourcesBalancedAllocation", "{resources: [{name: cpu}]}").balanced.size(),
            1U);
  EXPECT_EQ(of("PodTopologySpread", "{defaultingType: List}").name, "default-scheduler");
  const Profile near =
      of("NodeAffinity",
         "{addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
         "{nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}, "
         "preferredDuringSchedulingIgnoredDuringExecution: [{weight: 3, "
         "preference: {matchExpressions: [{key: b, operator: Exists}]}}]}}");
  EXPECT_TRUE(near.added_affinity.has_value());
  EXPECT_EQ(near.added_preferences.at(0).weight, 3);
  EXPECT_EQ(of("PodTopologySpread", "{defaultingType: System}").spread.size(), 2U);
  EXPECT_TRUE(of("PodTopologySpread", "{defaultingType: List}").spread.empty());
  EXPECT_TRUE(of("PodTopologySpread",
                 "{defaultingType: List, defaultConstraints: [{topologyKey: zone, maxSkew: 1, "
                 "whenUnsatisfiable: DoNotSchedule}]}")
                  .spread_refuses());
  const FitArgs fit = of("NodeResourcesFit",
                         "{ignoredResourceGroups: [a.io], ignoredResources: [b.io/x], "
                         "scoringStrategy: {type: RequestedToCapacityRatio, "
                         "resources: [{name: memory, weight: 3}], requestedToCapacityRatio: "
                         "{shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]}}}")
                          .fit;
  EXPECT_EQ(fit.strategy, FitArgs::Strategy::requested_to_capacity);
  ASSERT_EQ(fit.resources.size(), 1U);
  EXPECT_EQ(fit.resources[0].kind, ScoredResource::Kind::memory);
  EXPECT_EQ(fit.resources[0].weight, 3);
  EXPECT_EQ(fit.shape.at(1).score, 100);
  EXPECT_TRUE(fit.ignores("a.io/gpu"));
  EXPECT_TRUE(fit.ignores("b.io/x"));
  EXPECT_FALSE(fit.ignores("b.io/y"));
  EXPECT_FALSE(fit.ignores("hugepages-2Mi"));
  // Without arguments, and with those of their kind named.
  EXPECT_EQ(refusal(args("NodeName", "{}")), "");
  EXPECT_EQ(refusal(args("DefaultPreemption", "null")), "");
  EXPECT_EQ(refusal(args("InterPodAffinity",
                         "{apiVersion: kubescheduler.config.k8s.io/v1, "
                         "kind: InterPodAffinityArgs}")),
            "");
}

TEST(Configuration, refuses_what_cannot_be_decoded) {
  const std::string strict = "strict decoding error: ";
  const std::string decoding = "decoding .profiles[0].pluginConfig[0]: ";
  const std::pair<std::string, std::string> cases[] = {
      {"profile: []\n", strict + "unknown field \"profile\""},
      {"parallelism: many\n",
       "json: cannot unmarshal string into Go struct field KubeSchedulerConfiguration.parallelism "
       "of type int32"},
      {"profiles: [{plugins: {scores: {}}}]\n",
       strict + "unknown field \"profiles[0].plugins.scores\""},
      {"parallelism: 1\nparallelism: 2\n",
       strict + "yaml: unmarshal errors:\n  line 4: key \"parallelism\" already set in map"},
      {args("NodeResourcesFit", "{scoringStrategy: {resources: [{Name: cpu}]}}"),
       strict + decoding + strict + "decoding args for plugin NodeResourcesFit: " + strict +
           "unknown field \"scoringStrategy.resources[0].Name\""},
      {args("DefaultPreemption", "{kind: InterPodAffinityArgs}"),
       decoding + "args for plugin DefaultPreemption were not of type "
                  "DefaultPreemptionArgs.kubescheduler.config.k8s.io, got "
                  "InterPodAffinityArgs.kubescheduler.config.k8s.io"},
      {args("DefaultPreemption", "{apiVersion: kubescheduler.config.k8s.io/v1beta3}"),
       decoding +
           "decoding args for plugin DefaultPreemption: no kind \"\" is registered for version "
           "\"kubescheduler.config.k8s.io/v1beta3\""},
  };
  for (const auto& [text, message] : cases) EXPECT_EQ(refusal(text), message) << text;
  const auto other = Configuration::parse("apiVersion: v1\nkind: Pod\n", gates_of("1.37"));
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(other.error().message(), HasSubstr("no kind \"Pod\" is registered for version"));
}

TEST(Configuration, refuses_values_out_of_range) {
  const std::pair<std::string, std::string> cases[] = {
      {"percentageOfNodesToScore: 101\n",
       "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]"},
      {"profiles: [{percentageOfNodesToScore: -1}]\n",
       "profiles[0].percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100]"},
      {"parallelism: 0\n",
       "parallelism: Invalid value: 0: should be an integer value greater than zero"},
      {"podInitialBackoffSeconds: 0\n",
       "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0"},
      {"podInitialBackoffSeconds: 30\n",
       "podMaxBackoffSeconds: Invalid value: 10: must be greater than or equal to "
       "PodInitialBackoffSeconds"},
      {"leaderElection: {leaseDuration: 5s}\n",
       "leaderElection.leaseDuration: Invalid value: \"10s\": must be greater than "
       "`RenewDeadline`"},
      {"leaderElection: {retryPeriod: -1s, resourceLock: endpoints}\n",
       "[leaderElection.retryPeriod: Invalid value: \"-1s\": must be greater than zero, "
       "leaderElection.resourceLock: Invalid value: \"endpoints\": resourceLock value must be "
       "\"leases\"]"},
      {"clientConnection: {burst: -1}\n",
       "clientConnection.burst: Invalid value: -1: must be non-negative"},
      {"extenders: [{urlPrefix: 'http://a', prioritizeVerb: p}]\n",
       "extenders[0].weight: Invalid value: 0: must have a positive weight applied to it"},
      {"extenders: [{urlPrefix: 'http://a', bindVerb: b}, {urlPrefix: 'http://b', bindVerb: b}]\n",
       "extenders: Invalid value: \"found 2 extenders implementing bind\": only one extender can "
       "implement bind"},
      {"extenders: [{urlPrefix: 'http://a', filterVerb: f, managedResources: [{name: cpu}]}]\n",
       "extenders[0].managedResources[0].name: Invalid value: \"cpu\": is an invalid extended "
       "resource name"},
      {"extenders: [{urlPrefix: 'http://a', filterVerb: f, managedResources: [{name: a.io/b}, "
       "{name: a.io/b}]}]\n",
       "extenders[0].managedResources[1].name: Invalid value: \"a.io/b\": duplicate extender "
       "managed resource name"},
      {"extenders: [{urlPrefix: 'http://a', filter: f}]\n",
       "strict decoding error: unknown field \"extenders[0].filter\""},
      {"extenders: [{urlPrefix: 'https://a', filterVerb: f, tlsConfig: {insecure: true, caFile: "
       "x}}]\n",
       "extenders[0].tlsConfig.insecure: Invalid value: true: specifying a root certificates file "
       "with the insecure flag is not allowed"},
      {"profiles: [{schedulerName: a}, {schedulerName: a}]\n",
       "profiles[1].schedulerName: Duplicate value: \"a\""},
      {"profiles: [{schedulerName: a}, {}]\n", "profiles[1].schedulerName: Required value"},
      {"profiles: [{schedulerName: ''}]\n", "profiles[0].schedulerName: Required value"},
  };
  for (const auto& [text, message] : cases) EXPECT_EQ(refusal(text), message) << text;
}

TEST(Configuration, takes_extenders) {
  const Configuration read = parse(
      "extenders:\n"
      "- {urlPrefix: 'http://a/x/', filterVerb: f, ignorable: true, httpTimeout: 2s}\n"
      "- {urlPrefix: 'https://b', bindVerb: b, enableHTTPS: true, nodeCacheCapable: true,\n"
      "   managedResources: [{name: a.io/b, ignoredByScheduler: true}, {name: a.io/c}]}\n"
      "- {urlPrefix: 'https://c', tlsConfig: {caData: eA==, serverName: c}, enableHTTPS: true}\n");

  // Those that may be passed over come last.
  ASSERT_EQ(read.extenders.size(), 3U);
  EXPECT_EQ(read.extenders[0].url, "https://b");
  EXPECT_TRUE(read.extenders[0].tls.insecure);
  EXPECT_TRUE(read.extenders[0].knows_nodes);
  EXPECT_EQ(read.extenders[0].timeout, Duration(std::chrono::seconds(5)));
  EXPECT_THAT(read.extenders[0].resources, ElementsAre("a.io/b", "a.io/c"));
  EXPECT_EQ(read.extenders[1].tls.ca, "x");
  EXPECT_FALSE(read.extenders[1].tls.insecure);
  EXPECT_EQ(read.extenders[2].url, "http://a/x");
  EXPECT_EQ(read.extenders[2].timeout, Duration(std::chrono::seconds(2)));
  EXPECT_TRUE(read.profiles[0].fit.ignores("a.io/b"));
  EXPECT_FALSE(read.profiles[0].fit.ignores("a.io/c"));
  EXPECT_THAT(read.warnings, ElementsAre("extenders[2] has no effect: it has no verb"));
}

TEST(Configuration, refuses_arguments_that_are_wrong_or_not_taken) {
  const std::string at = "profiles[0].pluginConfig[0]";
  const std::pair<std::string, std::string> cases[] = {
      {args("NodeName", "{a: b}"), at + ".args: Forbidden: plugin NodeName takes no arguments"},
      {args("ImageLocality", "{a: b}"),
       at + ".args: Forbidden: plugin ImageLocality takes no arguments"},
      {args("Nothing", "{}"), at + ": Invalid value: \"Nothing\": plugin does not exist"},
      {args("EBSLimits", "{}"),
       at + ": Invalid value: \"EBSLimits\": was invalid in version \"v1\" "
            "(KubeSchedulerConfiguration is version \"kubescheduler.config.k8s.io/v1\")"},
      {profile("{}", "[{name: NodeName}, {name: NodeName}]"),
       "profiles[0].pluginConfig[1]: Duplicate value: \"NodeName\""},
      {args("InterPodAffinity", "{hardPodAffinityWeight: 101}"),
       at + ".args.hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]"},
      {args("DefaultPreemption", "{minCandidateNodesPercentage: 101}"),
       at + ".args.minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100]"},
      {args("DynamicResources", "{bindingTimeout: 10ms}"),
       at + ".args.bindingTimeout: Invalid value: \"10ms\": must be at least 1 second"},
      {args("DynamicResources", "{filterTimeout: -1s}"),
       at + ".args.filterTimeout: Invalid value: \"-1s\": must be zero or positive"},
      {args("NodeResourcesFit", "{ignoredResources: ['a b']}"),
       at + ".args.ignoredResources[0]: Invalid value: \"a b\": name part must consist of "
            "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
            "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
            "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"},
      {args("PodTopologySpread",
            "{defaultingType: List, defaultConstraints: [{topologyKey: zone, whenUnsatisfiable: "
            "Maybe, labelSelector: {}}]}"),
       "[" + at +
           ".args.defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf), " +
           at +
           ".args.defaultConstraints[0].whenUnsatisfiable: Unsupported value: \"Maybe\": "
           "supported values: \"DoNotSchedule\", \"ScheduleAnyway\", " +
           at +
           ".args.defaultConstraints[0].labelSelector: Forbidden: constraint must not define a "
           "selector, as they deduced for each pod]"},
      {args("PodTopologySpread",
            "{defaultingType: List, defaultConstraints: [{topologyKey: zone, maxSkew: 1, "
            "whenUnsatisfiable: DoNotSchedule}, {topologyKey: zone, maxSkew: 2, whenUnsatisfiable: "
            "DoNotSchedule}]}"),
       at + ".args.defaultConstraints[1]: Duplicate value: \"{zone, DoNotSchedule}\""},
      {args("PodTopologySpread", "{defaultingType: Own}"),
       at + ".args.defaultingType: Unsupported value: \"Own\": supported values: \"System\", "
            "\"List\""},
      {args("PodTopologySpread", "{defaultConstraints: [{maxSkew: 1}]}"),
       at + ".args.defaultingType: Invalid value: \"System\": when .defaultConstraints are not "
            "empty"},
      {args("NodeResourcesBalancedAllocation", "{resources: [{name: cpu, weight: 2}]}"),
       at + ".args.resources[0].weight: Invalid value: 2: must be 1"},
      {args("NodeResourcesFit", "{ignoredResourceGroups: [a/b]}"),
       at + ".args.ignoredResourceGroups[0]: Invalid value: \"a/b\": resource group name can't "
            "contain '/'"},
      {args("NodeResourcesFit", "{scoringStrategy: {type: Best}}"),
       at + ".args.scoringStrategy.type: Unsupported value: \"Best\": supported values: "
            "\"LeastAllocated\", \"MostAllocated\", \"RequestedToCapacityRatio\""},
      {args("NodeResourcesFit",
            "{scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 101}]}}"),
       at + ".args.scoringStrategy.resources[0].weight: Invalid value: 101: resource weight of "
            "cpu not in valid range (0, 100]"},
      {args("NodeResourcesFit", "{scoringStrategy: {type: RequestedToCapacityRatio}}"),
       at + ".args.scoringStrategy.requestedToCapacityRatio: Required value: must be specified "
            "when type is RequestedToCapacityRatio"},
      {args("NodeResourcesFit",
            "{scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: "
            "[{utilization: 5, score: 1}, {utilization: 5, score: 11}]}}}"),
       "[" + at +
           ".args.scoringStrategy.requestedToCapacityRatio.shape[1].utilization: Invalid value: "
           "5: values must be sorted in increasing order, " +
           at +
           ".args.scoringStrategy.requestedToCapacityRatio.shape[1].score: Invalid value: 11: not "
           "in valid range [0, 10]]"},
  };
  for (const auto& [text, message] : cases) EXPECT_EQ(refusal(text), message) << text;
}

TEST(Configuration, refuses_profiles_that_cannot_be_made) {
  const std::string creating = "creating profile for scheduler name default-scheduler: ";
  const std::pair<std::string, std::string> cases[] = {
      {"{filter: {enabled: [{name: Nothing}]}}", "FilterPlugin \"Nothing\" does not exist"},
      {"{multiPoint: {enabled: [{name: Nothing}]}}", "PreFilterPlugin \"Nothing\" does not exist"},
      {"{permit: {enabled: [{name: NodeName}]}}",
       "plugin \"NodeName\" does not extend PermitPlugin plugin"},
      {"{score: {enabled: [{name: ImageLocality}, {name: ImageLocality}]}}",
       "plugin \"ImageLocality\" already registered as \"ScorePlugin\""},
      {"{multiPoint: {enabled: [{name: NodeName}, {name: NodeName}]}}",
       "plugin \"NodeName\" already registered as \"FilterPlugin\""},
      {"{queueSort: {disabled: [{name: '*'}]}}",
       "only one queue sort plugin required for profile with scheduler name "
       "\"default-scheduler\", but got 0"},
      {"{bind: {disabled: [{name: DefaultBinder}]}}",
       "at least one bind plugin is needed for profile with scheduler name "
       "\"default-scheduler\""},
      {"{preFilter: {disabled: [{name: NodePorts}]}}",
       "plugin \"NodePorts\" is enabled as FilterPlugin and so must be as PreFilterPlugin"},
      {"{filter: {disabled: [{name: DynamicResources}]}}",
       "plugin \"DynamicResources\" is enabled as ReservePlugin and so must be as FilterPlugin"},
      {"{preScore: {disabled: [{name: InterPodAffinity}]}}",
       "plugin \"InterPodAffinity\" is enabled as ScorePlugin and so must be as PreScorePlugin"},
  };
  for (const auto& [plugins, message] : cases) {
    EXPECT_EQ(refusal(profile(plugins)), creating + message) << plugins;
  }
}

TEST(Configuration, tells_what_has_no_effect) {
  EXPECT_THAT(
      parse(cat("parallelism: 4\nenableProfiling: false\nclientConnection: {qps: 5}\n",
                profile("{filter: {disabled: [{name: Misspelled}]}, permit: {enabled: [{name: "
                        "GangScheduling}]}, multiPoint: {enabled: [{name: NodeName, weight: 3}]}}",
                        "[{name: DynamicResources, args: {filterTimeout: 10s}}]")))
          .warnings,
      ElementsAre(
          "parallelism has no effect: one node is judged after the other",
          "clientConnection.qps has no effect: requests are not limited by rate",
          "profiles[0].pluginConfig[0].args.filterTimeout has no effect: the search for devices "
          "reads no clock",
          "profiles[0].plugins.multiPoint.enabled[0].weight has no effect: NodeName does not score",
          "profiles[0].plugins.filter.disabled[0] has no effect: plugin \"Misspelled\" does not "
          "exist",
          "profiles[0].plugins.permit.enabled[0] has no effect: GangScheduling is not "
          "implemented"));
}

TEST(Configuration, has_a_timeout_for_volumes) {
  const auto args = [](const char* text) {
    return profile("{}", cat("[{name: VolumeBinding, args: {", text, "}}]"));
  };
  EXPECT_EQ(parse(args("bindTimeoutSeconds: 30")).profiles.front().volume_timeout,
            std::chrono::seconds(30));
  EXPECT_THAT(refusal(args("bindTimeoutSeconds: -1")),
              testing::HasSubstr("invalid BindTimeoutSeconds, should not be a negative value"));
  EXPECT_THAT(refusal(args("shape: [{utilization: 1, score: 2}]"), gates_of("1.36")),
              testing::HasSubstr("unexpected field `shape`"));
  const auto shape =
      parse(args("shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]"))
          .profiles.front()
          .volume_shape;
  ASSERT_EQ(shape.size(), 2U);
  EXPECT_EQ(shape[1].score, 100);
  EXPECT_THAT(refusal(args("shape: [{utilization: 101, score: 2}]")),
              testing::HasSubstr("shape[0].utilization: Invalid value: 101"));
}

TEST(Configuration, refuses_arguments_of_features_that_are_off) {
  const std::string at = "profiles[0].pluginConfig[0].args.";
  const std::string binding = args("DynamicResources", "{bindingTimeout: 10ms}");
  const std::string why =
      at +
      "bindingTimeout: Forbidden: DRADeviceBindingConditions or DRAResourceClaimDeviceStatus "
      "feature gate is disabled";
  EXPECT_EQ(refusal(binding, gates_of("1.36", "DRADeviceBindingConditions=false")), why);
  EXPECT_EQ(refusal(binding, gates_of("1.36", "DRAResourceClaimDeviceStatus=false")), why);
  EXPECT_EQ(refusal(binding, gates_of("1.34")), why);
  EXPECT_EQ(refusal(args("DynamicResources", "{bindingTimeout: 10s}"),
                    gates_of("1.34", "DRADeviceBindingConditions=true")),
            "");

  const std::string filter = args("DynamicResources", "{filterTimeout: 1s}");
  EXPECT_EQ(refusal(filter, gates_of("1.36", "DRASchedulerFilterTimeout=false")),
            at + "filterTimeout: Forbidden: DRASchedulingFilterTimeout feature gate is disabled");
  EXPECT_EQ(refusal(filter, gates_of("1.34")), "");
}

}  // namespace
}  // namespace dibs::scheduler
