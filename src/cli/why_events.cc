// What drivers have said about a pod or a claim, in its events: only they know why they refuse.
#include <algorithm>

#include "base/strings.h"
#include "cli/why_story.h"

namespace dibs::cli {
namespace {

using json::Value;

/// As the controllers of drivers call themselves in events, before their name.
constexpr std::string_view kSpeaker = "resource driver ";
constexpr std::size_t kMost = 5;

/// The driver that the event is of; "": of somebody else.
std::string_view driver_of(const Value& event) {
  for (const char* field : {"reportingComponent", "reportingController"}) {
    const auto name = event[field].as_string();
    if (name.starts_with(kSpeaker)) return name.substr(kSpeaker.size());
  }
  const auto name = event["source"]["component"].as_string();
  return name.starts_with(kSpeaker) ? name.substr(kSpeaker.size()) : std::string_view();
}

bool is_about(const Value& event, const Value& object) {
  return event["involvedObject"]["uid"] == object["metadata"]["uid"];
}

}  // namespace

std::string time_of_event(const Value& event) {
  for (const Value* time : {&event["series"]["lastObservedTime"], &event["lastTimestamp"],
                            &event["eventTime"], &event["metadata"]["creationTimestamp"]}) {
    if (time->is_string()) return time->str();
  }
  return {};
}

const Value* last_warning(const WhyWorld& world, const Value& object,
                          const std::vector<std::string_view>& reasons,
                          std::string_view container) {
  const Value* last = nullptr;
  const std::string part = cat("{", container, "}");
  for (const Value& event : world.objects.events) {
    if (event["type"].as_string() != "Warning" || !is_about(event, object)) continue;
    const auto reason = event["reason"].as_string();
    if (std::find(reasons.begin(), reasons.end(), reason) == reasons.end()) continue;
    if (!container.empty() && !event["involvedObject"]["fieldPath"].as_string().ends_with(part)) {
      continue;
    }
    if (last == nullptr || time_of_event(*last) <= time_of_event(event)) last = &event;
  }
  return last;
}

std::vector<DriverWord> words_of_drivers(const WhyWorld& world, const Value& pod) {
  std::vector<const Value*> subjects = {&pod};
  for (const std::string& name : claim_names(pod, world.release)) {
    const auto name_space = pod["metadata"]["namespace"].as_string();
    for (const auto* list : {&world.objects.claims, &world.objects.contexts}) {
      const auto wanted = list == &world.objects.contexts ? pod["metadata"]["name"].as_string()
                                                          : std::string_view(name);
      if (const Value* found = find_object(*list, name_space, wanted)) subjects.push_back(found);
    }
  }
  std::vector<DriverWord> words;
  for (const Value& event : world.objects.events) {
    const auto driver = driver_of(event);
    if (driver.empty() || event["type"].as_string() != "Warning") continue;
    if (std::none_of(subjects.begin(), subjects.end(),
                     [&](const Value* one) { return is_about(event, *one); })) {
      continue;
    }
    DriverWord word{std::string(driver), event["reason"].str(), event["message"].str(),
                    time_of_event(event)};
    const auto same = std::find_if(words.begin(), words.end(), [&](const DriverWord& one) {
      return one.driver == word.driver && one.reason == word.reason;
    });
    // What was said later stands.
    if (same == words.end()) {
      words.push_back(std::move(word));
    } else if (same->time < word.time) {
      *same = std::move(word);
    }
  }
  std::stable_sort(words.begin(), words.end(),
                   [](const auto& a, const auto& b) { return a.time > b.time; });
  if (words.size() > kMost) words.resize(kMost);
  return words;
}

void tell_words(const std::vector<DriverWord>& words, WhyPage& page) {
  if (words.empty()) return;
  page.gap();
  page.line(0, "what its drivers have said last");
  for (const DriverWord& word : words) {
    page.line(2, cat(word.driver, " (", word.reason, ", ", word.time, "): ", word.text));
  }
}

Value words_document(const std::vector<DriverWord>& words) {
  Value out = Value::array();
  for (const DriverWord& word : words) {
    out.push(Value::object({{"driver", word.driver},
                            {"reason", word.reason},
                            {"message", word.text},
                            {"time", word.time}}));
  }
  return out;
}

}  // namespace dibs::cli
