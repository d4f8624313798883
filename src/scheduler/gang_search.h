#pragma once
// The search of GangPlacer (gang.h), shared by its parts: pods put to nodes and taken back
// (gang_search.cc), each pod taking what is left (gang.cc), choices that are gone back on
// (gang_choices.cc).

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "scheduler/gang.h"
#include "scheduler/gang_devices.h"
#include "scheduler/gang_quorum.h"
#include "scheduler/scores/scores.h"

namespace dibs::scheduler {

struct GangPlacer::Search {
  /// Nodes, by their places among all; null: all of them.
  using Places = const std::vector<std::size_t>*;

  /// A walk over nodes, in parts.
  struct Walk {
    Places places = nullptr;
    std::size_t count = 0;
    std::size_t first = 0;
    std::size_t done = 0;

    bool is_over() const { return done == count; }
    std::size_t next() {
      const std::size_t at = (first + done++) % count;
      return places != nullptr ? (*places)[at] : at;
    }
  };

  GangPlacer& owner;
  ClusterState& state;
  Devices& devices;
  const Profile& profile;
  GangDecision made = {};
  GangDevices claims;
  GangQuorum quorum;
  std::vector<std::size_t> like = {};   // the first member that asks for the same
  std::vector<std::size_t> kind = {};   // the same of its group alone: equals for the search
  std::vector<std::size_t> order = {};  // of members
  std::vector<std::vector<std::size_t>> turns = {};  // the same, by group
  std::vector<std::size_t> stack = {};               // placed members, the last one first to go
  /// Nodes by the values of labels that constraints name: most are in another domain than the one
  /// that is tried.
  std::map<std::string, std::map<std::string, std::vector<std::size_t>>> by_label = {};
  std::uint64_t tries = 0;
  std::uint64_t looks = 0;
  std::size_t depth = 0;     // choices that stand on each other
  bool interacting = false;  // where one pod is may be in favour of another
  bool apart = false;        // pods keep away from each other
  bool alone = false;        // where groups below the root may be does not matter

  Search(GangPlacer& owner_in, const GangOrder& wanted, const Profile& profile_in,
         std::set<std::string>& counting)
      : owner(owner_in),
        state(owner_in.state_),
        devices(owner_in.devices_),
        profile(profile_in),
        claims(devices, made, counting),
        quorum(wanted) {
    made.groups.resize(wanted.groups.size());
  }

  GangMember& member(std::size_t i) { return made.members[i]; }

  // Pods.
  /// Puts the member on the node; what is against it, "" for nothing.
  std::string put(std::size_t i, NodeInfo& node);
  /// The last one that was put goes back.
  void take_back();
  void take_back_to(std::size_t size);
  const std::map<std::string, std::vector<std::size_t>>& values_of(const std::string& key);
  /// All nodes that a group below and including this may use are among them.
  Places places_of(std::size_t group);
  /// All that the group may use, from where the last one was found.
  Walk walk_over(std::size_t group);
  /// Values that the group could have by nodes that those above it allow.
  std::set<std::string> domains_of(std::size_t group);
  /// The next nodes that filters let the member go to, as many as are compared, the best first;
  /// none where there are no more.
  std::vector<Candidate> candidates(std::size_t i, Walk& walk, Reasons& reasons);
  /// The best node that will do; false, and why, where there is none.
  bool put_anywhere(std::size_t i);
  std::size_t nodes_asked(std::size_t group);

  // Each takes what is left.
  /// Pods of the group that have no node yet. True when the group holds; otherwise what it got
  /// here is given back.
  bool place_inside(std::size_t group);
  void place_pods(std::size_t group);
  /// The same, in the domain that takes most of them where the group has to choose one.
  bool place_group(std::size_t group);
  /// Tries each value; the first that takes all pods is kept, or the one that takes most.
  bool place_in_best(std::size_t group, const std::set<std::string>& values);

  // Choices, and going back on them.
  /// Whether it can be told without a search that there is no placement: a kind of pods has too few
  /// places even if it is alone. Only where pods never do each other good.
  bool is_hopeless();
  bool has_cost(std::uint64_t most);
  bool spent();
  /// Beyond what the search may take, where each takes what is left: a gang of any size has its
  /// pods put once.
  bool is_exhausted();
  /// All choices of devices for the member at a place of the order, on a node.
  bool explore(std::size_t at, NodeInfo& node, std::vector<json::Value>& excluded);
  /// Whoever has no node takes what is left beside those that were chosen for.
  bool place_rest();
  /// Pods from a place of the order on are open.
  bool place_from(std::size_t at);
  bool choose_at(std::size_t at);
  /// All nodes for the member, those before a certain one left out.
  bool explore_all(std::size_t at, const NodeInfo* from);
  void take_turns();
  bool find();

  // Before it begins, and when it is over.
  bool prepare(const GangOrder& wanted, Time now);
  /// What was found, with the state as it was before.
  GangDecision finish(bool found);
  /// Of the places that will do, the first that takes all pods, or the one that takes most. What is
  /// told, where none will do, is what is missing in the first.
  GangDecision find_among(const std::set<std::string>& values);
};

}  // namespace dibs::scheduler
