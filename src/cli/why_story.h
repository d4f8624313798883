#pragma once
// What dibs why says about a pod, a claim, a workload, a node or a driver: the same facts as text
// and as a document.

#include <string>
#include <string_view>
#include <vector>

#include "cli/why_objects.h"
#include "json/value.h"
#include "scheduler/explain.h"
#include "scheduler/pod.h"

namespace dibs::cli {

/// Lines of at most 100 columns; what is longer goes on below, further in.
class WhyPage {
 public:
  void line(std::size_t indent, std::string_view text);
  /// One line, however long.
  void whole(std::string_view text);
  void gap();
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

struct WhyStory {
  int status = 2;        // of the command: 0 nothing is wanting, 2 it waits
  json::Value document;  // -o json
  WhyPage page;
  /// The answer in one line, without the name; where the first line says too little, more.
  std::string brief = {};
};

/// Stories of many pods share a state, which one alone makes for itself.
WhyStory tell_pod(const WhyWorld& world, const json::Value& pod, WhyState* state = nullptr);
WhyStory tell_claim(const WhyWorld& world, const json::Value& claim);

/// What makes pods, and the pods of it that wait, those of one reason together (why_workload.cc).
WhyStory tell_workload(const WhyWorld& world, const json::Value& workload);
/// Whatever waits, one line each; of all namespaces where none is named (why_list.cc).
WhyStory tell_waiting(const WhyWorld& world, const std::string& name_space);

/// Whether it takes pods, and which drivers have devices on it (why_node.cc).
WhyStory tell_node(const WhyWorld& world, const json::Value& node);
/// Where it has devices, and what it fails at (why_driver.cc).
WhyStory tell_driver(const WhyWorld& world, const std::string& name);

/// What a pod waits for that has nothing to do with nodes.
struct Hindrance {
  std::string reason;  // one word, for programs
  std::string text;

  explicit operator bool() const { return !reason.empty(); }
};

/// What keeps a workload from making the pods that it should.
Hindrance hindered_workload(const WhyWorld& world, const json::Value& workload);

// Claims that drivers allocate (why_classic.cc).

/// What keeps one of them from being of use to the pod on any node.
Hindrance hindered_by_driver(const WhyWorld& world, const scheduler::Pod& pod,
                             const json::Value& claim);
/// What drivers have been asked for and have not done, where some node would do.
Hindrance waits_for_drivers(const scheduler::Explanation& found);
/// What was proposed to drivers, and their answers; nothing where none is asked.
void tell_talk(const scheduler::Explanation& found, WhyPage& page);
/// {potentialNodes, selectedNode, claims}.
json::Value talk_document(const scheduler::Explanation& found);

// Pods of groups (why_group.cc).

/// The claim was made for the pod's group.
bool is_of_group(const json::Value& claim, const scheduler::Pod& pod);
/// The group is missing, or has too few pods.
Hindrance hindered_by_group(const WhyWorld& world, const scheduler::Pod& pod);
/// Whether the pods of a group fit together, and which of them do not.
struct GangWords {
  bool fits = true;
  std::vector<std::pair<std::size_t, std::string>> lines;  // with their margins
  json::Value document;                                    // null: the pod has no group
};
/// Requires a pod whose group does not hinder it.
GangWords words_of_gang(const WhyWorld& world, const scheduler::Pod& pod);

// Pods that have a node (why_running.cc).

/// Something that keeps a pod on its node from running, being ready, or going.
struct Trouble {
  std::string reason;  // one word, for programs
  std::string text;
  std::vector<std::string> remedies = {};
};
/// The one that counts first. Empty: nothing is known to be wrong.
std::vector<Trouble> troubles_of(const WhyWorld& world, const json::Value& pod);
/// Why its containers ended, of one that has failed: lines.
std::vector<std::string> last_words(const json::Value& pod);
/// Of containers that run and have ended before: how often, and how the last time.
std::vector<std::string> restarts_of(const WhyWorld& world, const json::Value& pod);
/// What to do about the troubles, each remedy once.
void tell_remedies(const std::vector<Trouble>& troubles, WhyPage& page);
json::Value troubles_document(const std::vector<Trouble>& troubles);

// What drivers have said in events (why_events.cc).

/// The last warning about the object, of one of these reasons. Null: there is none.
const json::Value* last_warning(const WhyWorld& world, const json::Value& object,
                                const std::vector<std::string_view>& reasons,
                                std::string_view container = {});
/// When an event was seen last, as RFC 3339.
std::string time_of_event(const json::Value& event);

struct DriverWord {
  std::string driver;
  std::string reason;
  std::string text;
  std::string time;  // RFC 3339
};
/// About the pod, its claims and its talk with drivers: of each driver and reason the last, the
/// latest first.
std::vector<DriverWord> words_of_drivers(const WhyWorld& world, const json::Value& pod);
void tell_words(const std::vector<DriverWord>& words, WhyPage& page);
json::Value words_document(const std::vector<DriverWord>& words);

// Pieces that several tell.

/// Null: it has none of the type.
const json::Value& condition_of(const json::Value& object, std::string_view type);
/// A driver's slices of one pool.
struct PoolView {
  std::string driver;
  std::string name;
  std::int64_t generation = 0;
  std::int64_t wanted = 0;                 // slices that the newest generation should have
  std::vector<const json::Value*> slices;  // of that generation
  std::size_t devices = 0;

  bool complete() const { return static_cast<std::int64_t>(slices.size()) == wanted; }
  /// "node-1", "selected nodes", "all nodes".
  std::string place() const;
};
std::vector<PoolView> pools_of(const WhyWorld& world);

/// What a claim got: its devices by request, and what they had to match.
void tell_allocation(const WhyWorld& world, const json::Value& claim, std::size_t indent,
                     WhyPage& page);
/// {name, allocated, devices, reservedFor}.
json::Value claim_document(const json::Value& claim);
/// "pod a (on node-1), pod b": who has reserved the claim.
std::string users_of(const WhyWorld& world, const json::Value& claim);
/// Devices that are not ready for their claim yet, "device: condition, condition"; empty: all are.
std::vector<std::string> missing_conditions(const json::Value& claim);
/// Names of the claims that a pod uses; one whose claim is not made yet is left out.
std::vector<std::string> claim_names(const json::Value& pod, int release);

}  // namespace dibs::cli
