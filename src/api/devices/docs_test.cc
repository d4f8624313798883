// Runs the examples of docs/cel.md.

#include <gtest/gtest.h>

#include "api/devices/device.h"
#include "api/devices/slices.h"
#include "api/devices/test_support.h"
#include "base/strings.h"
#include "json/yaml.h"

namespace dibs::api {
namespace {

struct Example {
  std::size_t line = 0;
  bool lists = false;
  std::string expression;
  std::string wanted;
};

struct Page {
  std::string slice;
  std::vector<Example> examples;
};

/// Expressions stand in blocks marked "cel" or "cel lists"; a comment "// => …" below each says
/// what it gives. The slice is the block of YAML that says so.
Page read_page(std::string_view text) {
  constexpr std::string_view kAnswer = "// => ";
  Page page;
  std::string block;  // the word behind the fence
  std::string pending;
  std::size_t number = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    if (line.starts_with("```")) {
      if (block == "yaml" && pending.find("kind: ResourceSlice") != std::string::npos)
        page.slice = pending;
      if (block.starts_with("cel")) {
        EXPECT_EQ(pending, "") << "line " << number << ": an example without an answer";
      }
      pending.clear();
      block = block.empty() ? std::string(line.substr(3)) : "";
    } else if (block.starts_with("cel") && line.starts_with(kAnswer)) {
      page.examples.push_back(
          {number, block == "cel lists", pending, std::string(line.substr(kAnswer.size()))});
      pending.clear();
    } else if (!block.empty()) {
      append(pending, pending.empty() ? "" : "\n", line);
    }
  }
  return page;
}

std::string answer(const Example& example, const SliceDevice& device) {
  SelectorEnvironment environment;
  environment.release = 36;
  environment.list_attributes = example.lists;
  const Selector selector = compile_selector(example.expression, environment);
  if (!selector.issues.empty()) return cat("compilation failed: ", selector.issues[0].message);
  if (selector.fault != SelectorFault::none) return selector.message;
  json::Value content = device.device;
  // Without lists the device would fail every selector.
  if (!example.lists) content.mut("attributes").erase("modes");
  const DeviceMatch made =
      match(selector, DeviceInput::read(device.driver, content, example.lists));
  return made.error.empty() ? cat(made.matches) : cat("error: ", made.error);
}

TEST(Docs, examples_give_what_the_page_says) {
  const std::filesystem::path path = project_file("docs/cel.md");
  if (path.empty()) GTEST_SKIP() << "docs/cel.md is not here";
  const Page page = read_page(cel::read_file(path));
  const auto parsed = json::parse_yaml(page.slice);
  ASSERT_TRUE(parsed.ok());
  const auto devices = devices_of(*parsed);
  ASSERT_TRUE(devices.ok()) << devices.error().message();
  ASSERT_EQ(devices->size(), 1u);
  ASSERT_GT(page.examples.size(), 40u);
  for (const Example& example : page.examples)
    EXPECT_EQ(answer(example, (*devices)[0]), example.wanted)
        << "line " << example.line << ": " << example.expression;
}

}  // namespace
}  // namespace dibs::api
