#include "bench/template.h"

#include <gtest/gtest.h>

#include "json/parse.h"

namespace dibs::bench {
namespace {

struct Case {
  const char* text;
  const char* data;
  const char* wanted;  // begins with "error: " for a refusal
};

TEST(TextTemplate, FillsInWhatWorkloadFilesUse) {
  const Case cases[] = {
      {"a-{{.Index}}", R"({"Index":7})", "a-7"},
      {"{{Mod .Index 5}} {{DivideInt .Index 5}}", R"({"Index":7})", "2 1"},
      {"{{$n := (or .n 2) | Int}}{{range $n}}<{{.}}>{{end}}", "{}", "<0><1>"},
      {"{{$n := (or .n 2) | Int}}{{range $n}}<{{.}}>{{end}}", R"({"n":"3"})", "<0><1><2>"},
      {"{{range $i := (2 | Int)}}{{if ge $i 1}}{{$i}}{{else}}-{{end}}{{end}}", "{}", "-1"},
      {"{{if eq .class \"gpu\"}}yes{{end}}", R"({"class":"gpu"})", "yes"},
      {"{{if eq .class \"gpu\"}}yes{{end}}", R"({"class":"cpu"})", ""},
      {"x: {{(or .list nil) | JSON}}", "{}", "x: null"},
      {"x: {{.list | JSON}}", R"({"list":[{"a":"b"}]})", R"(x: [{"a":"b"}])"},
      {"{{.none}}", "{}", "<no value>"},
      {"a {{- 1 -}} b", "{}", "a1b"},
      {"{{/* nothing */}}x", "{}", "x"},
      {"{{range .l}}{{.}},{{end}}", R"({"l":["p","q"]})", "p,q,"},
      {"{{printf \"%d\" 1}}", "{}", "error: function \"printf\" not defined"},
      {"{{with .x}}{{end}}", "{}", "error: {{with}} is not supported"},
      {"{{$x}}", "{}", "error: undefined variable \"$x\""},
      {"{{if .x}}", "{}", "error: unexpected EOF"},
      {"{{end}}", "{}", "error: unexpected {{end}}"},
      {"{{Mod 1 0}}", "{}", "error: Mod: division by zero"},
  };
  for (const Case& one : cases) {
    auto read = TextTemplate::parse(one.text);
    std::string got;
    if (read.ok()) {
      auto filled = read->fill(json::parse(one.data).value());
      got = filled.ok() ? *filled : "error: " + filled.error().message();
    } else {
      got = "error: " + read.error().message();
    }
    EXPECT_EQ(got, one.wanted) << one.text;
  }
}

}  // namespace
}  // namespace dibs::bench
