// Gangs against brute force: placed if and only if there is a placement, no device given twice.
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <set>

#include "scheduler/gang_problem.h"

namespace dibs::scheduler::test {
namespace {

class Brute {
 public:
  explicit Brute(const Problem& problem) : problem_(problem) {
    for (std::size_t n = 0; n < problem.nodes.size(); ++n) {
      for (int d = 0; d < problem.nodes[n].devices; ++d) {
        devices_.push_back({static_cast<int>(n), is_big(d)});
      }
    }
    for (int d = 0; d < problem.anywhere; ++d) devices_.push_back({-1, is_big(d)});
    taken_.resize(devices_.size());
    cpu_.resize(problem.nodes.size());
    shared_.resize(problem.shared.size());
    where_.assign(problem.pods.size(), -1);
  }
  bool solvable() { return pods_from(0); }

 private:
  struct Device {
    int node = -1;
    bool big = false;
  };

  std::string label_of(int node, const std::string& key) const {
    const Problem::Node& one = problem_.nodes[static_cast<std::size_t>(node)];
    return key == "rack" ? one.rack : one.row;
  }

  /// What is placed can be bound as it is.
  bool is_whole() const {
    std::vector<std::size_t> have(problem_.groups.size());
    std::vector<std::size_t> pods(problem_.groups.size());
    std::vector<std::set<std::string>> labels(problem_.groups.size());
    std::size_t placed = 0;
    for (std::size_t i = 0; i < where_.size(); ++i) {
      if (where_[i] < 0) continue;
      ++placed;
      ++have[problem_.pods[i].group];
      for (std::size_t g = problem_.pods[i].group; g != GangOrder::kNone;
           g = problem_.groups[g].parent) {
        ++pods[g];
        if (!problem_.groups[g].key.empty()) {
          labels[g].insert(label_of(where_[i], problem_.groups[g].key));
        }
      }
    }
    if (placed == 0) return false;
    for (std::size_t g = problem_.groups.size(); g-- > 0;) {
      if (labels[g].size() > 1 || labels[g].contains("")) return false;
      if (have[g] >= problem_.groups[g].needed) {
        if (g > 0) have[problem_.groups[g].parent] += 1;
        continue;
      }
      if (g == 0 || pods[g] > 0) return false;
    }
    return true;
  }

  bool pods_from(std::size_t i) {
    if (is_whole()) return true;
    if (i == problem_.pods.size()) return false;
    const Problem::Pod& pod = problem_.pods[i];
    for (std::size_t n = 0; n < problem_.nodes.size(); ++n) {
      if (cpu_[n] + pod.cpu > problem_.nodes[n].cpu) continue;
      cpu_[n] += pod.cpu;
      where_[i] = static_cast<int>(n);
      const bool found = shared_of(i, static_cast<int>(n));
      where_[i] = -1;
      cpu_[n] -= pod.cpu;
      if (found) return true;
    }
    return pods_from(i + 1);
  }

  bool shared_of(std::size_t i, int node) {
    const int number = problem_.pods[i].shared;
    if (number < 0) return own_of(i, node);
    std::vector<std::size_t>& chosen = shared_[static_cast<std::size_t>(number)];
    if (!chosen.empty()) {
      for (const std::size_t d : chosen) {
        if (devices_[d].node >= 0 && devices_[d].node != node) return false;
      }
      return own_of(i, node);
    }
    return choose(0, problem_.shared[static_cast<std::size_t>(number)], false, node, chosen,
                  [&] { return own_of(i, node); });
  }

  bool own_of(std::size_t i, int node) {
    std::vector<std::size_t> chosen;
    return choose(0, problem_.pods[i].own, problem_.pods[i].big, node, chosen,
                  [&] { return pods_from(i + 1); });
  }

  bool choose(std::size_t from, int count, bool big, int node, std::vector<std::size_t>& chosen,
              const std::function<bool()>& then) {
    if (count == 0) return then();
    for (std::size_t d = from; d < devices_.size(); ++d) {
      if (taken_[d] || (big && !devices_[d].big)) continue;
      if (devices_[d].node >= 0 && devices_[d].node != node) continue;
      taken_[d] = 1;
      chosen.push_back(d);
      const bool found = choose(d + 1, count - 1, big, node, chosen, then);
      chosen.pop_back();
      taken_[d] = 0;
      if (found) return true;
    }
    return false;
  }

  const Problem& problem_;
  std::vector<Device> devices_;
  std::vector<char> taken_;
  std::vector<int> cpu_;
  std::vector<std::vector<std::size_t>> shared_;
  std::vector<int> where_;  // nodes by pod
};

/// Every pod where its devices are, and no device twice.
void check_placement(const Problem& problem, const World& world, const GangDecision& made) {
  std::vector<int> cpu(problem.nodes.size());
  std::set<std::string> devices;
  for (const auto& [key, allocation] : made.allocations) {
    for (const Value& result : allocation["devices"]["results"].items()) {
      const std::string id = cat(result["pool"].as_string(), "/", result["device"].as_string());
      EXPECT_TRUE(devices.insert(id).second) << id << " given twice";
    }
  }
  for (std::size_t i = 0; i < made.members.size(); ++i) {
    const GangMember& member = made.members[i];
    if (member.node == nullptr) continue;
    const auto node = static_cast<std::size_t>(member.node->name[1] - '0');
    cpu[node] += problem.pods[world.numbers[i]].cpu;
    EXPECT_TRUE(made.groups[member.group].holds) << "a pod of a group that has too few";
    EXPECT_LE(cpu[node], problem.nodes[node].cpu);
    for (const PodClaim& claim : member.run.claims) {
      for (const Value& result : made.allocations.at(claim.key)["devices"]["results"].items()) {
        const std::string_view pool = result["pool"].as_string();
        EXPECT_TRUE(pool == "net" || pool == member.node->name) << claim.key;
      }
    }
  }
}

TEST(Gang, is_placed_if_and_only_if_brute_force_places_it) {
  std::mt19937 random(7);
  const auto any = [&](int from, int to) {
    return std::uniform_int_distribution<int>(from, to)(random);
  };
  int solvable = 0;
  int limited = 0;
  for (int round = 0; round < 200; ++round) {
    Problem problem;
    for (int n = any(1, 3); n > 0; --n) problem.nodes.push_back({any(1, 4), any(0, 3), {}, {}});
    problem.anywhere = any(0, 2);
    for (int s = any(0, 1); s > 0; --s) problem.shared.push_back(any(1, 2));
    for (int p = any(1, 4); p > 0; --p) {
      Problem::Pod pod;
      pod.cpu = any(1, 2);
      pod.own = any(0, 2);
      pod.big = any(0, 1) == 0;
      if (!problem.shared.empty() && any(0, 1) == 0) pod.shared = 0;
      problem.pods.push_back(pod);
    }
    const int size = static_cast<int>(problem.pods.size());
    problem.needed() = static_cast<std::size_t>(any(std::max(1, size - 1), size));
    World world(problem);

    const GangDecision made = world.place();

    const bool expected = Brute(problem).solvable();
    solvable += expected ? 1 : 0;
    limited += made.limited ? 1 : 0;
    ASSERT_EQ(made.error, "");
    EXPECT_EQ(made.success(), expected) << "round " << round << " of " << size << " pods";
    if (made.success()) check_placement(problem, world, made);
    const GangDecision hasty = world.place_hastily();
    EXPECT_TRUE(expected ? hasty.success() || hasty.limited : !hasty.success()) << round;
    if (hasty.success()) check_placement(problem, world, hasty);
    EXPECT_EQ(world.state.pod_count(), 0U) << "the state is as before";
    if (HasFailure()) break;
  }
  EXPECT_GT(solvable, 50);
  EXPECT_LT(solvable, 175);
  EXPECT_EQ(limited, 0) << "small problems are searched to the end";
}

/// How many pods each group and those below it have got, and one value of each constraint.
void check_tree(const Problem& problem, const GangDecision& made) {
  std::vector<std::size_t> have(problem.groups.size());
  std::vector<std::set<std::string>> labels(problem.groups.size());
  for (const GangMember& member : made.members) {
    if (member.node == nullptr) continue;
    ++have[member.group];
    for (std::size_t g = member.group; g != GangOrder::kNone; g = problem.groups[g].parent) {
      if (problem.groups[g].key.empty()) continue;
      const Value* label = member.node->label(problem.groups[g].key);
      ASSERT_NE(label, nullptr);
      labels[g].insert(label->str());
    }
  }
  for (std::size_t g = problem.groups.size(); g-- > 0;) {
    EXPECT_LE(labels[g].size(), 1U) << "group " << g << " is in several places";
    if (have[g] >= problem.groups[g].needed) {
      if (g > 0) ++have[problem.groups[g].parent];
    } else {
      EXPECT_FALSE(made.groups[g].holds) << "group " << g;
    }
  }
  EXPECT_GE(have[0], problem.groups[0].needed);
}

// Trees of up to three levels, with constraints on racks and rows, some with more groups than have
// to be placed.
TEST(Gang, of_groups_is_placed_if_and_only_if_brute_force_places_it) {
  std::mt19937 random(11);
  const auto any = [&](int from, int to) {
    return std::uniform_int_distribution<int>(from, to)(random);
  };
  const char* const keys[] = {"", "", "rack", "row"};
  int solvable = 0;
  int limited = 0;
  for (int round = 0; round < 300; ++round) {
    Problem problem;
    for (int n = any(2, 4); n > 0; --n) {
      problem.nodes.push_back(
          {any(1, 3), any(0, 2), any(0, 5) == 0 ? "" : cat("r", any(0, 1)), cat("w", any(0, 1))});
    }
    problem.anywhere = any(0, 1);
    problem.groups.clear();
    const auto add_group = [&](std::size_t parent, bool of_groups) {
      problem.groups.push_back({parent, of_groups, 0, keys[any(0, 3)]});
      if (of_groups) return problem.groups.size() - 1;
      const int pods = any(0, 3);
      for (int p = 0; p < pods && problem.pods.size() < 6; ++p) {
        Problem::Pod pod;
        pod.cpu = any(1, 2);
        pod.own = any(0, 1);
        pod.big = any(0, 1) == 0;
        pod.group = problem.groups.size() - 1;
        problem.pods.push_back(pod);
      }
      problem.groups.back().needed = static_cast<std::size_t>(any(pods > 0 ? 1 : 0, pods));
      return problem.groups.size() - 1;
    };
    const std::size_t root = add_group(GangOrder::kNone, true);
    const int children = any(1, 3);
    for (int c = 0; c < children; ++c) {
      const bool deeper = any(0, 2) == 0;
      const std::size_t child = add_group(root, deeper);
      if (!deeper) continue;
      const int below = any(1, 2);
      for (int b = 0; b < below; ++b) add_group(child, false);
      problem.groups[child].needed = static_cast<std::size_t>(any(1, below));
    }
    problem.groups[root].needed = static_cast<std::size_t>(any(1, children));
    World world(problem);

    const GangDecision made = world.place();

    const bool expected = Brute(problem).solvable();
    solvable += expected ? 1 : 0;
    limited += made.limited ? 1 : 0;
    ASSERT_EQ(made.error, "");
    EXPECT_EQ(made.success(), expected) << "round " << round;
    if (made.success()) {
      check_placement(problem, world, made);
      check_tree(problem, made);
    }
    const GangDecision hasty = world.place_hastily();
    EXPECT_TRUE(expected ? hasty.success() || hasty.limited : !hasty.success()) << round;
    if (hasty.success()) {
      check_placement(problem, world, hasty);
      check_tree(problem, hasty);
    }
    EXPECT_EQ(world.state.pod_count(), 0U) << "the state is as before";
    if (HasFailure()) break;
  }
  EXPECT_GT(solvable, 75);
  EXPECT_LT(solvable, 275);
  EXPECT_EQ(limited, 0) << "small problems are searched to the end";
}

// The first group would take the large rack, which the second cannot do without.
TEST(Gang, of_groups_leaves_room_to_the_next_group) {
  Problem problem;
  problem.nodes = {{2, 0, "large"}, {2, 0, "large"}, {2, 0, "small"}};
  problem.groups = {{GangOrder::kNone, true, 2}, {0, false, 2, "rack"}, {0, false, 4, "rack"}};
  for (int p = 0; p < 6; ++p) {
    problem.pods.push_back({.cpu = 1, .group = p < 2 ? std::size_t{1} : std::size_t{2}});
  }
  World world(problem);

  const GangDecision made = world.place();

  ASSERT_TRUE(made.success());
  check_tree(problem, made);
}

TEST(Gang, of_groups_takes_no_pod_of_a_group_that_has_too_few) {
  Problem problem;
  problem.nodes = {{4, 0, {}, {}}};
  problem.groups = {{GangOrder::kNone, true, 1}, {0, false, 3}, {0, false, 2}};
  for (int p = 0; p < 5; ++p) {
    problem.pods.push_back({.cpu = 1, .group = p < 3 ? std::size_t{1} : std::size_t{2}});
  }
  World world(problem);

  const GangDecision made = world.place();

  ASSERT_TRUE(made.success());
  EXPECT_EQ(made.placed, 3U);
  EXPECT_TRUE(made.groups[1].holds);
  EXPECT_FALSE(made.groups[2].holds);
  EXPECT_EQ(made.groups[2].most, 1U);
}

TEST(Gang, of_groups_knows_without_a_search_that_equals_are_too_many) {
  Problem problem;
  for (int n = 0; n < 9; ++n) problem.nodes.push_back({4, 0, {}, {}});
  problem.groups = {{GangOrder::kNone, true, 10}};
  for (std::size_t g = 1; g <= 10; ++g) {
    problem.groups.push_back({0, false, 4});
    for (int p = 0; p < 4; ++p) problem.pods.push_back({.cpu = 1, .group = g});
  }
  World world(problem);

  const GangDecision made = world.place();

  EXPECT_FALSE(made.success());
  EXPECT_FALSE(made.limited);
  EXPECT_EQ(made.groups[0].most, 9U);
}

}  // namespace
}  // namespace dibs::scheduler::test
