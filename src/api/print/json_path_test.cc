#include "api/print/json_path.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

constexpr std::string_view kDocument = R"({
  "metadata": {"name": "x", "labels": {"a.b/c": "dotted"}},
  "spec": {"size": 3, "list": [{"n": "x", "v": 1}, {"n": "y", "v": 2}, {"n": "z"}], "none": null},
  "status": {"conditions": [{"type": "Ready", "status": "False"},
                            {"type": "Live", "status": "True"}]}
})";

/// What a path finds, each as JSON with blanks between, or "error".
std::string found(std::string_view text) {
  static const json::Value document = *json::parse(kDocument);
  auto path = JsonPath::parse(text);
  if (!path.ok()) return "broken: " + path.error().message();
  auto values = path->find(document);
  if (!values.ok()) return "error: " + values.error().message();
  std::string out;
  for (const json::Value& value : *values) append(out, out.empty() ? "" : " ", json::write(value));
  return out;
}

TEST(JsonPath, finds_values) {
  struct Case {
    const char* path;
    const char* values;
  };
  for (const Case& c : std::initializer_list<Case>{
           {".metadata.name", R"("x")"},
           {"$.metadata.name", R"("x")"},
           {".spec.missing.deeper", ""},
           {".spec.none", "null"},
           {".spec['size']", "3"},
           {R"(.metadata.labels['a.b/c'])", R"("dotted")"},
           {R"(.metadata.labels.a\.b/c)", R"("dotted")"},
           {".spec.list[0].n", R"("x")"},
           {".spec.list[-1].n", R"("z")"},
           {".spec.list[*].n", R"("x" "y" "z")"},
           {".spec.list[:].v", "1 2"},
           {".spec.list[0:2].n", R"("x" "y")"},
           {".spec.list[1:].n", R"("y" "z")"},
           {".spec.list[:-1].n", R"("x" "y")"},
           {".spec.list[0:3:2].n", R"("x" "z")"},
           {".spec.list[0,2].n", R"("x" "z")"},
           {".metadata['name','labels']", R"("x" {"a.b/c":"dotted"})"},
           {R"(.status.conditions[?(@.type=="Ready")].status)", R"("False")"},
           {R"(.status.conditions[?(@.type == 'Live')].status)", R"("True")"},
           {R"(.status.conditions[?(@.type!="Live")].type)", R"("Ready")"},
           {".spec.list[?(@.v)].n", R"("x" "y")"},
           {".spec.list[?(@.v>1)].n", R"("y")"},
           {".spec.list[?(@.v<=1)].n", R"("x")"},
           {"..n", R"("x" "y" "z")"},
           {".spec.list[0].*", R"("x" 1)"},
           {".spec.size.deeper", ""}}) {
    EXPECT_EQ(found(c.path), c.values) << c.path;
  }
}

TEST(JsonPath, errs_on_what_is_no_list_or_out_of_range) {
  EXPECT_EQ(found(".spec.list[7]"), "error: array index out of bounds: index 7, length 3");
  EXPECT_EQ(found(".spec.size[0]"), "error: not an array or slice");
  EXPECT_EQ(found(".spec[?(@.a)]"), "error: not an array or slice and cannot be filtered");
  EXPECT_EQ(found(R"(.spec.list[?(@.v=="1")])"), "error: incompatible types for comparison");
}

TEST(JsonPath, refuses_broken_paths) {
  EXPECT_EQ(found(".spec.list[0"), "broken: unterminated array");
  EXPECT_EQ(found(".spec.list[x]"), "broken: invalid array index x");
  EXPECT_EQ(found(".spec.list[?(@.v===1)]"), "broken: unrecognized filter operator ===");
  EXPECT_EQ(found(".spec.list[?(@.v"), "broken: unterminated array");
}

TEST(JsonPath, writes_values_as_text) {
  EXPECT_EQ(json_path_text("a b"), "a b");
  EXPECT_EQ(json_path_text(3), "3");
  EXPECT_EQ(json_path_text(true), "true");
  EXPECT_EQ(json_path_text(nullptr), "<no value>");
  EXPECT_EQ(json_path_text(*json::parse(R"({"b":[{"z":1,"y":2}],"a":"<"})")),
            R"({"a":"\u003c","b":[{"y":2,"z":1}]})");
}

}  // namespace
}  // namespace dibs::api
