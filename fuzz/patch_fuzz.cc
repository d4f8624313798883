// A document and a patch, each on a line of its own: patches leave the document as it was and grow
// it within bounds.
#include "fuzz/targets.h"
#include "json/parse.h"
#include "json/patch.h"

namespace dibs::fuzz {
namespace {

bool holds_null(const json::Value& value) {
  if (value.is_null()) return true;
  for (const json::Value& item : value.items()) {
    if (holds_null(item)) return true;
  }
  for (const auto& [key, member] : value.members()) {
    if (holds_null(member)) return true;
  }
  return false;
}

}  // namespace

int fuzz_patch(const std::uint8_t* data, std::size_t size) {
  using namespace json;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) return 0;
  // The depth spares the recursion above.
  const auto document = parse(text.substr(0, end), {.max_depth = 500});
  const auto patch = parse(text.substr(end + 1), {.max_depth = 500});
  if (!document.ok() || !patch.ok()) return 0;
  const std::string before = write(*document);

  const auto patched = apply_json_patch(*document, *patch);
  if (patched.ok()) {
    // Copies are bounded by their size without escapes and digits, each of which may take six
    // bytes.
    const std::size_t most = before.size() + write(*patch).size() + 6 * 3 * 1024 * 1024;
    require(write(*patched).size() <= most, "a patch cannot grow a document without bound");
    require(!deeper_than(*patched, 10000), "a patch cannot nest a document without bound");
  }

  const Value merged = apply_merge_patch(*document, *patch);
  require(write(*document) == before, "a patch leaves the document as it was");
  if (!holds_null(*document) && !holds_null(*patch)) {
    require(apply_merge_patch(merged, *patch) == merged,
            "a merge patch applied twice changes nothing");
  }
  return 0;
}

}  // namespace dibs::fuzz

DIBS_FUZZ_ENTRY(dibs::fuzz::fuzz_patch)
