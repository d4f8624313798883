// FieldsV1 as others wrote it, and the spelling of elements.

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "api/merge/field_set.h"
#include "base/strings.h"
#include "json/builder.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

// Clients may write managedFields; no object of theirs is as deep as this.
constexpr int kMaxDepth = 1000;
// Those that are deeper are read the long way.
constexpr int kPlainDepth = 100;

Error malformed(std::string_view key, std::string_view why) {
  return Error::bad_request(cat("parsing key as path element: ", quoted(key), ": ", why));
}

constexpr std::array<bool, 256> make_plain() {
  std::array<bool, 256> plain{};
  for (std::size_t c = 0x20; c < 0x7f; ++c) {
    plain[c] = c != '"' && c != '\\' && c != '<' && c != '>' && c != '&';
  }
  return plain;
}
constexpr auto kPlain = make_plain();

bool is_plain_character(char c) { return kPlain[static_cast<unsigned char>(c)]; }

// A scalar of JSON that has one spelling only: a string without escapes, or a small integer.
struct PlainScalar {
  bool is_text = false;
  std::int64_t number = 0;
  std::string_view text;  // without the quotes
};

// Takes one from the front; false when there is none.
bool take_scalar(std::string_view& rest, PlainScalar& out) {
  if (rest.empty()) return false;
  if (rest[0] == '"') {
    std::size_t end = 1;
    while (end < rest.size() && is_plain_character(rest[end])) ++end;
    if (end == rest.size() || rest[end] != '"') return false;
    out = {true, 0, rest.substr(1, end - 1)};
    rest.remove_prefix(end + 1);
    return true;
  }
  // Up to here integers and doubles of one amount are spelled alike.
  constexpr std::ptrdiff_t kDigits = 15;
  const char* digits = rest.data() + (rest[0] == '-' ? 1 : 0);
  out.is_text = false;
  const char* end = rest.data() + rest.size();
  const auto [stop, fault] = std::from_chars(rest.data(), end, out.number);
  if (fault != std::errc() || stop - digits > kDigits) return false;
  if (*digits == '0' && (stop - digits > 1 || digits != rest.data())) return false;
  if (stop != end && (*stop == '.' || *stop == 'e' || *stop == 'E')) return false;
  rest.remove_prefix(static_cast<std::size_t>(stop - rest.data()));
  return true;
}

int compare_scalars(const PlainScalar& a, const PlainScalar& b) {
  if (a.is_text != b.is_text) return a.is_text ? 1 : -1;
  if (a.is_text) return a.text.compare(b.text);
  return a.number < b.number ? -1 : b.number < a.number ? 1 : 0;
}

// Reads {"name":scalar,...} from its front.
class PlainKeys {
 public:
  explicit PlainKeys(std::string_view text) : rest_(text) {}

  // False at the end and when what follows is not plain.
  bool next() {
    if (rest_ == "}") return false;
    if (rest_.empty() || rest_[0] != (count_ == 0 ? '{' : ',')) return fail();
    rest_.remove_prefix(1);
    if (!take_scalar(rest_, name) || !name.is_text) return fail();
    if (rest_.empty() || rest_[0] != ':') return fail();
    rest_.remove_prefix(1);
    if (!take_scalar(rest_, value) || rest_.empty()) return fail();
    ++count_;
    return true;
  }
  bool failed() const { return failed_ || count_ == 0; }

  PlainScalar name;
  PlainScalar value;

 private:
  bool fail() {
    failed_ = true;
    return false;
  }
  std::string_view rest_;
  std::size_t count_ = 0;
  bool failed_ = false;
};

bool is_plain_key(std::string_view text) {
  PlainKeys keys(text);
  std::string_view last;
  for (bool first = true; keys.next(); first = false) {
    if (!first && keys.name.text <= last) return false;
    last = keys.name.text;
  }
  return !keys.failed();
}

// Nothing when one of them is not plain up to where they differ.
std::optional<int> compare_plain_keys(std::string_view a, std::string_view b) {
  PlainKeys left(a);
  PlainKeys right(b);
  while (true) {
    const bool l = left.next();
    const bool r = right.next();
    if (left.failed() || right.failed()) return std::nullopt;
    if (!l || !r) return l ? 1 : r ? -1 : 0;
    if (const int c = left.name.text.compare(right.name.text); c != 0) return c;
    if (const int c = compare_scalars(left.value, right.value); c != 0) return c;
  }
}

// Most items are told apart by a text: then what follows the part that both share decides. Nothing
// when they part elsewhere than inside a string of JSON, or behind an escape.
std::optional<int> compare_inside_string(std::string_view a, std::string_view b) {
  const std::size_t shorter = std::min(a.size(), b.size());
  bool inside = false;
  for (std::size_t i = 0; i < shorter; ++i) {
    if (a[i] == '\\' || b[i] == '\\') return std::nullopt;
    if (a[i] == b[i]) {
      inside = inside != (a[i] == '"');
      continue;
    }
    if (!inside) return std::nullopt;
    if (a[i] == '"') return -1;
    if (b[i] == '"') return 1;
    return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[i]) ? -1 : 1;
  }
  return std::nullopt;
}

std::optional<int> compare_plain_values(std::string_view a, std::string_view b) {
  PlainScalar left;
  PlainScalar right;
  if (!take_scalar(a, left) || !take_scalar(b, right) || !a.empty() || !b.empty()) {
    return std::nullopt;
  }
  return compare_scalars(left, right);
}

int rank(char form) { return form == 'f' ? 0 : form == 'k' ? 1 : form == 'v' ? 2 : 3; }

// True when the level is a trie already, spelled as we spell it.
bool is_trie(const Value& level, bool is_root, int depth) {
  if (!level.is_object() || depth > kPlainDepth) return false;
  std::string_view last;
  bool is_first = true;
  for (const auto& [key, entry] : level.members()) {
    if (is_first && key == kSelf) {
      if (is_root || level.size() == 1 || !entry.is_object() || !entry.empty()) return false;
    } else {
      if (!is_plain_spelling(key) || !is_trie(entry, false, depth + 1)) return false;
      if (!last.empty() && compare_spelled(last, key) >= 0) return false;
      last = key;
    }
    is_first = false;
  }
  return true;
}

struct ReadEntry {
  PathElement element;
  Value entry;
};

// Sorted, spelled our way. A path is a member by "." or for want of anything below it.
Result<Value> read_level(const Value& value, bool is_root, int depth) {
  if (depth > kMaxDepth) return Error::bad_request("fieldsV1 is nested too deeply");
  if (!value.is_object() && !value.is_null()) {
    return Error::bad_request("fieldsV1 must be made of objects");
  }
  bool member = false;
  std::vector<ReadEntry> entries;
  entries.reserve(value.size());
  for (const auto& [key, child] : value.members()) {
    if (key == kSelf) {
      member = true;
      continue;
    }
    DIBS_TRY(auto element, PathElement::parse(key));
    if (!element) continue;
    DIBS_TRY(auto entry, read_level(child, false, depth + 1));
    entries.push_back({std::move(*element), std::move(entry)});
  }
  std::stable_sort(entries.begin(), entries.end(), [](const ReadEntry& a, const ReadEntry& b) {
    return compare(a.element, b.element) < 0;
  });
  Value level = json::Builder::make(json::Kind::object, entries.size() + 1);
  if (member && !is_root && !entries.empty()) level.set(kSelf, Value::object());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    // Two spellings of one element, such as k:{"a":1} and k:{"a":1.0}: the later one counts.
    if (i + 1 < entries.size() && entries[i].element == entries[i + 1].element) continue;
    level.set(entries[i].element.spelling(), std::move(entries[i].entry));
  }
  return level;
}

}  // namespace

Result<std::optional<PathElement>> PathElement::parse(std::string_view key) {
  if (key.size() < 2) return malformed(key, "key must be 2 characters long");
  if (key[1] != ':') return malformed(key, "missing colon");
  const std::string_view rest = key.substr(2);
  switch (key[0]) {
    case 'f':
      return std::optional(PathElement::field(rest));
    case 'v': {
      DIBS_TRY(auto value, json::parse(rest));
      return std::optional(PathElement::value(std::move(value)));
    }
    case 'k': {
      DIBS_TRY(auto value, json::parse(rest));
      if (!value.is_object()) return malformed(key, "not an object");
      std::vector<std::pair<std::string_view, const Value*>> members;
      for (const auto& member : value.members()) {
        members.emplace_back(member.key(), &member.value());
      }
      const auto less = [](const auto& a, const auto& b) { return a.first < b.first; };
      if (std::is_sorted(members.begin(), members.end(), less)) {
        return std::optional(PathElement::key(std::move(value)));
      }
      std::sort(members.begin(), members.end(), less);
      Value keys = Value::object();
      for (const auto& [name, item] : members) keys.set(name, *item);
      return std::optional(PathElement::key(std::move(keys)));
    }
    case 'i': {
      std::int64_t index = 0;
      const auto [end, fault] = std::from_chars(rest.data(), rest.data() + rest.size(), index);
      if (fault != std::errc() || end != rest.data() + rest.size()) {
        return malformed(key, "not a number");
      }
      return std::optional(PathElement::index(index));
    }
    default:
      return std::optional<PathElement>();
  }
}

Value spelled_field(std::string_view name) {
  char text[128];
  if (name.size() + 2 > sizeof text) return Value(cat("f:", name));
  text[0] = 'f';
  text[1] = ':';
  std::copy(name.begin(), name.end(), text + 2);
  return Value(std::string_view(text, name.size() + 2));
}

bool is_plain_spelling(std::string_view text) {
  if (text.size() < 2 || text[1] != ':') return false;
  switch (text[0]) {
    case 'f':
      return true;
    case 'k':
      return is_plain_key(text.substr(2));
    case 'v': {
      std::string_view rest = text.substr(2);
      PlainScalar scalar;
      return take_scalar(rest, scalar) && rest.empty();
    }
    default:
      return false;
  }
}

int compare_spelled_items(std::string_view a, std::string_view b) {
  if (a[0] != b[0]) return rank(a[0]) - rank(b[0]);
  if (a[0] == 'f') return a.compare(b);
  if (a == b) return 0;
  if (const auto c = compare_inside_string(a, b)) return *c;
  const std::string_view left = a.substr(2);
  const std::string_view right = b.substr(2);
  if (a[0] == 'k') {
    if (const auto c = compare_plain_keys(left, right)) return *c;
  } else if (a[0] == 'v') {
    if (const auto c = compare_plain_values(left, right)) return *c;
  }
  const auto one = PathElement::parse(a);
  const auto two = PathElement::parse(b);
  if (!one.ok() || !*one || !two.ok() || !*two) return a.compare(b);
  return compare(**one, **two);
}

void append_spelled(std::string& out, std::string_view spelling) {
  const auto element = PathElement::parse(spelling);
  if (element.ok() && *element) (*element)->append_to(out);
}

Result<FieldSet> FieldSet::from_json(const Value& fields) {
  if (is_trie(fields, true, 0)) return FieldSet(fields);
  DIBS_TRY(auto root, read_level(fields, true, 0));
  return FieldSet(std::move(root));
}

}  // namespace dibs::api
