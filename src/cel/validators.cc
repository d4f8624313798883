#include "cel/validators.h"

#include <string>

#include "base/strings.h"
#include "base/time.h"
#include "cel/calendar.h"
#include "cel/environment.h"
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

  /// Arguments of a format may be of many types.
  void find_formats() {
    exempt_.resize(ast_.size());
    for (NodeId id = 0; id < ast_.size(); ++id) {
      const AstNode& node = ast_.node(id);
      if (node.kind == NodeKind::call && node.receiver && node.count == 2 &&
          ast_.name(node) == "format")
        exempt_[ast_.child(node, 1)] = true;
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
      const Value* pattern = constant(ast_.child(node, 1));
      std::string message;
      if (pattern != nullptr && pattern->is(Kind::string) &&
          find_pattern(pattern->text(), message) == nullptr)
        issue(ast_.node(ast_.child(node, 1)), "invalid matches argument");
    } else if (name == "format" && node.receiver && node.count == 2) {
      format(node);
    }
  }

  static bool is_valid(bool duration, const Value& value) {
    if (duration) return value.is(Kind::string) && parse_duration(value.text()).ok();
    std::int64_t seconds;
    std::uint32_t nanos;
    return !value.is(Kind::string) || parse_timestamp(value.text(), seconds, nanos);
  }

  /// A literal format with a literal list of arguments.
  void format(const AstNode& node) {
    const Value* text = constant(ast_.child(node, 0));
    const AstNode& arguments = ast_.node(ast_.child(node, 1));
    if (text == nullptr || !text->is(Kind::string) || arguments.kind != NodeKind::list) return;
    const std::string_view clauses = text->text();
    std::size_t used = 0;
    for (std::size_t i = 0; i < clauses.size(); ++i) {
      if (clauses[i] != '%') continue;
      if (++i < clauses.size() && clauses[i] == '%') continue;
      if (i < clauses.size() && clauses[i] == '.')
        i = clauses.find_first_not_of("0123456789", i + 1);
      if (i >= clauses.size()) {
        issue(node, "could not parse formatting clause: unexpected end of string");
        return;
      }
      if (std::string_view("sdobxXef").find(clauses[i]) == std::string_view::npos) {
        issue(node, cat("could not parse formatting clause: unrecognized formatting clause \"",
                        clauses[i], "\""));
        return;
      }
      if (used >= arguments.count) {
        issue(node, cat("index ", used, " out of range"));
        return;
      }
      const NodeId argument = ast_.child(arguments, used++);
      const Type& type = checked_.nodes[argument].type;
      const std::string_view rule = broken_rule(clauses[i], type);
      if (!rule.empty()) {
        issue(ast_.node(argument),
              cat("error during formatting: ", rule, ", was given ", type.full_name()));
        return;
      }
    }
  }

  /// What a clause demands, when the type does not meet it.
  static std::string_view broken_rule(char clause, const Type& type) {
    if (type.is(TypeKind::dyn)) return "";
    const bool whole = type.is(TypeKind::integer) || type.is(TypeKind::uinteger);
    const bool number = whole || type.is(TypeKind::real);
    const bool text = type.is(TypeKind::string) || type.is(TypeKind::bytes);
    switch (clause) {
      case 's':
        if (type.is(TypeKind::any) || type.is(TypeKind::opaque) || type.is(TypeKind::object))
          return "string clause can only be used on strings, bools, bytes, ints, doubles, maps, "
                 "lists, types, durations, and timestamps";
        return "";
      case 'd':
        return whole ? "" : "decimal clause can only be used on integers";
      case 'o':
        return whole ? "" : "octal clause can only be used on integers";
      case 'b':
        return whole || type.is(TypeKind::boolean)
                   ? ""
                   : "only integers and bools can be formatted as binary";
      case 'e':
        return number ? "" : "scientific clause can only be used on doubles";
      case 'f':
        return number ? "" : "fixed-point clause can only be used on doubles";
      default:
        return whole || text ? ""
                             : "only integers, byte buffers, and strings can be formatted as hex";
    }
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
