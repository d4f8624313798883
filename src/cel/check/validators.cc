#include "cel/check/validators.h"

#include <string>

#include "base/strings.h"
#include "base/time.h"
#include "cel/calendar.h"
#include "cel/environment.h"
#include "cel/libraries/format.h"
#include "cel/operations.h"
#include "cel/regex.h"

namespace dibs::cel {

namespace {

class Validator {
 public:
  Validator(const Environment& environment, const Ast& ast, const CheckedAst& checked,
            std::vector<Issue>& issues)
      : options_(environment.options), ast_(ast), checked_(checked), issues_(issues) {}

  void run() {
    if (options_.homogeneous_literals) find_formats();
    for (NodeId id = 0; id < ast_.size(); ++id) {
      const AstNode& node = ast_.node(id);
      if (options_.check_literals && node.kind == NodeKind::call) call(id, node);
      if (!options_.homogeneous_literals || exempt_[id]) continue;
      if (node.kind == NodeKind::list) aggregate(node, 0, 1);
      if (node.kind == NodeKind::map) {
        aggregate(node, 0, 2);
        aggregate(node, 1, 2);
      }
    }
  }

 private:
  void issue(const AstNode& node, std::string message) {
    issues_.push_back({node.position, std::move(message)});
  }

  /// Arguments of a format may be of many types, and so may lists within them.
  void find_formats() {
    exempt_.resize(ast_.size());
    for (NodeId id = static_cast<NodeId>(ast_.size()); id-- > 0;) {
      // Nodes come after their children.
      const AstNode& node = ast_.node(id);
      const bool exempts =
          exempt_[id] || (node.kind == NodeKind::call && ast_.name(node) == "format");
      if (!exempts) continue;
      for (std::size_t i = 0; i < node.count; ++i) {
        if (ast_.child(node, i) != kNoNode) exempt_[ast_.child(node, i)] = true;
      }
    }
  }

  void aggregate(const AstNode& node, std::size_t first, std::size_t step) {
    Type expected;
    for (std::size_t i = first; i < node.count; i += step) {
      const NodeId id = ast_.child(node, i);
      Type type = checked_.nodes[id].type;
      const bool optional = step == 1 ? ast_.child_is_optional(node, i)
                                      : i % 2 == 1 && ast_.child_is_optional(node, i - 1);
      if (optional && type.is_optional()) type = type.parameter(0);
      if (i == first) {
        expected = type;
      } else if (!(type == expected)) {
        issue(ast_.node(id),
              cat("expected type '", expected.str(), "' but found '", type.str(), "'"));
        return;
      }
    }
  }

  const Value* constant(NodeId id) const {
    const AstNode& node = ast_.node(id);
    return node.kind == NodeKind::constant ? &ast_.constant(node) : nullptr;
  }

  void call(NodeId id, const AstNode& node) {
    const std::string& name = ast_.name(node);
    if (checked_.nodes[id].namespaced) return;
    if ((name == "duration" || name == "timestamp") && !node.receiver && node.count == 1) {
      const NodeId argument = ast_.child(node, 0);
      const Value* value = constant(argument);
      if (value != nullptr && !is_valid(name == "duration", *value))
        issue(ast_.node(argument), cat("invalid ", name, " argument"));
    } else if (name == "matches" && node.count == 2) {
      // Of matches(a, b) it is the text that is judged as if it were the pattern.
      const NodeId judged = ast_.child(node, node.receiver ? 1 : 0);
      const Value* pattern = constant(judged);
      std::string message;
      if (pattern != nullptr && pattern->is(Kind::string) &&
          find_pattern(pattern->text(), message) == nullptr)
        issue(ast_.node(judged), "invalid matches argument");
    } else if (name == "format" && node.receiver && node.count == 2) {
      format(node);
    }
  }

  static bool is_valid(bool duration, const Value& value) {
    if (duration) return value.is(Kind::string) && parse_duration(value.text()).ok();
    std::int64_t seconds;
    std::uint32_t nanos;
    if (value.is(Kind::integer)) return is_valid_timestamp(value.as_integer());
    return value.is(Kind::string) && parse_timestamp(value.text(), seconds, nanos);
  }

  /// A literal format with a literal list of arguments.
  void format(const AstNode& node) {
    const Value* text = constant(ast_.child(node, 0));
    const AstNode& arguments = ast_.node(ast_.child(node, 1));
    if (text == nullptr || !text->is(Kind::string) || arguments.kind != NodeKind::list) return;
    const std::string_view clauses = text->text();
    std::size_t used = 0;
    for (std::size_t i = 0; i < clauses.size();) {
      if (clauses[i] != '%' || clauses.substr(i, 2) == "%%") {
        i += clauses[i] == '%' ? 2 : 1;
        continue;
      }
      std::string wrong;
      FormatClause clause;
      if (i + 1 >= clauses.size())
        wrong = "unexpected end of string";
      else if (used >= arguments.count)
        wrong = cat("index ", used, " out of range");
      else
        wrong = read_clause(clauses, i, clause);
      if (!wrong.empty()) {
        issue(node, std::move(wrong));
        return;
      }
      if (!check_argument(clause.verb, ast_.child(arguments, used++))) return;
    }
    if (options_.format_style == FormatStyle::literal && used < arguments.count)
      issue(node, cat("too many arguments supplied to string.format (expected ", used, ", got ",
                      arguments.count, ")"));
  }

  /// Lists and maps that are literals are looked into.
  bool check_argument(char verb, NodeId id) {
    const AstNode& node = ast_.node(id);
    const Type& type = checked_.nodes[id].type;
    const std::string_view rule = broken_format_rule(verb, type, options_.format_style);
    if (!rule.empty()) {
      issue(node, cat("error during formatting: ", rule, ", was given ", bare_name(type)));
      return false;
    }
    if (verb != 's' || (node.kind != NodeKind::list && node.kind != NodeKind::map)) return true;
    for (std::size_t i = 0; i < node.count; ++i) {
      if (!check_argument(verb, ast_.child(node, i))) return false;
    }
    return true;
  }

  /// Without parameters.
  static std::string bare_name(const Type& type) {
    const std::string name = type.full_name();
    return name.substr(0, name.find('('));
  }

  const EnvironmentOptions& options_;
  const Ast& ast_;
  const CheckedAst& checked_;
  std::vector<Issue>& issues_;
  std::vector<bool> exempt_;
};

}  // namespace

void validate(const Environment& environment, const Ast& ast, const CheckedAst& checked,
              std::vector<Issue>& issues) {
  if (!environment.options.unchecked) Validator(environment, ast, checked, issues).run();
}

}  // namespace dibs::cel
