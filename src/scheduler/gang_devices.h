#pragma once
// Devices for the pods of a gang, as the search (gang_search.h) puts pods to nodes and takes them
// back.
//
// Claims of pods on one node are searched for together: who comes later may move the devices of
// those that are there already. What a pod has changed is kept until it is taken back, which has to
// be in the opposite order.
//
// Not so where devices are resources of their node, which count there: such pods are searched for
// one by one. Whose claims get such a device is known only when they do. The search ends then with
// an error, and the next one knows of all pods that ask for the same.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "scheduler/gang.h"

namespace dibs::scheduler {

class GangDevices {
 public:
  /// Errors, and that something was not tried to the end, are noted in `made`. `counting`: what
  /// pods ask for whose claims take of the node, as add() puts it.
  GangDevices(Devices& devices, GangDecision& made, std::set<std::string>& counting)
      : devices_(devices), made_(made), counting_(counting) {}

  /// Of the next member, whose run is prepared; what it asks for, the same for equals.
  std::string add(const GangMember& member);
  /// After the last: what does not go together; "" for nothing.
  std::string fault() const;

  /// What the node says to devices for the member; "" when it has them now.
  std::string take(std::size_t i, NodeInfo& node);
  /// Gives back what the member took, and puts back what it moved.
  void give_back(std::size_t i, const NodeInfo& node);

  /// Whether nobody on another node could want what the member took.
  bool is_local(std::size_t i) const;
  /// Devices that the member took now and that others could need elsewhere.
  std::vector<json::Value> contested(std::size_t i) const;
  /// Keeps a device from everybody, or no longer.
  void exclude(const json::Value& device);
  void include(const json::Value& device);

  std::map<std::string, json::Value> allocations() const;
  /// What all searches for devices have cost so far.
  std::uint64_t steps() const { return steps_; }

 private:
  /// A claim that the search has devices for.
  struct Pending {
    json::Value allocation;
    bool anywhere = true;
    alloc::NodeSelector places;
    NodeInfo* home = nullptr;  // the node it was allocated for
    std::size_t users = 0;     // placed pods
    std::size_t away = 0;      // of them, those on other nodes
  };
  /// What a member has changed.
  struct Trail {
    std::vector<std::pair<std::string, json::Value>> before;  // allocations; null: none
    std::vector<std::string> own;                             // claims of a pod that is not plain
  };
  struct Member {
    std::string wish;    // what it asks for
    DeviceRun fixed;     // its run without the open claims
    bool plain = false;  // devices are searched for together with others'
    Trail trail;
  };

  std::string try_node(std::size_t i, NodeInfo& node);
  alloc::Outcome allocate(const std::vector<std::string>& keys, const NodeInfo& node);
  std::string try_alone(GangMember& one, Trail& trail, NodeInfo& node);
  /// Whether there are resources of the node among the devices; then it is an error.
  bool takes_of_node(const std::vector<std::string>& keys, const alloc::Outcome& outcome);
  void keep(Trail& trail, const std::vector<std::string>& keys, const alloc::Outcome& outcome,
            NodeInfo& node);
  void set_allocation(const std::string& key, const json::Value& allocation, NodeInfo& node);
  void restore(const std::string& key, const json::Value& allocation);
  void use(const std::string& key, const NodeInfo& node, int sign);
  std::string refusal(const NodeDevices& said);
  std::string refusal(const alloc::Outcome& outcome);

  Devices& devices_;
  GangDecision& made_;
  std::set<std::string>& counting_;
  std::vector<Member> members_;
  std::map<std::string, Pending> pending_;
  std::map<std::string, std::size_t> wanted_;  // members by claim
  std::uint64_t steps_ = 0;
};

}  // namespace dibs::scheduler
