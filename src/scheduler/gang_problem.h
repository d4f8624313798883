#pragma once
// For tests of gangs: small problems as numbers, and the same for the placer.

#include <algorithm>
#include <string>
#include <vector>

#include "base/strings.h"
#include "json/parse.h"
#include "scheduler/gang.h"

namespace dibs::scheduler::test {

using json::Value;

inline Value from_text(std::string text) {
  std::replace(text.begin(), text.end(), '\'', '"');
  return json::parse(text).value();
}

/// A small problem, as numbers.
struct Problem {
  struct Node {
    int cpu = 0;
    int devices = 0;
    std::string rack = {};  // a label
    std::string row = {};
  };
  struct Pod {
    int cpu = 0;
    int own = 0;       // devices of a claim of its own
    int shared = -1;   // the number of a claim that it shares
    bool big = false;  // its devices must be of the large kind
    std::size_t group = 0;
  };
  struct Group {
    std::size_t parent = GangOrder::kNone;
    bool of_groups = false;
    std::size_t needed = 0;
    std::string key = {};  // of a topology constraint
  };
  std::vector<Node> nodes;
  std::vector<Pod> pods;
  int anywhere = 0;              // devices that all nodes reach
  std::vector<int> shared = {};  // devices that shared claims want
  std::vector<Group> groups = {{}};

  std::size_t& needed() { return groups[0].needed; }
};

/// The even devices of a node, and of those that all reach, are large.
inline bool is_big(int number) { return number % 2 == 0; }

/// The same problem for the placer.
class World {
 public:
  explicit World(const Problem& problem)
      : devices(alloc::Features::all(), [] { return std::string("share"); }),
        placer(state, devices) {
    devices.put_class(from_text("{'metadata':{'name':'gpu'},'spec':{}}"));
    for (std::size_t n = 0; n < problem.nodes.size(); ++n) {
      const auto label = [](const char* key, const std::string& value) {
        return value.empty() ? std::string() : cat(",'", key, "':'", value, "'");
      };
      state.put_node(
          from_text(cat("{'metadata':{'name':'n", n, "','labels':{'n':'", n, "'",
                        label("rack", problem.nodes[n].rack), label("row", problem.nodes[n].row),
                        "}},'status':{'allocatable':{'pods':'9','cpu':'", problem.nodes[n].cpu,
                        "','memory':'4Gi'}}}")));
      put_slice(cat("n", n), cat("'nodeName':'n", n, "'"), problem.nodes[n].devices);
    }
    put_slice("net", "'allNodes':true", problem.anywhere);
    for (std::size_t s = 0; s < problem.shared.size(); ++s) {
      put_claim(cat("shared", s), problem.shared[s], false);
    }
    for (const Problem::Group& group : problem.groups) {
      order.groups.push_back(
          {.parent = group.parent, .of_groups = group.of_groups, .needed = group.needed});
      order.groups.back().topology_key = group.key;
    }
    // Members come in the order of their groups.
    for (std::size_t group = 0; group < problem.groups.size(); ++group) {
      for (std::size_t i = 0; i < problem.pods.size(); ++i) {
        if (problem.pods[i].group != group) continue;
        add_pod(problem.pods[i], i);
        numbers.push_back(i);
      }
    }
  }

  GangDecision place() { return placer.place(order, Profile::standard(), Time{}); }
  /// Without going back on more than two choices.
  GangDecision place_hastily() {
    return GangPlacer(state, devices, {.depth = 2}).place(order, Profile::standard(), Time{});
  }

  ClusterState state;
  Devices devices;
  GangPlacer placer;
  GangOrder order;
  std::vector<std::size_t> numbers;  // of pods in the problem, by member

  void put_claim(const std::string& name, int count, bool big) {
    const std::string selector =
        big ? ",'selectors':[{'cel':{'expression':'device.attributes[\\\"d\\\"].big'}}]" : "";
    devices.put_claim(from_text(
        cat("{'metadata':{'name':'", name, "','namespace':'ns','uid':'", name,
            "','resourceVersion':'1'},'spec':{'devices':{'requests':[{'name':'r','exactly':{",
            "'deviceClassName':'gpu','allocationMode':'ExactCount','count':", count, selector,
            "}}]}}}")));
  }

 private:
  void put_slice(const std::string& name, const std::string& where, int count) {
    std::string list;
    for (int d = 0; d < count; ++d) {
      append(list, d > 0 ? "," : "", "{'name':'d", d,
             "','attributes':{'big':{'bool':", is_big(d) ? "true" : "false", "}}}");
    }
    devices.put_slice(from_text(
        cat("{'metadata':{'name':'", name, "'},'spec':{'driver':'d',", where, ",'pool':{'name':'",
            name, "','generation':1,'resourceSliceCount':1},'devices':[", list, "]}}")));
  }
  void add_pod(const Problem::Pod& pod, std::size_t i) {
    std::string refs;
    if (pod.own > 0) {
      put_claim(cat("own", i), pod.own, pod.big);
      append(refs, "{'name':'own','resourceClaimName':'own", i, "'}");
    }
    if (pod.shared >= 0) {
      append(refs, refs.empty() ? "" : ",", "{'name':'shared','resourceClaimName':'shared",
             pod.shared, "'}");
    }
    order.groups[pod.group].pods.push_back(Pod::read(from_text(cat(
        "{'metadata':{'name':'p", i, "','namespace':'ns','uid':'u", i,
        "'},'spec':{'schedulerName':'default-scheduler','containers':[{'name':'c',",
        "'resources':{'requests':{'cpu':'", pod.cpu, "'}}}],'resourceClaims':[", refs, "]}}"))));
  }
};

}  // namespace dibs::scheduler::test
