#pragma once
// What dibs why says about a pod or a claim: the same facts as text and as a document.

#include <string>
#include <string_view>

#include "cli/why_objects.h"
#include "json/value.h"

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
std::vector<std::string> claim_names(const json::Value& pod);

}  // namespace dibs::cli
