#include "cel/columns/columns.h"

#include <gmock/gmock.h>

#include "base/strings.h"
#include "cel/environment.h"
#include "cel/json_value.h"
#include "cel/libraries/extensions.h"
#include "json/parse.h"

namespace dibs::cel {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<Row> rows(const RowSet& set) {
  std::vector<Row> made;
  for (Row row = set.next(0); row != RowSet::kNone; row = set.next(row + 1)) made.push_back(row);
  return made;
}

class Columns : public ::testing::Test {
 protected:
  Columns() {
    environment_.variable("x", Type::parse("dyn"));
    add_bindings(environment_);
    add_optionals(environment_);
  }

  Row add(std::string_view json) {
    const Value value = json_value(*json::parse(json));
    return table_.add({&value, 1});
  }

  void change(Row row, std::string_view json) {
    const Value value = json_value(*json::parse(json));
    table_.change(row, {&value, 1});
  }

  Filter filter(std::string_view expression, std::uint64_t cost = ~std::uint64_t{0}) {
    const Compilation compiled = environment_.compile(expression);
    EXPECT_NE(compiled.program, nullptr) << format_issues(expression, compiled.issues);
    return Filter(table_, compiled.program, cost);
  }

  Environment environment_ = Environment::standard();
  Table table_{1};
};

TEST_F(Columns, rows_are_yes_no_or_failed) {
  add(R"({"a": 1})");
  add(R"({"a": 2})");
  add(R"({"b": 1})");
  add(R"({"a": "1"})");
  Filter asked = filter("x.a == 1");

  asked.update();

  EXPECT_THAT(rows(asked.yes()), ElementsAre(0));
  EXPECT_THAT(rows(asked.no()), ElementsAre(1, 3));
  EXPECT_THAT(rows(asked.failed()), ElementsAre(2));
  EXPECT_EQ(asked.explain(2).value.text(), "no such key: a");
}

TEST_F(Columns, logic_absorbs_errors) {
  add(R"({"a": true})");
  add(R"({"a": false})");
  add(R"({"b": true})");
  add(R"({"a": 7, "b": false})");
  add(R"({})");
  Filter both = filter("x.a && x.b");
  Filter either = filter("x.a || x.b");
  Filter negated = filter("!x.a");
  Filter chosen = filter("x.a ? true : x.b");

  for (Filter* one : {&both, &either, &negated, &chosen}) one->update();

  EXPECT_THAT(rows(both.no()), ElementsAre(1, 3));
  EXPECT_THAT(rows(both.failed()), ElementsAre(0, 2, 4));
  EXPECT_THAT(rows(either.yes()), ElementsAre(0, 2));
  EXPECT_THAT(rows(either.failed()), ElementsAre(1, 3, 4));
  EXPECT_THAT(rows(negated.yes()), ElementsAre(1));
  EXPECT_THAT(rows(negated.no()), ElementsAre(0));
  EXPECT_THAT(rows(negated.failed()), ElementsAre(2, 3, 4));
  EXPECT_THAT(rows(chosen.yes()), ElementsAre(0));
  EXPECT_THAT(rows(chosen.failed()), ElementsAre(1, 2, 3, 4));
}

TEST_F(Columns, presence_is_told_from_what_comes_before_it) {
  add(R"({"a": {"b": 1}})");
  add(R"({"a": {}})");
  add(R"({})");
  add(R"({"a": 3})");
  Filter present = filter("has(x.a.b)");
  Filter contained = filter("'b' in x.a");

  present.update();
  contained.update();

  EXPECT_THAT(rows(present.yes()), ElementsAre(0));
  EXPECT_THAT(rows(present.no()), ElementsAre(1, 3)) << "a number has no parts";
  EXPECT_THAT(rows(present.failed()), ElementsAre(2));
  EXPECT_THAT(rows(contained.yes()), ElementsAre(0));
  EXPECT_THAT(rows(contained.no()), ElementsAre(1));
  EXPECT_THAT(rows(contained.failed()), ElementsAre(2, 3));
}

TEST_F(Columns, unreadable_rows_fail_everywhere) {
  add("{}");
  const Row bad = table_.add_failed("does not parse");
  Filter asked = filter("true");

  asked.update();

  EXPECT_THAT(rows(asked.yes()), ElementsAre(0));
  EXPECT_THAT(rows(asked.failed()), ElementsAre(bad));
  EXPECT_EQ(asked.explain(bad).value.text(), "does not parse");

  change(bad, "{}");
  asked.update();

  EXPECT_THAT(rows(asked.yes()), ElementsAre(0, bad));
}

TEST_F(Columns, an_optional_result_counts_as_its_content) {
  add(R"({"a": true})");
  add(R"({"a": false})");
  add(R"({})");
  Filter result = filter("x.?a");
  Filter term = filter("dyn(x.?a) && true");

  result.update();
  term.update();

  EXPECT_THAT(rows(result.yes()), ElementsAre(0));
  EXPECT_THAT(rows(result.no()), ElementsAre(1));
  EXPECT_THAT(rows(result.failed()), ElementsAre(2));
  EXPECT_THAT(rows(term.failed()), ElementsAre(0, 1, 2));
}

TEST_F(Columns, rows_come_change_and_go) {
  const Row first = add(R"({"a": 1})");
  const Row second = add(R"({"a": 2})");
  Filter asked = filter("x.a == 1");
  asked.update();

  change(second, R"({"a": 1})");
  table_.remove(first);
  asked.update();

  EXPECT_THAT(rows(asked.yes()), ElementsAre(second));
  EXPECT_THAT(rows(asked.no()), IsEmpty());

  const Row third = add(R"({"a": 3})");
  asked.update();

  EXPECT_EQ(third, first) << "rows are taken again";
  EXPECT_THAT(rows(asked.yes()), ElementsAre(second));
  EXPECT_THAT(rows(asked.no()), ElementsAre(third));
}

TEST_F(Columns, each_value_is_evaluated_once) {
  for (int i = 0; i < 1000; ++i) add(cat(R"({"a": "model-)", i % 7, R"(", "b": )", i % 5, "}"));
  Filter one = filter("x.a.startsWith('model-3')");
  Filter logic = filter("x.a.startsWith('model-3') && x.b + 1 == 2");
  Filter two = filter("x.a + string(x.b) == 'model-34'");

  for (Filter* filter : {&one, &logic, &two}) filter->update();

  EXPECT_EQ(one.evaluations(), 7u);
  EXPECT_EQ(one.yes().size(), 143u);
  EXPECT_EQ(logic.evaluations(), 7u + 5u);
  EXPECT_EQ(logic.yes().size(), 28u);
  EXPECT_EQ(two.evaluations(), 35u);
  EXPECT_EQ(two.yes().size(), 28u);

  add(R"({"a": "model-3", "b": 0})");
  one.update();

  EXPECT_EQ(one.evaluations(), 7u) << "the value is known";
}

TEST_F(Columns, comparisons_with_constants_need_no_evaluation) {
  for (int i = 0; i < 100; ++i) add(cat(R"({"a": )", i, "}"));
  Filter asked =
      filter("x.a < 10 || 95 <= x.a || x.a in [50, 51] || has(x.b) || cel.bind(y, x, y.a == 20)");

  asked.update();

  EXPECT_EQ(asked.yes().size(), 18u);
  EXPECT_EQ(asked.evaluations(), 0u);
}

TEST_F(Columns, values_that_are_gone_are_swept_out) {
  const Row row = add(R"({"a": 0})");
  const Row other = add(R"({"a": -1})");
  Filter asked = filter("x.a % 2 == 0");
  for (int i = 1; i < 5000; ++i) {
    change(row, cat(R"({"a": )", i, "}"));
    asked.update();

    ASSERT_EQ(asked.yes().contains(row), i % 2 == 0) << i;
    ASSERT_TRUE(asked.no().contains(other)) << i;
  }
}

TEST_F(Columns, forgotten_changes_are_made_up_for) {
  const Row row = add(R"({"a": 0})");
  Filter asked = filter("x.a == 9999");
  asked.update();

  for (int i = 0; i < 10000; ++i) change(row, cat(R"({"a": )", i, "}"));
  asked.update();

  EXPECT_THAT(rows(asked.yes()), ElementsAre(row));
}

TEST_F(Columns, the_limit_on_cost_holds_for_the_whole_program) {
  add(R"({"a": true, "s": "brief"})");
  add(R"({"a": false, "s": "brief"})");
  add(cat(R"({"a": true, "s": ")", std::string(200, 's'), R"("})"));
  const std::string expression = "x.a && x.s.contains('y') || x.a";
  Filter unlimited = filter(expression);
  Filter limited = filter(expression, 9);

  unlimited.update();
  limited.update();

  EXPECT_THAT(rows(unlimited.yes()), ElementsAre(0, 2));
  EXPECT_THAT(rows(limited.yes()), ElementsAre(0));
  EXPECT_THAT(rows(limited.no()), ElementsAre(1));
  EXPECT_THAT(rows(limited.failed()), ElementsAre(2));
  EXPECT_EQ(limited.explain(2).value.text(), "operation cancelled: actual cost limit exceeded");
}

TEST_F(Columns, a_table_may_be_empty) {
  Filter asked = filter("x.a");

  asked.update();

  EXPECT_TRUE(asked.yes().empty());
  EXPECT_TRUE(asked.failed().empty());
}

}  // namespace
}  // namespace dibs::cel
