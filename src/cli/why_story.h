#pragma once
// What dibs why says about a pod or a claim: the same facts as text and as a document.

#include <string>
#include <string_view>

#include "cli/why_objects.h"
#include "json/value.h"
#include "scheduler/explain.h"
#include "scheduler/pod.h"

namespace dibs::cli {

/// Lines of at most 100 columns; what is longer goes on below, further in.
class WhyPage {
 public:
  void line(std::size_t indent, std::string_view text);
  void gap();
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

struct WhyStory {
  int status = 2;        // of the command: 0 placed or allocated, 2 pending
  json::Value document;  // -o json
  WhyPage page;
};

WhyStory tell_pod(const WhyWorld& world, const json::Value& pod);
WhyStory tell_claim(const WhyWorld& world, const json::Value& claim);

/// What a pod waits for that has nothing to do with nodes.
struct Hindrance {
  std::string reason;  // one word, for programs
  std::string text;

  explicit operator bool() const { return !reason.empty(); }
};

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

// What drivers have said in events (why_events.cc).

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

// Pieces that both tell.

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
