#include <charconv>
#include <optional>

#include "base/strings.h"
#include "json/go_print.h"
#include "json/patch.h"

namespace dibs::json {
namespace {

constexpr std::size_t kMostOperations = 10000;
constexpr std::size_t kMostCopied = 3 * 1024 * 1024;
constexpr std::size_t kMostDepth = 10000;
constexpr std::string_view kMissing = "missing value";

Error cannot_apply() {
  return Error::invalid("the server rejected our request due to an error in our request");
}

std::string decode_token(std::string_view token) {
  std::string out;
  for (std::size_t i = 0; i < token.size(); ++i) {
    const bool pair = token[i] == '~' && i + 1 < token.size();
    if (pair && (token[i + 1] == '0' || token[i + 1] == '1')) {
      out.push_back(token[++i] == '0' ? '~' : '/');
    } else {
      out.push_back(token[i]);
    }
  }
  return out;
}

// As Go's Atoi: a sign and leading zeros are fine.
std::optional<long> to_index(std::string_view text) {
  if (!text.empty() && text.front() == '+') {
    text.remove_prefix(1);
    if (!text.empty() && text.front() == '-') return std::nullopt;
  }
  long index = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, index);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return index;
}

// The place a token names in a list of `size` entries; negative ones count from the end.
std::optional<std::size_t> place_in(std::string_view token, std::size_t size) {
  const auto index = to_index(token);
  if (!index) return std::nullopt;
  const long count = static_cast<long>(size);
  if (*index >= count || *index < -count) return std::nullopt;
  return static_cast<std::size_t>(*index < 0 ? *index + count : *index);
}

// Where an operation acts: an entry, there or not, of a container that is there.
struct Target {
  Value* container;
  std::string key;

  // Null when it is not there; nullopt when it cannot be: an index out of range.
  std::optional<Value> get() const {
    if (container->is_object()) return (*container)[std::string_view(key)];
    const auto place = place_in(key, container->size());
    if (!place) return std::nullopt;
    return (*container)[*place];
  }

  bool add(Value value) {
    if (container->is_object()) {
      container->set(key, std::move(value));
      return true;
    }
    if (key == "-") {
      container->push(std::move(value));
      return true;
    }
    const auto place = place_in(key, container->size() + 1);
    if (place) container->insert(*place, std::move(value));
    return place.has_value();
  }

  bool replace(Value value) {
    if (container->is_object()) {
      container->set(key, std::move(value));
      return true;
    }
    const auto place = place_in(key, container->size());
    if (place) container->mut(*place) = std::move(value);
    return place.has_value();
  }

  bool remove() {
    if (container->is_object()) return container->erase(key);
    const auto place = place_in(key, container->size());
    if (place) container->erase_at(*place);
    return place.has_value();
  }
};

// The container that a path leads to, ready for change, and its last token.
std::optional<Target> find_target(Value& document, std::string_view path) {
  std::vector<std::string_view> tokens = split(path, '/');
  if (tokens.size() < 2 || !(document.is_object() || document.is_array())) return std::nullopt;
  std::vector<std::string> way;
  const Value* at = &document;
  for (std::size_t i = 1; i + 1 < tokens.size(); ++i) {
    way.push_back(decode_token(tokens[i]));
    if (at->is_object()) {
      at = &(*at)[std::string_view(way.back())];
    } else {
      const auto place = place_in(way.back(), at->size());
      if (!place) return std::nullopt;
      at = &(*at)[*place];
    }
    if (!at->is_object() && !at->is_array()) return std::nullopt;
  }
  // Only now is it sure that nothing on the way has to be made.
  Value* container = &document;
  for (const std::string& token : way) {
    container = container->is_object() ? &container->mut(token)
                                       : &container->mut(*place_in(token, container->size()));
  }
  return Target{container, decode_token(tokens.back())};
}

// About the bytes the value takes as JSON; stops counting above the limit.
std::size_t size_up_to(const Value& value, std::size_t limit) {
  std::size_t size = 0;
  std::vector<const Value*> left{&value};
  while (!left.empty() && size <= limit) {
    const Value* next = left.back();
    left.pop_back();
    size += next->is_string() ? next->as_string().size() + 2 : 4;
    for (const Value& item : next->items()) left.push_back(&item);
    for (const auto& [key, member] : next->members()) {
      size += key.size() + 4;
      left.push_back(&member);
    }
    if (left.size() > limit) return limit + 1;
  }
  return size;
}

class Patcher {
 public:
  explicit Patcher(Value document) : document_(std::move(document)) {}

  /// Of the operation that could not be applied.
  const PatchFailure& failure() const { return failure_; }

  bool apply(const Value& operation) {
    const std::string_view op = operation["op"].as_string();
    const Value& path = operation["path"];
    if (op == "move" || op == "copy") return transfer(operation, op == "move");
    if (!path.is_string()) return fail(cat(op, " operation failed to decode path: ", kMissing));
    const bool whole = path.as_string().empty();
    if (op == "replace" && whole) {
      const Value& value = operation["value"];
      if (!value.is_object() && !value.is_array())
        return fail("replace operation value must be object or array");
      document_ = value;
      return true;
    }
    if (op == "test" && whole)
      return document_ == operation["value"] || fail_test(path.as_string());
    if (op != "add" && op != "remove" && op != "replace" && op != "test")
      return fail(cat("Unexpected kind: ", op));
    auto target = find_target(document_, path.as_string());
    if (!target) return fail_place(op, path.as_string());
    if (op == "add") return target->add(operation["value"]) || fail_at("add", path, *target);
    if (op == "remove") return target->remove() || fail_at("remove", path, *target);
    if (op == "replace") {
      return target->replace(operation["value"]) ||
             fail(cat("replace operation does not apply: doc is missing key: ", path.as_string(),
                      ": ", kMissing));
    }
    const auto found = target->get();
    if (!found) return fail_at("test", path, *target);
    return *found == operation["value"] || fail_test(path.as_string());
  }

  Value take() { return std::move(document_); }

 private:
  bool transfer(const Value& operation, bool move) {
    const std::string_view op = move ? "move" : "copy";
    for (std::string_view key : {"from", "path"}) {
      if (!operation[key].is_string())
        return fail(cat(op, " operation failed to decode ", key, ": ", kMissing));
    }
    const std::string_view from = operation["from"].as_string();
    auto source = find_target(document_, from);
    if (!source) {
      return fail(
          cat(op, " operation does not apply: doc is missing from path: ", from, ": ", kMissing));
    }
    auto value = source->get();
    if (!value || (move && !source->remove())) return fail_at(op, operation["from"], *source);
    if (!move && !value->is_null()) {
      copied_ += size_up_to(*value, kMostCopied - copied_);
      if (copied_ > kMostCopied) {
        return fail(cat("Unable to complete the copy, the accumulated size increase of copy is ",
                        copied_, ", exceeding the limit ", kMostCopied));
      }
    }
    const std::string_view path = operation["path"].as_string();
    auto target = find_target(document_, path);
    if (!target) {
      return fail(cat(op, " operation does not apply: doc is missing destination path: ", path,
                      ": ", kMissing));
    }
    return target->add(std::move(*value)) || fail_at(op, operation["path"], *target);
  }

  bool fail(std::string why) {
    failure_.why = std::move(why);
    return false;
  }
  bool fail_test(std::string_view path) {
    failure_.is_test = true;
    return fail(cat("testing value ", path, " failed: test failed"));
  }
  bool fail_place(std::string_view op, std::string_view path) {
    const bool quotes = op == "add" || op == "remove";
    return fail(cat(op, " operation does not apply: ", op == "test" ? "" : "doc ",
                    "is missing path: ", quotes ? cat("\"", path, "\"") : std::string(path), ": ",
                    kMissing));
  }
  bool fail_at(std::string_view op, const Value& path, const Target& target) {
    std::string why;
    if (target.container->is_object())
      why = cat("Unable to remove nonexistent key: ", target.key, ": ", kMissing);
    else if (const auto index = to_index(target.key))
      why = cat("Unable to access invalid index: ", *index, ": invalid index referenced");
    else
      why = cat("value was not a proper array index: '", target.key, "': strconv.Atoi: parsing ",
                quoted(target.key), ": invalid syntax");
    return fail(cat("error in ", op, " for path: '", path.as_string(), "': ", why));
  }

  Value document_;
  PatchFailure failure_;
  std::size_t copied_ = 0;
};

// What the API's decoder says about operations of the wrong form.
Result<> check_form(const Value& patch) {
  auto wrong = [](const Value& value, std::string_view type) {
    return Error::bad_request(
        cat("error decoding patch: json: cannot unmarshal ", go_kind(value), " into Go ", type));
  };
  if (!patch.is_array()) return wrong(patch, "value of type []handlers.jsonPatchOp");
  for (const Value& operation : patch.items()) {
    if (operation.is_null()) continue;
    if (!operation.is_object()) return wrong(operation, "value of type handlers.jsonPatchOp");
    for (const auto& [key, value] : operation.members()) {
      if (key != "op" && key != "path" && key != "from") continue;
      if (value.is_string() || value.is_null()) continue;
      return wrong(value, cat("struct field jsonPatchOp.", key, " of type string"));
    }
  }
  return success();
}

}  // namespace

Result<Value> apply_json_patch(const Value& document, const Value& patch, PatchFailure* failure) {
  if (patch.is_null()) return document;
  DIBS_CHECK(check_form(patch));
  if (patch.size() > kMostOperations) {
    return Error::too_large(
        cat("Request entity too large: The allowed maximum operations in a JSON patch is ",
            kMostOperations, ", got ", patch.size()));
  }
  Patcher patcher(document);
  for (const Value& operation : patch.items()) {
    if (patcher.apply(operation)) continue;
    if (failure != nullptr) *failure = patcher.failure();
    return cannot_apply();
  }
  Value result = patcher.take();
  if (deeper_than(result, kMostDepth)) return cannot_apply();
  return result;
}

bool deeper_than(const Value& value, std::size_t most) {
  std::vector<std::pair<const Value*, std::size_t>> left{{&value, 1}};
  while (!left.empty()) {
    const auto [next, depth] = left.back();
    left.pop_back();
    if (!next->is_array() && !next->is_object()) continue;
    if (depth > most) return true;
    for (const Value& item : next->items()) {
      if (item.is_array() || item.is_object()) left.emplace_back(&item, depth + 1);
    }
    for (const auto& [key, member] : next->members()) {
      if (member.is_array() || member.is_object()) left.emplace_back(&member, depth + 1);
    }
  }
  return false;
}

}  // namespace dibs::json
