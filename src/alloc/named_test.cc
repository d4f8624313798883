// Named resources of Kubernetes 1.30 in the same inventory and search: an oracle in plain code that
// shares nothing with the allocator, and upstream's greedy choice where that succeeds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "alloc/failure.h"
#include "alloc/search.h"
#include "base/strings.h"
#include "json/parse.h"

namespace dibs::alloc {
namespace {

using json::Value;
using testing::ElementsAre;
using testing::HasSubstr;

struct Instance {
  std::string driver;
  std::string name;
  std::optional<int> x;  // attributes.int["x"]
  std::string model;     // attributes.string["model"]
};

/// Yes, no, or an error.
using Says = std::optional<bool>;

struct Expression {
  const char* text;
  Says (*says)(const Instance&);
};

constexpr Expression kExpressions[] = {
    {"true", [](const Instance&) { return Says(true); }},
    {R"("x" in attributes.int)", [](const Instance& i) { return Says(i.x.has_value()); }},
    {R"(attributes.string["model"] == "a")",
     [](const Instance& i) { return Says(i.model == "a"); }},
    {R"(attributes.int["x"] >= 2)",
     [](const Instance& i) { return i.x ? Says(*i.x >= 2) : Says(); }},
    {R"(attributes.int["x"] == 1 || attributes.string["model"] == "b")",
     [](const Instance& i) {
       if (i.model == "b") return Says(true);
       return i.x ? Says(*i.x == 1) : Says();
     }},
};

struct Wish {
  std::size_t claim = 0;
  std::string driver;
  const Expression* filter = nullptr;  // null: none
  const Expression* selector = nullptr;

  Says says(const Instance& instance) const {
    if (filter != nullptr) {
      const Says passes = filter->says(instance);
      if (!passes || !*passes) return passes;
    }
    return selector->says(instance);
  }
};

struct Problem {
  std::vector<Instance> instances;
  std::set<std::string> used;  // "driver/name"
  std::vector<Wish> wishes;
  std::size_t claims = 0;
};

std::string id_of(const Instance& instance) { return cat(instance.driver, "/", instance.name); }

struct Expected {
  enum class Kind { found, nothing, error };
  Kind kind = Kind::nothing;
  std::vector<std::string> ids;
};

/// The first end of the walk through all choices.
Expected brute_force(const Problem& problem) {
  std::set<std::string> taken = problem.used;
  Expected made;
  const std::function<bool(std::size_t)> serve = [&](std::size_t at) {
    if (at == problem.wishes.size()) {
      made.kind = Expected::Kind::found;
      return true;
    }
    const Wish& wish = problem.wishes[at];
    for (const Instance& instance : problem.instances) {
      if (instance.driver != wish.driver || taken.contains(id_of(instance))) continue;
      const Says says = wish.says(instance);
      if (!says) {
        made.kind = Expected::Kind::error;
        return true;
      }
      if (!*says) continue;
      taken.insert(id_of(instance));
      made.ids.push_back(id_of(instance));
      if (serve(at + 1)) return true;
      made.ids.pop_back();
      taken.erase(id_of(instance));
    }
    return false;
  };
  serve(0);
  return made;
}

/// As upstream takes them, with the model brought up to date between claims.
Expected greedy(const Problem& problem) {
  std::set<std::string> taken = problem.used;
  Expected made;
  made.kind = Expected::Kind::found;
  for (const Wish& wish : problem.wishes) {
    bool found = false;
    for (const Instance& instance : problem.instances) {
      if (found || instance.driver != wish.driver || taken.contains(id_of(instance))) continue;
      const Says says = wish.says(instance);
      if (!says) return {Expected::Kind::error, {}};
      if (!*says) continue;
      found = true;
      taken.insert(id_of(instance));
      made.ids.push_back(id_of(instance));
    }
    if (!found) made.kind = Expected::Kind::nothing;
  }
  return made;
}

Value slice_of(const std::string& name, const std::string& driver,
               const std::vector<Instance>& instances, const std::string& node = "n") {
  Value list = Value::array();
  for (const Instance& instance : instances) {
    if (instance.driver != driver) continue;
    Value attributes = Value::array();
    attributes.push(Value::object({{"name", "model"}, {"string", instance.model}}));
    if (instance.x) attributes.push(Value::object({{"name", "x"}, {"int", *instance.x}}));
    list.push(Value::object({{"name", instance.name}, {"attributes", std::move(attributes)}}));
  }
  return Value::object({{"metadata", Value::object({{"name", name}})},
                        {"nodeName", node},
                        {"driverName", driver},
                        {"namedResources", Value::object({{"instances", std::move(list)}})}});
}

/// An allocation as the API has it.
Value allocation_of(const std::string& driver, const std::string& name) {
  return Value::object(
      {{"resourceHandles",
        Value::array({Value::object(
            {{"driverName", driver},
             {"structuredData",
              Value::object({{"nodeName", "n"},
                             {"results", Value::array({Value::object(
                                             {{"namedResources",
                                               Value::object({{"name", name}})}})})}})}})})}});
}

class World {
 public:
  explicit World(const Problem& problem) : problem_(problem) {
    std::set<std::string> drivers;
    for (const Instance& instance : problem.instances) drivers.insert(instance.driver);
    for (const std::string& driver : drivers) {
      inventory.put(driver, slice_of(driver, driver, problem.instances));
    }
    for (const std::string& id : problem.used) {
      const std::size_t slash = id.find('/');
      inventory.take(allocation_of(id.substr(0, slash), id.substr(slash + 1)));
    }
    node.name = "n";
    demand = make_demand();
  }

  Outcome run(const Limits& limits = {}) {
    return allocate(
        inventory, node, demand, [] { return std::string(); }, limits);
  }

  Inventory inventory{Features(), Resources::named};
  Node node;
  Demand demand;

 private:
  Demand make_demand() {
    std::vector<std::shared_ptr<Claim>> claims(problem_.claims);
    for (std::size_t c = 0; c < problem_.claims; ++c) {
      claims[c] = std::make_shared<Claim>();
      claims[c]->name = claims[c]->id = cat("c", c);
    }
    std::map<std::string, std::shared_ptr<const DeviceClass>, std::less<>> classes;
    for (const Wish& wish : problem_.wishes) {
      Claim& claim = *claims[wish.claim];
      Request request;
      request.name = cat("r", claim.requests.size());
      DeviceRequest spec;
      spec.name = spec.result_name = request.name;
      spec.driver = wish.driver;
      spec.count = 1;
      spec.selectors = {wish.selector->text};
      spec.class_name = cat(wish.filter == nullptr ? "" : wish.filter->text, "/");
      if (!classes.contains(spec.class_name)) {
        DeviceClass made;
        made.name = "class";
        if (wish.filter != nullptr) made.selectors = {wish.filter->text};
        classes[spec.class_name] = std::make_shared<const DeviceClass>(std::move(made));
      }
      request.alternatives.push_back(std::move(spec));
      claim.requests.push_back(std::move(request));
    }
    return Demand::prepare(inventory, {claims.begin(), claims.end()},
                           [&](std::string_view name) { return classes.find(name)->second; });
  }

  const Problem& problem_;
};

std::vector<std::string> ids_of(const Outcome& outcome) {
  std::vector<std::string> made;
  for (const Value& allocation : outcome.allocations) {
    for (const Value& result : allocation["devices"]["results"].items()) {
      made.push_back(cat(result["driver"].as_string(), "/", result["device"].as_string()));
    }
  }
  return made;
}

Problem random_problem(std::mt19937& random) {
  const auto upto = [&](int most) { return static_cast<int>(random() % (most + 1)); };
  Problem made;
  for (const char* driver : {"d", "e"}) {
    const int count = upto(5);
    for (int i = 0; i < count; ++i) {
      Instance instance;
      instance.driver = driver;
      instance.name = cat("i", i);
      if (upto(7) > 0) instance.x = upto(3);
      instance.model = upto(1) == 0 ? "a" : "b";
      if (upto(4) == 0) made.used.insert(id_of(instance));
      made.instances.push_back(instance);
    }
  }
  made.claims = 1 + static_cast<std::size_t>(upto(2));
  for (std::size_t c = 0; c < made.claims; ++c) {
    const int requests = upto(2) + 1;
    const Expression* filter = upto(3) == 0 ? &kExpressions[upto(4)] : nullptr;
    for (int r = 0; r < requests; ++r) {
      made.wishes.push_back({c, upto(2) == 0 ? "e" : "d", filter, &kExpressions[upto(4)]});
    }
  }
  return made;
}

int rounds() {
  const char* text = std::getenv("DIBS_ALLOC_ROUNDS");
  return text != nullptr ? std::atoi(text) : 1500;
}

TEST(NamedResources, are_chosen_as_the_oracle_says) {
  std::mt19937 random(7);
  int found = 0;
  int better = 0;
  int errors = 0;
  for (int round = 0; round < rounds(); ++round) {
    const Problem problem = random_problem(random);
    World world(problem);
    Limits deep_only;
    deep_only.plain_steps = 0;
    const Expected expected = brute_force(problem);
    const Expected upstream = greedy(problem);
    for (const Limits& limits : {Limits(), deep_only}) {
      const Outcome outcome = world.run(limits);
      switch (expected.kind) {
        case Expected::Kind::found:
          ASSERT_EQ(outcome.answer, Answer::allocated) << round;
          ASSERT_EQ(ids_of(outcome), expected.ids) << round;
          break;
        case Expected::Kind::nothing:
          ASSERT_EQ(outcome.answer, Answer::unavailable) << round << outcome.error;
          break;
        case Expected::Kind::error:
          ASSERT_EQ(outcome.answer, Answer::failed) << round;
          ASSERT_THAT(outcome.error, HasSubstr(" CEL expression: no such key: x")) << round;
          break;
      }
    }
    if (upstream.kind == Expected::Kind::found) {
      ASSERT_EQ(expected.kind, Expected::Kind::found) << round;
      ASSERT_EQ(expected.ids, upstream.ids) << round;
    }
    found += expected.kind == Expected::Kind::found ? 1 : 0;
    errors += expected.kind == Expected::Kind::error ? 1 : 0;
    better += expected.kind == Expected::Kind::found && upstream.kind != expected.kind ? 1 : 0;
  }
  // The cases are of all kinds.
  EXPECT_GT(found, rounds() / 10);
  EXPECT_GT(errors, rounds() / 50);
  EXPECT_GT(better, 0);
}

const Expression* const kAny = &kExpressions[0];

TEST(NamedResources, fail_a_node_with_the_words_of_the_release) {
  Problem problem;
  problem.instances = {{"d", "i0", 1, "a"}, {"d", "i1", std::nullopt, "a"}};
  problem.claims = 1;
  problem.wishes = {{0, "d", nullptr, &kExpressions[3]}};
  EXPECT_EQ(World(problem).run().error,
            "checking node \"n\" and resources of driver \"d\": evaluate request CEL expression: "
            "no such key: x");
  problem.wishes = {{0, "d", &kExpressions[3], kAny}};
  EXPECT_EQ(World(problem).run().error,
            "checking node \"n\" and resources of driver \"d\": evaluate filter CEL expression: no "
            "such key: x");
  // What comes after the one that is taken is not looked at.
  problem.instances[0].x = 2;
  EXPECT_EQ(World(problem).run().answer, Answer::allocated);
}

TEST(NamedResources, of_another_driver_are_never_taken) {
  Problem problem;
  problem.instances = {{"d", "i0", 1, "a"}, {"e", "i0", 1, "a"}, {"e", "i1", 1, "a"}};
  problem.claims = 1;
  problem.wishes = {{0, "e", nullptr, kAny}, {0, "d", nullptr, kAny}, {0, "e", nullptr, kAny}};
  EXPECT_THAT(ids_of(World(problem).run()), ElementsAre("e/i0", "d/i0", "e/i1"));
  problem.wishes.push_back({0, "d", nullptr, kAny});
  World world(problem);
  EXPECT_EQ(world.run().answer, Answer::unavailable);
  EXPECT_THAT(describe(explain(world.inventory, world.node, world.demand), world.demand),
              testing::Contains(
                  "cannot be served together: request r1 of claim c0 and request r3 of claim c0"));
}

TEST(NamedResources, are_explained) {
  Problem problem;
  problem.instances = {{"d", "i0", 1, "a"}, {"d", "i1", 3, "a"}, {"e", "i0", 3, "a"}};
  problem.used = {"d/i1"};
  problem.claims = 1;
  problem.wishes = {{0, "d", nullptr, &kExpressions[3]}};
  World world(problem);
  EXPECT_THAT(
      describe(explain(world.inventory, world.node, world.demand), world.demand),
      ElementsAre("request r0 of claim c0 wants 1 of 2 devices, and none is left: 1 does not match "
                  "the request (attributes.int[\"x\"] >= 2) and 1 is in use",
                  "would help: drop the selector (attributes.int[\"x\"] >= 2) of request r0 of "
                  "claim c0",
                  "would help: wait until 1 device in use is given back"));
}

TEST(NamedResources, come_from_all_slices_of_the_node_once) {
  Problem problem;
  problem.instances = {{"d", "i1", 1, "a"}};
  problem.claims = 1;
  problem.wishes = {{0, "d", nullptr, kAny}, {0, "d", nullptr, kAny}};
  World world(problem);
  EXPECT_EQ(world.run().answer, Answer::unavailable);
  // The same instance in another slice is no second one, and what is elsewhere does not count.
  world.inventory.put("z", slice_of("z", "d", {{"d", "i1", 1, "a"}}));
  world.inventory.put("y", slice_of("y", "d", {{"d", "i2", 1, "a"}}, "other"));
  world.inventory.put("x", slice_of("x", "d", {{"d", "i3", 1, "a"}}, ""));
  EXPECT_EQ(world.run().answer, Answer::unavailable);
  world.inventory.put("a", slice_of("a", "d", {{"d", "i0", 1, "a"}}));
  EXPECT_THAT(ids_of(world.run()), ElementsAre("d/i0", "d/i1"));
  world.inventory.remove("a");
  EXPECT_EQ(world.run().answer, Answer::unavailable);
}

TEST(NamedResources, may_be_more_than_a_claim_has_devices) {
  Problem problem;
  problem.claims = 1;
  for (int i = 0; i < 40; ++i) {
    problem.instances.push_back({"d", cat("i", i + 10), 1, "a"});
    problem.wishes.push_back({0, "d", nullptr, kAny});
  }
  EXPECT_EQ(ids_of(World(problem).run()).size(), 40U);
  problem.wishes.resize(kMostNamedResults + 1, problem.wishes[0]);
  EXPECT_EQ(World(problem).run().error,
            "claim c0: number of requested devices 257 exceeds the claim limit of 256");
}

TEST(NamedResources, are_given_back) {
  Problem problem;
  problem.instances = {{"d", "i0", 1, "a"}};
  problem.used = {"d/i0"};
  problem.claims = 1;
  problem.wishes = {{0, "d", nullptr, kAny}};
  World world(problem);
  EXPECT_EQ(world.run().answer, Answer::unavailable);
  world.inventory.release(allocation_of("d", "i0"));
  EXPECT_EQ(world.run().answer, Answer::allocated);
}

}  // namespace
}  // namespace dibs::alloc
