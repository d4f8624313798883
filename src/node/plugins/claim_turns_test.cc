#include "node/plugins/claim_turns.h"

#include <gmock/gmock.h>

#include <future>
#include <optional>
#include <stdexcept>

#include "base/strings.h"

namespace dibs::node {
namespace {

using namespace std::chrono_literals;
using Turns = std::vector<ClaimTurns::Turn>;

constexpr Duration kLong = 1min;

std::string text_of(const Result<Turns>& taken) {
  return taken ? std::string("taken") : taken.error().message();
}

/// Asks in a thread of its own.
class Asker {
 public:
  Asker(ClaimTurns& turns, std::vector<std::string> claims, std::string owner)
      : taken_(std::async(std::launch::async,
                          [&turns, claims, owner] { return turns.take(claims, owner); })) {}

  Result<Turns> answer() { return taken_.get(); }

 private:
  std::future<Result<Turns>> taken_;
};

/// Returns when the owner is in the claim's line: from then on he cannot enter it again. The
/// calling thread must have the turn.
void until_in_line(ClaimTurns& turns, const std::string& claim, const std::string& owner) {
  while (!text_of(turns.take({claim}, owner)).ends_with(cat("pod ", owner, " already"))) {
    std::this_thread::yield();
  }
}

TEST(ClaimTurns, nobody_waits_for_claims_of_others) {
  ClaimTurns turns(kLong);

  auto p = turns.take({"n/a", "n/b"}, "p");
  auto q = turns.take({"n/c"}, "q");

  EXPECT_EQ(text_of(p), "taken");
  EXPECT_EQ(text_of(q), "taken");
  ASSERT_EQ(p->size(), 2U);
  EXPECT_EQ((*p)[1].claim(), "n/b");
}

TEST(ClaimTurns, the_second_owner_waits_for_the_end_of_the_first) {
  ClaimTurns turns(kLong);
  std::optional<Turns> first = turns.take({"n/a", "n/b"}, "p").value();
  Asker second(turns, {"n/b"}, "q");
  until_in_line(turns, "n/b", "q");

  first.reset();

  EXPECT_EQ(text_of(second.answer()), "taken");
}

TEST(ClaimTurns, a_turn_that_is_given_back_early_lets_the_next_go) {
  ClaimTurns turns(kLong);
  Turns first = turns.take({"n/a", "n/b"}, "p").value();
  Asker second(turns, {"n/a"}, "q");

  std::erase_if(first, [](const ClaimTurns::Turn& turn) { return turn.claim() == "n/a"; });

  EXPECT_EQ(text_of(second.answer()), "taken");
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].claim(), "n/b");
}

TEST(ClaimTurns, come_in_the_order_of_asking) {
  ClaimTurns turns(kLong);
  std::optional<Turns> first = turns.take({"n/a"}, "p").value();
  Asker second(turns, {"n/a", "n/b"}, "q");
  until_in_line(turns, "n/a", "q");

  // n/b is nobody's yet, but q asked for it before.
  Asker third(turns, {"n/a", "n/b"}, "r");
  until_in_line(turns, "n/a", "r");
  first.reset();

  std::optional<Result<Turns>> had = second.answer();
  EXPECT_EQ(text_of(*had), "taken");
  EXPECT_EQ(text_of(turns.take({"n/b"}, "r")),
            "ResourceClaim n/b is being worked on for pod r already");
  had.reset();
  EXPECT_EQ(text_of(third.answer()), "taken");
}

TEST(ClaimTurns, cannot_be_entered_twice_by_the_same_owner) {
  ClaimTurns turns(kLong);
  const auto first = turns.take({"n/a"}, "p");

  EXPECT_EQ(text_of(Asker(turns, {"n/b", "n/a"}, "p").answer()),
            "ResourceClaim n/a is being worked on for pod p already");
  EXPECT_EQ(text_of(turns.take({"n/b"}, "q")), "taken") << "the refused one is in no line";
}

TEST(ClaimTurns, a_thread_does_not_wait_for_itself) {
  ClaimTurns turns(kLong);
  const auto first = turns.take({"n/a"}, "p");

  EXPECT_EQ(text_of(turns.take({"n/a"}, "q")), "ResourceClaim n/a is being worked on for pod p");
}

TEST(ClaimTurns, who_waited_too_long_is_told_for_whom_and_leaves_the_line) {
  ClaimTurns turns(1ms);
  std::optional<Turns> first = turns.take({"n/a"}, "p").value();

  const auto late = Asker(turns, {"n/b", "n/a"}, "q").answer();

  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code(), Code::timeout);
  EXPECT_EQ(late.error().message(),
            "ResourceClaim n/a is being worked on for pod p since more than 1ms");
  EXPECT_EQ(text_of(turns.take({"n/b"}, "r")), "taken");
  first.reset();
  EXPECT_EQ(text_of(turns.take({"n/a"}, "q")), "taken");
}

TEST(ClaimTurns, only_the_turn_itself_can_end_it) {
  ClaimTurns turns(1ms);
  std::optional<Turns> first = turns.take({"n/a"}, "p").value();
  Turns kept = std::move(*first);

  first.reset();
  EXPECT_EQ(text_of(Asker(turns, {"n/a"}, "q").answer()),
            "ResourceClaim n/a is being worked on for pod p since more than 1ms");

  kept.clear();
  EXPECT_EQ(text_of(turns.take({"n/a"}, "q")), "taken");
}

TEST(ClaimTurns, end_when_their_holder_throws) {
  ClaimTurns turns(kLong);
  const auto work = [&] {
    const auto taken = turns.take({"n/a"}, "p");
    throw std::runtime_error("broken");
  };

  EXPECT_THROW(work(), std::runtime_error);

  EXPECT_EQ(text_of(turns.take({"n/a"}, "q")), "taken");
}

}  // namespace
}  // namespace dibs::node
