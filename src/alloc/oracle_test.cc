// Brute force: every choice of alternatives and devices in the order of the API, each checked as a
// whole by rules read straight from the objects. Nothing here is shared with the allocator but the
// expression language, so that both must be wrong in the same way to agree by mistake. Knows what
// random_case.h makes.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <set>

#include "alloc/cases.h"
#include "alloc/testing/random_case.h"
#include "api/devices/device.h"
#include "base/quantity.h"
#include "base/strings.h"
#include "json/parse.h"

namespace dibs::alloc {
namespace {

using json::Value;

struct Thing {
  std::string pool;
  const Value* device = nullptr;
  bool allocated = false;
};

struct Ask {
  int claim = 0;
  std::string name;    // request, or request/alternative
  std::string parent;  // request
  const Value* spec = nullptr;
};

struct Choice {
  const Ask* ask = nullptr;
  std::size_t thing = 0;
};

std::int64_t number(const Value& quantity) {
  const Result<Quantity> parsed = Quantity::parse(quantity.as_string());
  return parsed.ok() ? parsed->value() : 0;
}

class Oracle {
 public:
  Oracle(const Value& problem, std::uint64_t most) : problem_(problem), left_(most) {
    for (const Value& gate : problem["features"].items()) {
      lists_ = lists_ || gate.as_string() == "DRAListTypeAttributes";
    }
    std::set<std::string> used;
    for (const Value& id : problem["allocatedDevices"].items()) used.insert(id.str());
    // Pools come by name, slices of these cases have one set of devices each.
    std::map<std::string, const Value*> pools;
    for (const Value& slice : problem["slices"].items()) {
      const std::string pool = slice["spec"]["pool"]["name"].str();
      if (slice["spec"]["devices"].is_array()) pools[pool] = &slice["spec"]["devices"];
      for (const Value& set : slice["spec"]["sharedCounters"].items()) {
        for (const auto& [name, counter] : set["counters"].members()) {
          counters_[cat(pool, "/", set["name"].as_string(), "/", name)] = number(counter["value"]);
        }
      }
    }
    for (const auto& [pool, devices] : pools) {
      for (const Value& device : devices->items()) {
        things_.push_back(
            {pool, &device, used.contains(cat("d/", pool, "/", device["name"].as_string()))});
      }
    }
    int claim = 0;
    for (const Value& object : problem["claims"].items()) {
      for (const Value& request : object["spec"]["devices"]["requests"].items()) {
        std::vector<Ask> asks;
        const std::string name = request["name"].str();
        if (request["exactly"].is_object())
          asks.push_back({claim, name, name, &request["exactly"]});
        for (const Value& sub : request["firstAvailable"].items()) {
          asks.push_back({claim, cat(name, "/", sub["name"].as_string()), name, &sub});
        }
        requests_.push_back(std::move(asks));
      }
      ++claim;
    }
  }

  bool solve() { return request(0); }
  bool gave_up() const { return left_ == 0; }
  std::vector<std::string> solution() const {
    std::vector<std::string> made;
    for (const Choice& choice : choices_) {
      const Thing& thing = things_[choice.thing];
      made.push_back(cat(choice.ask->claim, "/", choice.ask->name, ": ", thing.pool, "/",
                         (*thing.device)["name"].as_string()));
    }
    return made;
  }

 private:
  bool request(std::size_t at) {
    if (left_ == 0) return false;
    if (at == requests_.size()) {
      --left_;
      return valid();
    }
    for (const Ask& ask : requests_[at]) {
      if ((*ask.spec)["allocationMode"].as_string() == "All") {
        const std::size_t before = choices_.size();
        for (std::size_t i = 0; i < things_.size(); ++i) {
          if (matches(ask, i) && intake(ask, i) >= 0) choices_.push_back({&ask, i});
        }
        if (choices_.size() > before && request(at + 1)) return true;
        choices_.resize(before);
      } else if (some(at, ask, (*ask.spec)["count"].as_int(), 0)) {
        return true;
      }
    }
    return false;
  }

  bool some(std::size_t at, const Ask& ask, std::int64_t count, std::size_t from) {
    if (count == 0) return request(at + 1);
    for (std::size_t i = from; i < things_.size() && left_ > 0; ++i) {
      if (!matches(ask, i)) continue;
      choices_.push_back({&ask, i});
      // Leaves only what cannot be mended by what comes later, to keep this fast enough.
      if (free_of_earlier() && some(at, ask, count - 1, i + 1)) return true;
      choices_.pop_back();
    }
    return false;
  }

  bool matches(const Ask& ask, std::size_t i) {
    const std::string key = cat(reinterpret_cast<std::uintptr_t>(ask.spec), " ", i);
    if (const auto known = matches_.find(key); known != matches_.end()) return known->second;
    api::SelectorEnvironment environment;
    environment.stored = true;
    const api::DeviceInput input = api::DeviceInput::read("d", *things_[i].device, true);
    bool all = true;
    const auto check = [&](const Value& selectors) {
      for (const Value& selector : selectors.items()) {
        const api::Selector compiled =
            api::compile_selector(selector["cel"]["expression"].as_string(), environment);
        all = all && api::match(compiled, input).matches;
      }
    };
    for (const Value& object : problem_["classes"].items()) {
      if (object["metadata"]["name"] == (*ask.spec)["deviceClassName"]) {
        check(object["spec"]["selectors"]);
      }
    }
    check((*ask.spec)["selectors"]);
    return matches_[key] = all;
  }

  /// What the device loses of its memory, or -1 where it cannot be had that way.
  std::int64_t intake(const Ask& ask, std::size_t i) const {
    const Value& device = *things_[i].device;
    const Value& memory = device["capacity"]["memory"];
    const Value& wanted = (*ask.spec)["capacity"]["requests"]["memory"];
    if (memory.is_null()) return wanted.is_null() ? 0 : -1;
    const std::int64_t value = number(memory["value"]);
    const bool policy = memory["requestPolicy"].is_object();
    const std::int64_t taken = !wanted.is_null() ? number(wanted) : policy ? 1 : value;
    return taken <= value ? taken : -1;
  }

  bool multiple(std::size_t i) const {
    return (*things_[i].device)["allowMultipleAllocations"].as_bool();
  }
  static bool admin(const Ask& ask) { return (*ask.spec)["adminAccess"].as_bool(); }

  bool free_of_earlier() const {
    const Choice& last = choices_.back();
    if (things_[last.thing].allocated && !admin(*last.ask)) return false;
    if (multiple(last.thing)) return true;
    return std::none_of(choices_.begin(), choices_.end() - 1, [&](const Choice& other) {
      return other.thing == last.thing &&
             (!admin(*last.ask) || other.ask->claim == last.ask->claim);
    });
  }

  bool valid() {
    std::vector<Choice> all;
    all.swap(choices_);
    bool good = true;
    for (const Choice& choice : all) {
      choices_.push_back(choice);
      good = good && free_of_earlier() && tolerated(choice);
    }
    return good && capacity_holds() && counters_hold() && groups_hold() && constraints_hold();
  }

  bool tolerated(const Choice& choice) const {
    return (*things_[choice.thing].device)["taints"].empty() ||
           !(*choice.ask->spec)["tolerations"].empty();
  }

  bool capacity_holds() const {
    std::map<std::size_t, std::int64_t> used;
    for (const Choice& choice : choices_) {
      const std::int64_t taken = intake(*choice.ask, choice.thing);
      if (taken < 0) return false;
      if (multiple(choice.thing)) used[choice.thing] += taken;
    }
    return std::all_of(used.begin(), used.end(), [&](const auto& entry) {
      return entry.second <= number((*things_[entry.first].device)["capacity"]["memory"]["value"]);
    });
  }

  /// Once for each pick, but a shared device counts with its first share only.
  void each_consumption(const std::function<void(const Thing&, const Value&)>& visit) const {
    std::set<std::size_t> shared;
    for (const Thing& thing : things_) {
      if (!thing.allocated) continue;
      for (const Value& use : (*thing.device)["consumesCounters"].items()) visit(thing, use);
    }
    for (const Choice& choice : choices_) {
      if (multiple(choice.thing) && !shared.insert(choice.thing).second) continue;
      const Thing& thing = things_[choice.thing];
      for (const Value& use : (*thing.device)["consumesCounters"].items()) visit(thing, use);
    }
  }

  bool counters_hold() const {
    std::map<std::string, std::int64_t> left = counters_;
    std::set<std::string> wanted;
    each_consumption([&](const Thing& thing, const Value& use) {
      for (const auto& [name, counter] : use["counters"].members()) {
        left[cat(thing.pool, "/", use["counterSet"].as_string(), "/", name)] -=
            number(counter["value"]);
      }
    });
    for (const Choice& choice : choices_) {
      const Thing& thing = things_[choice.thing];
      for (const Value& use : (*thing.device)["consumesCounters"].items()) {
        for (const auto& [name, counter] : use["counters"].members()) {
          // What is overdrawn already is nobody's concern who takes nothing of it.
          if (number(counter["value"]) == 0) continue;
          if (left[cat(thing.pool, "/", use["counterSet"].as_string(), "/", name)] < 0)
            return false;
        }
      }
    }
    return true;
  }

  bool groups_hold() const {
    // Per set: how many members, how many without groups, how many in each.
    struct Members {
      int all = 0;
      int none = 0;
      std::map<std::string, int> in;
      bool picked = false;
    };
    std::map<std::string, Members> sets;
    each_consumption([&](const Thing& thing, const Value& use) {
      Members& members = sets[cat(thing.pool, "/", use["counterSet"].as_string())];
      ++members.all;
      if (use["compatibilityGroups"].empty()) ++members.none;
      for (const Value& group : use["compatibilityGroups"].items()) ++members.in[group.str()];
    });
    for (const Choice& choice : choices_) {
      const Thing& thing = things_[choice.thing];
      for (const Value& use : (*thing.device)["consumesCounters"].items()) {
        sets[cat(thing.pool, "/", use["counterSet"].as_string())].picked = true;
      }
    }
    return std::all_of(sets.begin(), sets.end(), [](const auto& entry) {
      const Members& members = entry.second;
      if (!members.picked || members.all == members.none) return true;
      return std::any_of(members.in.begin(), members.in.end(),
                         [&](const auto& group) { return group.second == members.all; });
    });
  }

  /// The values of an attribute as texts; empty: it is missing, or cannot be compared.
  std::set<std::string> values(const Choice& choice, std::string_view attribute) const {
    const Value& attributes = (*things_[choice.thing].device)["attributes"];
    const std::int64_t index = attributes["index"]["int"].as_int();
    for (const Value& derived : (*choice.ask->spec)["derivedAttributes"].items()) {
      if (derived["name"].as_string() != attribute) continue;
      return {std::to_string(derived["expression"].as_string().find('/') != std::string_view::npos
                                 ? index / 2
                                 : index % 3)};
    }
    if (!attribute.starts_with("d/")) return {};
    const Value& found = attributes[attribute.substr(2)];
    if (found["int"].is_integer()) return {std::to_string(found["int"].as_int())};
    if (found["string"].is_string()) return {found["string"].str()};
    std::set<std::string> made;
    for (const Value& item : found["strings"].items()) made.insert(item.str());
    if (!lists_ && !made.empty()) return {kIncomparable};
    return made;
  }

  bool constraints_hold() const {
    int claim = 0;
    for (const Value& object : problem_["claims"].items()) {
      for (const Value& constraint : object["spec"]["devices"]["constraints"].items()) {
        if (!constraint_holds(claim, constraint)) return false;
      }
      ++claim;
    }
    return true;
  }

  bool constraint_holds(int claim, const Value& constraint) const {
    const bool match = constraint["matchAttribute"].is_string();
    const std::string_view attribute =
        constraint[match ? "matchAttribute" : "distinctAttribute"].as_string();
    std::vector<std::set<std::string>> sets;
    for (const Choice& choice : choices_) {
      if (choice.ask->claim != claim) continue;
      const Value& requests = constraint["requests"];
      const bool concerned =
          requests.empty() ||
          std::any_of(requests.items().begin(), requests.items().end(), [&](const Value& name) {
            return name.as_string() == choice.ask->parent || name.as_string() == choice.ask->name;
          });
      if (!concerned) continue;
      sets.push_back(values(choice, attribute));
      if (sets.back().empty()) return false;
      // Good for the first of them only.
      if (sets.back().contains(kIncomparable) && sets.size() > 1) return false;
    }
    if (sets.empty()) return true;
    std::set<std::string> common = sets.front();
    for (std::size_t i = 1; i < sets.size(); ++i) {
      std::set<std::string> both;
      std::set_intersection(common.begin(), common.end(), sets[i].begin(), sets[i].end(),
                            std::inserter(both, both.begin()));
      if (match && both.empty()) return false;
      if (match) {
        common = both;
        continue;
      }
      if (!both.empty()) return false;
      common.insert(sets[i].begin(), sets[i].end());
    }
    return true;
  }

  static constexpr const char* kIncomparable = "\n";

  const Value& problem_;
  std::uint64_t left_;
  bool lists_ = false;
  std::vector<Thing> things_;
  std::map<std::string, std::int64_t> counters_;
  std::vector<std::vector<Ask>> requests_;
  std::vector<Choice> choices_;
  std::map<std::string, bool> matches_;
};

/// "claim/request: pool/device" for each device of the first solution; nothing when there is none.
/// `most` bounds the number of choices that are looked at; `gave_up` tells that it was not enough.
std::optional<std::vector<std::string>> brute_force(const Value& problem, std::uint64_t most,
                                                    bool& gave_up) {
  Oracle oracle(problem, most);
  const bool found = oracle.solve();
  gave_up = oracle.gave_up();
  if (!found) return std::nullopt;
  return oracle.solution();
}

std::vector<std::string> devices_of(const Outcome& outcome) {
  std::vector<std::string> made;
  for (std::size_t c = 0; c < outcome.allocations.size(); ++c) {
    for (const Value& result : outcome.allocations[c]["devices"]["results"].items()) {
      made.push_back(cat(c, "/", result["request"].as_string(), ": ", result["pool"].as_string(),
                         "/", result["device"].as_string()));
    }
  }
  return made;
}

struct Agreement {
  int solved = 0;
  int unsolved = 0;
  int skipped = 0;  // a fault, or too long for brute force

  void one(std::uint64_t seed, const RandomCaseOptions& options) {
    const Value problem = random_case(seed, options);
    Limits limits;
    if (seed % 2 == 0) limits.plain_steps = 0;
    const Outcome outcome = Case(problem).run(limits);
    bool gave_up = false;
    if (outcome.answer == Answer::failed) {
      ++skipped;
      return;
    }
    const auto expected = brute_force(problem, 200'000, gave_up);
    if (gave_up) {
      ++skipped;
      return;
    }
    if (expected.has_value()) {
      ASSERT_EQ(devices_of(outcome), *expected) << json::write(problem);
      ++solved;
    } else {
      ASSERT_EQ(outcome.answer, Answer::unavailable) << json::write(problem);
      ++unsolved;
    }
  }
};

std::uint64_t rounds(std::uint64_t usual) {
  const char* set = std::getenv("DIBS_ALLOC_ROUNDS");
  return set != nullptr ? std::strtoull(set, nullptr, 10) : usual;
}

void agree(std::uint64_t first, std::uint64_t count, const RandomCaseOptions& options) {
  Agreement agreement;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    agreement.one(seed, options);
    if (testing::Test::HasFatalFailure()) return;
  }
  std::cout << agreement.solved << " with and " << agreement.unsolved
            << " without a solution agree, " << agreement.skipped << " skipped\n";
}

TEST(BruteForce, agrees_on_a_single_claim) {
  RandomCaseOptions options;
  options.faults = false;
  options.claims = 1;
  options.devices = 6;
  agree(1, rounds(500), options);
}

TEST(BruteForce, agrees_on_several_claims) {
  RandomCaseOptions options;
  options.faults = false;
  options.pools = 1;
  options.devices = 7;
  options.claims = 3;
  options.requests = 2;
  options.count = 2;
  agree(10'000'000, rounds(500), options);
}

}  // namespace
}  // namespace dibs::alloc
