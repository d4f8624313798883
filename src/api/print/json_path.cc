#include "api/print/json_path.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/strings.h"
#include "json/parse.h"

namespace dibs::api {

namespace internal {

using Path = std::vector<std::shared_ptr<const PathNode>>;

/// One side of a comparison: a path from the element, or a constant.
struct Operand {
  std::optional<json::Value> constant;
  Path path;
};

struct PathNode {
  enum class Type : std::uint8_t { field, wildcard, recursive, slice, filter, alternatives };
  Type type = Type::field;
  std::string name;
  std::optional<std::int64_t> start;
  std::optional<std::int64_t> end;
  std::optional<std::int64_t> step;
  bool single = false;     // [n] rather than [n:]
  std::string comparison;  // "" asks whether the left side exists
  Operand left;
  Operand right;
  std::vector<Path> choices;
};

}  // namespace internal

namespace {

using internal::Operand;
using internal::Path;
using internal::PathNode;
using Type = internal::PathNode::Type;
using Values = std::vector<json::Value>;

Result<Path> parse_path(std::string_view text, int depth);

std::shared_ptr<PathNode> make_node(Type type) {
  auto node = std::make_shared<PathNode>();
  node->type = type;
  return node;
}

bool is_quoted(std::string_view text) {
  return text.size() >= 2 && (text[0] == '\'' || text[0] == '"') && text.back() == text[0];
}

bool parse_integer(std::string_view text, std::int64_t& number) {
  auto end = text.data() + text.size();
  auto parsed = std::from_chars(text.data(), end, number);
  return !text.empty() && parsed.ec == std::errc() && parsed.ptr == end;
}

Result<Operand> parse_operand(std::string_view text, int depth) {
  text = trim(text);
  Operand operand;
  if (is_quoted(text)) {
    operand.constant = json::Value(text.substr(1, text.size() - 2));
    return operand;
  }
  if (text == "true" || text == "false") {
    operand.constant = json::Value(text == "true");
    return operand;
  }
  if (!text.empty() && (text[0] == '-' || (text[0] >= '0' && text[0] <= '9'))) {
    auto number = json::parse(text);
    if (!number.ok() || !number->is_number()) {
      return Error::bad_request(cat("cannot parse number ", text));
    }
    operand.constant = *number;
    return operand;
  }
  DIBS_TRY(operand.path, parse_path(text, depth + 1));
  return operand;
}

/// The inside of [?( … )].
Result<std::shared_ptr<PathNode>> parse_filter(std::string_view text, int depth) {
  auto node = make_node(Type::filter);
  char quote = 0;
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    char c = text[at];
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '=' || c == '!' || c == '<' || c == '>') {
      break;
    }
  }
  DIBS_TRY(node->left, parse_operand(text.substr(0, at), depth));
  if (at == text.size()) return node;
  std::size_t end = at;
  while (end < text.size() && std::string_view("=!<>").find(text[end]) != std::string_view::npos) {
    ++end;
  }
  node->comparison = text.substr(at, end - at);
  for (std::string_view known : {"==", "!=", "<", "<=", ">", ">="}) {
    if (node->comparison == known) {
      DIBS_TRY(node->right, parse_operand(text.substr(end), depth));
      return node;
    }
  }
  return Error::bad_request(cat("unrecognized filter operator ", node->comparison));
}

/// What stands between [ and ]: *, 'key', n, a:b:c, or several of these with commas.
Result<std::shared_ptr<PathNode>> parse_bracket(std::string_view text, int depth) {
  text = trim(text);
  if (is_quoted(text) && text.substr(1, text.size() - 2).find(text[0]) == std::string_view::npos) {
    auto node = make_node(Type::field);
    node->name = text.substr(1, text.size() - 2);
    return node;
  }
  if (text.find(',') != std::string_view::npos) {
    auto node = make_node(Type::alternatives);
    for (std::string_view piece : split(text, ',')) {
      DIBS_TRY(auto choice, parse_bracket(piece, depth + 1));
      node->choices.push_back({choice});
    }
    return node;
  }
  auto node = make_node(Type::slice);
  if (text == "*") return node;
  std::vector<std::string_view> pieces = split(text, ':');
  std::optional<std::int64_t>* parts[] = {&node->start, &node->end, &node->step};
  if (pieces.size() > 3 || text.empty()) {
    return Error::bad_request(cat("invalid array index ", text));
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].empty()) continue;
    std::int64_t number = 0;
    if (!parse_integer(pieces[i], number)) {
      return Error::bad_request(cat("invalid array index ", text));
    }
    *parts[i] = number;
  }
  node->single = pieces.size() == 1;
  return node;
}

/// The position of the bracket that closes the one at text[0]; npos when there is none.
std::size_t closing(std::string_view text) {
  char quote = 0;
  int open = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '[') {
      ++open;
    } else if (c == ']' && --open == 0) {
      return i;
    }
  }
  return std::string_view::npos;
}

std::string read_field(std::string_view text, std::size_t& at) {
  std::string name;
  for (; at < text.size(); ++at) {
    char c = text[at];
    if (c == '\\' && at + 1 < text.size()) {
      name += text[++at];
      continue;
    }
    if (c == '.' || c == '[' || c == ']' || c == ' ') break;
    name += c;
  }
  return name;
}

Result<Path> parse_path(std::string_view text, int depth) {
  if (depth > 20) return Error::bad_request("expression is nested too deeply");
  text = trim(text);
  Path path;
  std::size_t at = 0;
  if (!text.empty() && (text[0] == '$' || text[0] == '@')) at = 1;
  while (at < text.size()) {
    if (text[at] == '[') {
      std::size_t end = closing(text.substr(at));
      if (end == std::string_view::npos) return Error::bad_request("unterminated array");
      std::string_view inside = text.substr(at + 1, end - 1);
      if (inside.starts_with("?(")) {
        if (!inside.ends_with(')')) return Error::bad_request("unterminated filter");
        DIBS_TRY(auto node, parse_filter(inside.substr(2, inside.size() - 3), depth));
        path.push_back(node);
      } else {
        DIBS_TRY(auto node, parse_bracket(inside, depth));
        path.push_back(node);
      }
      at += end + 1;
      continue;
    }
    if (text[at] == '.') {
      ++at;
      if (at < text.size() && text[at] == '.') {
        path.push_back(make_node(Type::recursive));
        ++at;
      }
      if (at < text.size() && text[at] == '[') continue;
    }
    std::size_t before = at;
    std::string name = read_field(text, at);
    if (name.empty() && at < text.size()) {
      return Error::bad_request(cat("unrecognized character in action: ", text.substr(before, 1)));
    }
    if (name.empty()) break;
    auto node = make_node(name == "*" ? Type::wildcard : Type::field);
    node->name = name;
    path.push_back(node);
  }
  return path;
}

Result<Values> evaluate(const Path& path, const json::Value& root);

void collect(const json::Value& value, Values& out) {
  out.push_back(value);
  for (const json::Value& item : value.items()) collect(item, out);
  for (const auto& [key, member] : value.members()) collect(member, out);
}

Result<> take_slice(const PathNode& node, const json::Value& value, Values& out) {
  if (value.is_null()) return success();
  if (!value.is_array()) return Error::bad_request("not an array or slice");
  auto size = static_cast<std::int64_t>(value.size());
  std::int64_t start = node.start.value_or(0);
  std::int64_t end = node.end.value_or(size);
  if (start < 0) start += size;
  if (node.single && node.start) {
    end = start + 1;
  } else if (end < 0) {
    end += size;
  }
  if (start != end) {
    if (start < 0 || start >= size) {
      return Error::bad_request(cat("array index out of bounds: index ", start, ", length ", size));
    }
    if (end < 0 || end > size) {
      return Error::bad_request(
          cat("array index out of bounds: index ", end - 1, ", length ", size));
    }
  }
  std::int64_t step = node.step.value_or(1);
  if (step <= 0) return Error::bad_request("step must be > 0");
  for (std::int64_t i = start; i < end; i += step) {
    out.push_back(value[static_cast<std::size_t>(i)]);
  }
  return success();
}

Result<int> compare(const json::Value& a, const json::Value& b) {
  if (a.is_number() && b.is_number()) {
    return a.as_double() < b.as_double() ? -1 : a.as_double() > b.as_double() ? 1 : 0;
  }
  if (a.is_string() && b.is_string()) {
    int order = a.as_string().compare(b.as_string());
    return order < 0 ? -1 : order > 0 ? 1 : 0;
  }
  if (a.is_boolean() && b.is_boolean()) return a.as_bool() == b.as_bool() ? 0 : 1;
  return Error::bad_request("incompatible types for comparison");
}

Result<Values> operand_values(const Operand& operand, const json::Value& element) {
  if (operand.constant) return Values{*operand.constant};
  return evaluate(operand.path, element);
}

Result<bool> passes(const PathNode& node, const json::Value& element) {
  DIBS_TRY(Values left, operand_values(node.left, element));
  if (node.comparison.empty()) return !left.empty();
  if (left.empty()) return false;
  if (left.size() > 1) return Error::bad_request("can only compare one element at a time");
  DIBS_TRY(Values right, operand_values(node.right, element));
  if (right.empty()) return false;
  if (right.size() > 1) return Error::bad_request("can only compare one element at a time");
  DIBS_TRY(int order, compare(left[0], right[0]));
  if (node.comparison == "==") return order == 0;
  if (node.comparison == "!=") return order != 0;
  if (node.comparison == "<") return order < 0;
  if (node.comparison == "<=") return order <= 0;
  if (node.comparison == ">") return order > 0;
  return order >= 0;
}

Result<> apply(const PathNode& node, const json::Value& value, Values& out) {
  switch (node.type) {
    case Type::field:
      if (const json::Value* member = value.find(node.name)) out.push_back(*member);
      return success();
    case Type::wildcard:
      for (const json::Value& item : value.items()) out.push_back(item);
      for (const auto& [key, member] : value.members()) out.push_back(member);
      return success();
    case Type::recursive:
      collect(value, out);
      return success();
    case Type::slice:
      return take_slice(node, value, out);
    case Type::filter:
      if (value.is_null()) return success();
      if (!value.is_array()) {
        return Error::bad_request("not an array or slice and cannot be filtered");
      }
      for (const json::Value& item : value.items()) {
        DIBS_TRY(bool taken, passes(node, item));
        if (taken) out.push_back(item);
      }
      return success();
    case Type::alternatives:
      for (const Path& choice : node.choices) {
        DIBS_TRY(Values found, evaluate(choice, value));
        out.insert(out.end(), found.begin(), found.end());
      }
      return success();
  }
  return success();
}

Result<Values> evaluate(const Path& path, const json::Value& root) {
  Values current{root};
  for (const auto& node : path) {
    Values next;
    for (const json::Value& value : current) DIBS_CHECK(apply(*node, value, next));
    current = std::move(next);
  }
  return current;
}

json::Value sorted(const json::Value& value) {
  if (value.is_array()) {
    json::Value out = json::Value::array();
    for (const json::Value& item : value.items()) out.push(sorted(item));
    return out;
  }
  if (!value.is_object()) return value;
  std::vector<std::pair<std::string_view, const json::Value*>> members;
  for (const auto& [key, member] : value.members()) members.emplace_back(key, &member);
  std::sort(members.begin(), members.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  json::Value out = json::Value::object();
  for (const auto& [key, member] : members) out.set(key, sorted(*member));
  return out;
}

}  // namespace

Result<JsonPath> JsonPath::parse(std::string_view text) {
  JsonPath path;
  DIBS_TRY(path.nodes_, parse_path(text, 0));
  return path;
}

Result<std::vector<json::Value>> JsonPath::find(const json::Value& root) const {
  return evaluate(nodes_, root);
}

std::string json_path_text(const json::Value& value) {
  if (value.is_null()) return "<no value>";
  if (value.is_string()) return value.str();
  return json::write(sorted(value), true);
}

}  // namespace dibs::api
