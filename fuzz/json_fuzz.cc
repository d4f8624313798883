// Any bytes as JSON: the fast and the exact parser agree, and what is written reads back the same.
#include "fuzz/targets.h"
#include "json/go_parser.h"
#include "json/parse.h"

namespace dibs::fuzz {

int fuzz_json(const std::uint8_t* data, std::size_t size) {
  using namespace json;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> duplicates;
  const auto fast = parse(text, {.duplicates = &duplicates});
  const auto exact = parse_as_go(text, {});
  require(fast.ok() == exact.ok(), "both parsers accept or refuse a text");
  if (!fast.ok()) {
    require(fast.error().message() == exact.error().message(), "both parsers say the same");
    return 0;
  }
  const Value& value = *fast;
  const std::string written = write(value);
  require(written == write(*exact), "both parsers read the same");

  for (const std::string& form : {written, write(value, true), write_pretty(value)}) {
    const auto back = parse(form);
    require(back.ok() && *back == value, "what is written reads back");
  }

  const auto shallow = parse(text, {.max_depth = 3});
  require(!shallow.ok() || *shallow == value, "a bound on the depth changes nothing else");

  Value copy = value;
  copy.set("k", 1);
  copy.mut("list").push(value);
  copy.erase("k");
  require(write(value) == written, "a change does not show in the original");
  return 0;
}

}  // namespace dibs::fuzz

DIBS_FUZZ_ENTRY(dibs::fuzz::fuzz_json)
