#include "bench/template.h"

#include <cmath>
#include <cstdlib>
#include <map>
#include <vector>

#include "base/strings.h"
#include "json/parse.h"

namespace dibs::bench {

using json::Value;

namespace {

struct Term;
/// One command of a pipeline: a value, or a function with arguments.
using Command = std::vector<Term>;
using Pipeline = std::vector<Command>;

struct Term {
  enum class Kind : std::uint8_t { constant, field, variable, function, nested } kind{};
  Value constant;
  std::string name;               // of a function or variable
  std::vector<std::string> path;  // of a field or after a variable
  Pipeline nested;
};

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) {
    text.remove_prefix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) {
    text.remove_suffix(1);
  }
  return text;
}

/// Reads the inside of "{{ }}".
class ActionReader {
 public:
  explicit ActionReader(std::string_view text) : rest_(trimmed(text)) {}

  Result<Pipeline> pipeline() {
    Pipeline made;
    Command command;
    for (;;) {
      skip_blanks();
      if (rest_.empty() || rest_.front() == ')') break;
      if (rest_.front() == '|') {
        rest_.remove_prefix(1);
        made.push_back(std::move(command));
        command.clear();
        continue;
      }
      DIBS_TRY(Term read, term());
      command.push_back(std::move(read));
    }
    made.push_back(std::move(command));
    for (const Command& one : made) {
      if (one.empty()) return Error::bad_request("missing value for command");
    }
    return made;
  }

  /// "$x :=" at the beginning; "" when there is none.
  std::string declaration() {
    if (!rest_.starts_with('$')) return {};
    const auto sign = rest_.find(":=");
    if (sign == std::string_view::npos) return {};
    std::string name(trimmed(rest_.substr(1, sign - 1)));
    rest_.remove_prefix(sign + 2);
    return name;
  }

  bool at_end() {
    skip_blanks();
    return rest_.empty();
  }

 private:
  void skip_blanks() {
    while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_.front()))) {
      rest_.remove_prefix(1);
    }
  }

  std::string word() {
    std::size_t end = 0;
    while (end < rest_.size() && is_name(rest_[end])) ++end;
    std::string out(rest_.substr(0, end));
    rest_.remove_prefix(end);
    return out;
  }

  void fields(Term& term) {
    while (rest_.size() > 1 && rest_.front() == '.' && is_name(rest_[1])) {
      rest_.remove_prefix(1);
      term.path.push_back(word());
    }
  }

  Result<Term> term() {
    Term made;
    const char first = rest_.front();
    if (first == '(') {
      rest_.remove_prefix(1);
      made.kind = Term::Kind::nested;
      DIBS_TRY(made.nested, pipeline());
      if (rest_.empty()) return Error::bad_request("unclosed left paren");
      rest_.remove_prefix(1);
    } else if (first == '.') {
      made.kind = Term::Kind::field;
      fields(made);
      if (made.path.empty()) rest_.remove_prefix(1);
    } else if (first == '$') {
      made.kind = Term::Kind::variable;
      rest_.remove_prefix(1);
      made.name = word();
      fields(made);
    } else if (first == '"' || first == '`') {
      const auto end = rest_.find(first, 1);
      if (end == std::string_view::npos) return Error::bad_request("unterminated quoted string");
      made.constant = Value(rest_.substr(1, end - 1));
      rest_.remove_prefix(end + 1);
    } else if (std::isdigit(static_cast<unsigned char>(first)) || first == '-') {
      std::size_t end = 1;
      while (end < rest_.size() && (is_name(rest_[end]) || rest_[end] == '.')) ++end;
      auto number = json::parse(rest_.substr(0, end));
      if (!number.ok()) {
        return Error::bad_request(cat("bad number syntax: ", quoted(rest_.substr(0, end))));
      }
      made.constant = *number;
      rest_.remove_prefix(end);
    } else {
      made.name = word();
      if (made.name.empty()) {
        return Error::bad_request(cat("unexpected ", quoted(rest_), " in command"));
      }
      if (made.name == "true" || made.name == "false") {
        made.constant = Value(made.name == "true");
      } else if (made.name != "nil") {
        made.kind = Term::Kind::function;
      }
    }
    return made;
  }

  std::string_view rest_;
};

bool truth(const Value& value) {
  switch (value.kind()) {
    case json::Kind::null:
      return false;
    case json::Kind::boolean:
      return value.as_bool();
    case json::Kind::integer:
    case json::Kind::number:
      return value.as_double() != 0;
    case json::Kind::string:
      return !value.as_string().empty();
    default:
      return !value.empty();
  }
}

std::string print(const Value& value) {
  if (value.is_null()) return "<no value>";
  if (value.is_string()) return value.str();
  return json::write(value);
}

Result<std::int64_t> integer(const Value& value) {
  if (value.is_number()) return static_cast<std::int64_t>(value.as_double());
  if (value.is_string()) {
    char* end = nullptr;
    const std::string text = value.str();
    const std::int64_t number = std::strtoll(text.c_str(), &end, 10);
    if (end != text.c_str() && *end == '\0') return number;
  }
  return Error::bad_request(cat("cannot take ", print(value), " for an integer"));
}

Result<int> compare(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    return a.as_double() < b.as_double() ? -1 : a.as_double() > b.as_double() ? 1 : 0;
  }
  if (a.is_string() && b.is_string()) return a.as_string().compare(b.as_string());
  if (a.is_boolean() && b.is_boolean()) return static_cast<int>(a.as_bool()) - b.as_bool();
  return Error::bad_request("incompatible types for comparison");
}

Result<Value> call(const std::string& name, const std::vector<Value>& args) {
  const auto wants = [&](std::size_t count) {
    return args.size() == count
               ? success()
               : Result<>(Error::bad_request(cat("wrong number of args for ", name, ": want ",
                                                 count, " got ", args.size())));
  };
  if (name == "or" || name == "and") {
    if (args.empty()) return wants(1).error();
    for (const Value& arg : args) {
      if (truth(arg) == (name == "or")) return arg;
    }
    return args.back();
  }
  if (name == "not") {
    DIBS_CHECK(wants(1));
    return Value(!truth(args[0]));
  }
  if (name == "JSON") {
    DIBS_CHECK(wants(1));
    return Value(json::write(args[0]));
  }
  if (name == "Int") {
    DIBS_CHECK(wants(1));
    DIBS_TRY(const std::int64_t number, integer(args[0]));
    return Value(static_cast<long long>(number));
  }
  if (name == "eq" || name == "ne" || name == "lt" || name == "le" || name == "gt" ||
      name == "ge") {
    DIBS_CHECK(wants(2));
    DIBS_TRY(const int order, compare(args[0], args[1]));
    const bool holds = name == "eq"   ? order == 0
                       : name == "ne" ? order != 0
                       : name == "lt" ? order < 0
                       : name == "le" ? order <= 0
                       : name == "gt" ? order > 0
                                      : order >= 0;
    return Value(holds);
  }
  if (name == "Mod" || name == "DivideInt" || name == "AddInt" || name == "SubtractInt" ||
      name == "MultiplyInt") {
    DIBS_CHECK(wants(2));
    DIBS_TRY(const std::int64_t a, integer(args[0]));
    DIBS_TRY(const std::int64_t b, integer(args[1]));
    if (b == 0 && (name == "Mod" || name == "DivideInt")) {
      return Error::bad_request(cat(name, ": division by zero"));
    }
    const std::int64_t made = name == "Mod"           ? a % b
                              : name == "DivideInt"   ? a / b
                              : name == "AddInt"      ? a + b
                              : name == "SubtractInt" ? a - b
                                                      : a * b;
    return Value(static_cast<long long>(made));
  }
  return Error::bad_request(cat("function ", quoted(name), " not defined"));
}

}  // namespace

struct TextTemplate::Node {
  enum class Kind : std::uint8_t { text, print, declare, branch, range, list } kind{};
  std::string text;  // or the variable's name
  Pipeline pipeline;
  std::vector<Node> then;
  std::vector<Node> otherwise;
};

/// Text between actions becomes nodes; "if" and "range" hold those up to their "end".
class TemplateParser {
 public:
  explicit TemplateParser(std::string_view text) : rest_(text) {}

  Result<> list(std::vector<TextTemplate::Node>& out, bool nested, std::string& ended_by) {
    using Node = TextTemplate::Node;
    for (;;) {
      const auto open = rest_.find("{{");
      std::string_view plain = rest_.substr(0, open);
      if (std::exchange(trim_next_, false)) {
        while (!plain.empty() && std::isspace(static_cast<unsigned char>(plain.front()))) {
          plain.remove_prefix(1);
        }
      }
      if (open == std::string_view::npos) {
        if (nested) return Error::bad_request("unexpected EOF");
        if (!plain.empty()) out.push_back({Node::Kind::text, std::string(plain), {}, {}, {}});
        return success();
      }
      rest_.remove_prefix(open + 2);
      const auto close = rest_.find("}}");
      if (close == std::string_view::npos) return Error::bad_request("unclosed action");
      std::string_view action = rest_.substr(0, close);
      rest_.remove_prefix(close + 2);
      if (action.starts_with("- ")) {
        action.remove_prefix(2);
        while (!plain.empty() && std::isspace(static_cast<unsigned char>(plain.back()))) {
          plain.remove_suffix(1);
        }
      }
      if (action.ends_with(" -")) {
        action.remove_suffix(2);
        trim_next_ = true;
      }
      if (!plain.empty()) out.push_back({Node::Kind::text, std::string(plain), {}, {}, {}});
      action = trimmed(action);
      if (action.starts_with("/*")) continue;
      if (action == "end" || action == "else") {
        if (!nested) return Error::bad_request(cat("unexpected {{", action, "}}"));
        ended_by = action;
        return success();
      }
      Node node;
      const bool branch = action.starts_with("if ");
      const bool range = action.starts_with("range ");
      if (branch || range) {
        node.kind = branch ? Node::Kind::branch : Node::Kind::range;
        action.remove_prefix(branch ? 3 : 6);
        ActionReader reader(action);
        if (range) node.text = reader.declaration();
        DIBS_TRY(node.pipeline, reader.pipeline());
        std::string by;
        DIBS_CHECK(list(node.then, true, by));
        if (by == "else") DIBS_CHECK(list(node.otherwise, true, by));
        if (by != "end") return Error::bad_request("expected end; found {{else}}");
      } else {
        for (const char* keyword : {"with", "template", "define", "block", "break", "continue"}) {
          if (action == keyword || action.starts_with(cat(keyword, " "))) {
            return Error::bad_request(cat("{{", keyword, "}} is not supported"));
          }
        }
        ActionReader reader(action);
        node.text = reader.declaration();
        node.kind = node.text.empty() ? Node::Kind::print : Node::Kind::declare;
        DIBS_TRY(node.pipeline, reader.pipeline());
      }
      out.push_back(std::move(node));
    }
  }

 private:
  std::string_view rest_;
  bool trim_next_ = false;
};

class TemplateRun {
 public:
  explicit TemplateRun(const Value& data) { variables_[""] = data; }

  Result<> nodes(const std::vector<TextTemplate::Node>& list, const Value& dot) {
    using Node = TextTemplate::Node;
    for (const Node& node : list) {
      if (node.kind == Node::Kind::text) {
        out_.append(node.text);
        continue;
      }
      DIBS_TRY(const Value value, pipeline(node.pipeline, dot));
      switch (node.kind) {
        case Node::Kind::print:
          out_.append(print(value));
          break;
        case Node::Kind::declare:
          variables_[node.text] = value;
          break;
        case Node::Kind::branch:
          DIBS_CHECK(nodes(truth(value) ? node.then : node.otherwise, dot));
          break;
        case Node::Kind::range:
          DIBS_CHECK(range(node, value, dot));
          break;
        default:
          break;
      }
    }
    return success();
  }

  std::string take() { return std::move(out_); }

 private:
  Result<> range(const TextTemplate::Node& node, const Value& over, const Value& dot) {
    const auto body = [&](const Value& item) {
      if (!node.text.empty()) variables_[node.text] = item;
      return nodes(node.then, item);
    };
    if (over.is_integer()) {
      for (std::int64_t i = 0; i < over.as_int(); ++i) {
        DIBS_CHECK(body(Value(static_cast<long long>(i))));
      }
      return over.as_int() > 0 ? success() : nodes(node.otherwise, dot);
    }
    for (const Value& item : over.items()) DIBS_CHECK(body(item));
    for (const auto& [key, item] : over.members()) DIBS_CHECK(body(item));
    return over.empty() ? nodes(node.otherwise, dot) : success();
  }

  Result<Value> value_of(const Term& term, const Value& dot) {
    switch (term.kind) {
      case Term::Kind::constant:
        return term.constant;
      case Term::Kind::nested:
        return pipeline(term.nested, dot);
      case Term::Kind::function:
        return call(term.name, {});
      default:
        break;
    }
    Value value = dot;
    if (term.kind == Term::Kind::variable) {
      const auto found = variables_.find(term.name);
      if (found == variables_.end()) {
        return Error::bad_request(cat("undefined variable ", quoted(cat("$", term.name))));
      }
      value = found->second;
    }
    for (const std::string& key : term.path) value = Value(value[key]);
    return value;
  }

  Result<Value> pipeline(const Pipeline& commands, const Value& dot) {
    Value last;
    for (std::size_t i = 0; i < commands.size(); ++i) {
      const Command& command = commands[i];
      if (command[0].kind != Term::Kind::function) {
        if (i > 0 || command.size() > 1) {
          return Error::bad_request("can't give argument to non-function");
        }
        DIBS_TRY(last, value_of(command[0], dot));
        continue;
      }
      std::vector<Value> args;
      for (std::size_t k = 1; k < command.size(); ++k) {
        DIBS_TRY(Value arg, value_of(command[k], dot));
        args.push_back(std::move(arg));
      }
      if (i > 0) args.push_back(std::move(last));
      DIBS_TRY(last, call(command[0].name, args));
    }
    return last;
  }

  std::map<std::string, Value> variables_;
  std::string out_;
};

TextTemplate::TextTemplate(std::string text)
    : text_(std::move(text)), root_(std::make_unique<Node>()) {
  root_->kind = Node::Kind::list;
}
TextTemplate::TextTemplate(TextTemplate&&) noexcept = default;
TextTemplate& TextTemplate::operator=(TextTemplate&&) noexcept = default;
TextTemplate::~TextTemplate() = default;

Result<TextTemplate> TextTemplate::parse(std::string_view text) {
  TextTemplate made{std::string(text)};
  std::string ended_by;
  DIBS_CHECK(TemplateParser(made.text_).list(made.root_->then, false, ended_by));
  return made;
}

Result<std::string> TextTemplate::fill(const Value& data) const {
  TemplateRun run(data);
  DIBS_CHECK(run.nodes(root_->then, data));
  return run.take();
}

bool TextTemplate::mentions(std::string_view field) const {
  return text_.find(cat(".", field)) != std::string::npos;
}

}  // namespace dibs::bench
