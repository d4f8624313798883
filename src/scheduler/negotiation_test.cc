#include "scheduler/negotiation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/strings.h"
#include "json/parse.h"
#include "json/test_text.h"
#include "runtime/sim_runtime.h"

namespace dibs::scheduler {
namespace {

using json::test::from_text;
using Names = std::vector<std::string>;

class Negotiation : public testing::Test {
 protected:
  Step step(const Talk& talk) { return negotiate(talk, sim.runtime().random); }

  runtime::SimRuntime sim;
};

/// One claim, two nodes, nothing said yet.
Talk fresh() {
  Talk talk;
  talk.asked = 1;
  talk.chosen = "b";
  talk.candidates = {"b", "a"};
  return talk;
}

TEST_F(Negotiation, selects_at_once_for_a_claim_alone) {
  const Step made = step(fresh());

  ASSERT_TRUE(made.propose);
  EXPECT_EQ(*made.propose, (Proposal{"b", {"a", "b"}}));
  EXPECT_TRUE(made.selected);
}

TEST_F(Negotiation, asks_about_nodes_first_where_drivers_could_disagree) {
  Talk talk = fresh();
  talk.asked = 2;
  for (const std::size_t heard : {0, 1}) {
    talk.heard = heard;

    const Step made = step(talk);

    ASSERT_TRUE(made.propose);
    EXPECT_EQ(*made.propose, (Proposal{"", {"a", "b"}}));
    EXPECT_FALSE(made.selected);
  }
}

TEST_F(Negotiation, asks_first_where_other_claims_have_to_be_had_on_the_same_node) {
  Talk talk = fresh();
  talk.searches = true;

  EXPECT_EQ(*step(talk).propose, (Proposal{"", {"a", "b"}}));

  talk.standing = {"", {"a", "b"}};
  talk.heard = 1;
  EXPECT_EQ(*step(talk).propose, (Proposal{"b", {"a", "b"}}));
}

TEST_F(Negotiation, selects_when_every_driver_has_answered) {
  Talk talk = fresh();
  talk.asked = 3;
  talk.heard = 3;
  talk.standing = {"", {"a", "b"}};

  const Step made = step(talk);

  EXPECT_EQ(*made.propose, (Proposal{"b", {"a", "b"}}));
  EXPECT_TRUE(made.selected);
}

TEST_F(Negotiation, writes_nothing_that_stands) {
  Talk talk = fresh();
  talk.standing = {"b", {"a", "b", "c"}};  // c is refused by now

  EXPECT_FALSE(step(talk).propose);
  EXPECT_TRUE(step(talk).selected);

  talk.asked = 2;
  talk.standing.selected_node.clear();
  EXPECT_FALSE(step(talk).propose);
  EXPECT_FALSE(step(talk).selected);
}

TEST_F(Negotiation, names_new_nodes_and_keeps_the_selected_one) {
  Talk talk = fresh();
  talk.standing = {"b", {"b"}};

  EXPECT_EQ(*step(talk).propose, (Proposal{"b", {"a", "b"}}));
}

TEST_F(Negotiation, forgets_nothing_that_drivers_know_while_there_is_room) {
  Talk talk = fresh();
  talk.standing = {"", {"x", "gone"}};
  talk.known = {"x"};

  EXPECT_EQ(step(talk).propose->potential_nodes, (Names{"a", "b", "x"}));

  for (int i = 0; i < 127; ++i) talk.known.push_back(cat("n", i));
  EXPECT_EQ(step(talk).propose->potential_nodes, (Names{"a", "b"}));
}

TEST_F(Negotiation, moves_away_from_a_node_that_will_not_do) {
  Talk talk = fresh();
  talk.standing = {"c", {"a", "b", "c"}};

  EXPECT_EQ(*step(talk).propose, (Proposal{"b", {"a", "b", "c"}}));
}

TEST_F(Negotiation, takes_a_selection_back_while_a_driver_has_to_be_heard) {
  Talk talk = fresh();
  talk.asked = 2;
  talk.heard = 1;
  talk.standing = {"c", {"a", "b", "c"}};

  EXPECT_EQ(*step(talk).propose, (Proposal{"", {"a", "b", "c"}}));

  // One that would still do stays.
  talk.standing.selected_node = "b";
  EXPECT_FALSE(step(talk).propose);
}

TEST_F(Negotiation, asks_about_128_nodes_by_chance_and_about_the_chosen_one) {
  Talk talk;
  talk.asked = 1;
  for (int i = 0; i < 500; ++i) talk.candidates.push_back(cat("n", i));
  talk.chosen = "n499";
  std::set<Names> seen;
  for (int i = 0; i < 5; ++i) {
    const Names names = step(talk).propose->potential_nodes;
    EXPECT_EQ(names.size(), kMostPotentialNodes);
    EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
    EXPECT_THAT(names, testing::Contains("n499"));
    seen.insert(names);
  }
  EXPECT_GT(seen.size(), 1U);
}

/// What comes of every state of the talk, as one table.
TEST_F(Negotiation, never_selects_too_early_and_never_says_nothing_to_nobody) {
  for (std::size_t asked = 1; asked <= 3; ++asked) {
    for (std::size_t heard = 0; heard <= asked; ++heard) {
      for (const bool searches : {false, true}) {
        for (const char* selected : {"", "a", "b", "gone"}) {
          for (const Names& potential : {Names{}, Names{"a"}, Names{"a", "b"}, Names{"gone"}}) {
            Talk talk;
            talk.asked = asked;
            talk.heard = heard;
            talk.searches = searches;
            talk.standing = {selected, potential};
            talk.chosen = "a";
            talk.candidates = {"a", "b"};
            const Step made = step(talk);
            const Proposal after = made.propose.value_or(talk.standing);

            const bool may_select = heard == asked || (asked == 1 && !searches);
            EXPECT_EQ(made.selected, may_select);
            // Drivers allocate on the chosen node or nowhere.
            EXPECT_TRUE(after.selected_node == "a" || (after.selected_node.empty() && !may_select));
            EXPECT_THAT(after.potential_nodes, testing::IsSupersetOf(talk.candidates));
            // What is written stands the next time.
            talk.standing = after;
            EXPECT_FALSE(step(talk).propose);
          }
        }
      }
    }
  }
}

TEST(Told, uses_the_words_of_1_30) {
  const Proposal any{"a", {"a"}};
  EXPECT_EQ(told({any, true}, 30).message, "waiting for resource driver");
  EXPECT_EQ(told({std::nullopt, true}, 30).message,
            "0/1 nodes are available: 1 waiting for resource driver to provide information.");
  EXPECT_EQ(told({any, false}, 30).message,
            "0/1 nodes are available: 1 waiting for resource driver to provide information.");
  EXPECT_EQ(told({any, true}, kNewestRelease).message, "waiting for resource driver");
  EXPECT_FALSE(told({any, true}, 30).error);
}

TEST(Told, uses_the_words_of_1_27) {
  const std::string before = "running Reserve plugin \"DynamicResources\": ";
  const Failure failure = told({std::nullopt, true}, 27);
  EXPECT_EQ(failure.message, before + "waiting for resource driver to allocate resource");
  EXPECT_TRUE(failure.error);
  EXPECT_TRUE(failure.waits);
  EXPECT_EQ(told({std::nullopt, false}, 27).message,
            before + "waiting for resource driver to provide information");
}

TEST(Context, belongs_to_its_pod) {
  const json::Value pod =
      from_text("{'metadata':{'name':'p','namespace':'ns','uid':'u'},'spec':{}}");
  const json::Value made = make_context(pod, {"a", {"a", "b"}}, 30);
  EXPECT_EQ(json::write(made["spec"]), "{\"selectedNode\":\"a\",\"potentialNodes\":[\"a\",\"b\"]}");
  EXPECT_EQ(json::write(made["metadata"]["ownerReferences"]),
            "[{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"p\",\"uid\":\"u\","
            "\"controller\":true,\"blockOwnerDeletion\":true}]");
  EXPECT_FALSE(
      make_context(pod, {}, 27)["metadata"]["ownerReferences"][0].contains("blockOwnerDeletion"));
  EXPECT_EQ(Proposal::read(made), (Proposal{"a", {"a", "b"}}));
}

TEST(Context, has_an_answer_for_each_claim) {
  const json::Value context = from_text(
      "{'status':{'resourceClaims':[{'name':'x'},{'name':'y','unsuitableNodes':['a']}]}}");
  ASSERT_NE(answer_of(context, "x"), nullptr);
  EXPECT_TRUE((*answer_of(context, "x"))["unsuitableNodes"].empty());
  EXPECT_EQ((*answer_of(context, "y"))["unsuitableNodes"][0].as_string(), "a");
  EXPECT_EQ(answer_of(context, "z"), nullptr);
  EXPECT_EQ(answer_of({}, "x"), nullptr);
}

}  // namespace
}  // namespace dibs::scheduler
