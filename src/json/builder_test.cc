#include "json/builder.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "json/parse.h"

namespace dibs::json {
namespace {

TEST(Builder, adds_new_members_in_order) {
  Value object = Builder::make(Kind::object, 1);
  *Builder::add_new(object, Value("b")) = Value(1);
  *Builder::add_new(object, Value("a")) = Value("x");
  EXPECT_EQ(write(object), R"({"b":1,"a":"x"})");
}

// Above 24 members an object has an index.
TEST(Builder, takes_members_of_any_number) {
  for (const int count : {0, 1, 2, 24, 25, 60}) {
    std::vector<Member> members(static_cast<std::size_t>(count));
    Value expected = Value::object();
    for (int i = 0; i < count; ++i) {
      const std::string key = "a key that does not fit inline " + std::to_string(i);
      Builder::set_key(members[static_cast<std::size_t>(i)], Value(key));
      Builder::value(members[static_cast<std::size_t>(i)]) = Value::array({key, i});
      expected.set(key, Value::array({key, i}));
    }

    const Value taken = Builder::take(members);

    EXPECT_EQ(write(taken), write(expected));
    for (const auto& [key, value] : expected.members()) EXPECT_EQ(taken[key], value);
    EXPECT_FALSE(taken.contains("none"));
    for (const Member& member : members) {
      EXPECT_TRUE(Builder::key(member).is_null());
      EXPECT_TRUE(member.value().is_null());
    }
  }
}

}  // namespace
}  // namespace dibs::json
