#include "cel/parse/parser.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "cel/operations.h"
#include "cel/parse/lexer.h"
#include "cel/parse/macros.h"
#include "cel/parse/syntax_errors.h"

namespace dibs::cel {

namespace {

/// How deep any one rule of the grammar may nest, and how deep operators, selects and calls may in
/// the tree.
constexpr std::size_t kMaxDepth = 250;
constexpr std::size_t kMaxCodePoints = 100'000;

constexpr std::string_view kReserved[] = {
    "as",  "break", "const",   "continue",  "else",   "for", "function", "if",   "import",
    "let", "loop",  "package", "namespace", "return", "var", "void",     "while"};

/// By how tightly they bind.
enum Level : int { kDisjunction, kConjunction, kRelation, kSum, kProduct };

struct Operator {
  std::string_view token;
  std::string_view function;
  Level level;
};

constexpr Operator kOperators[] = {
    {"||", "_||_", kDisjunction}, {"&&", "_&&_", kConjunction}, {"<", "_<_", kRelation},
    {"<=", "_<=_", kRelation},    {">=", "_>=_", kRelation},    {">", "_>_", kRelation},
    {"==", "_==_", kRelation},    {"!=", "_!=_", kRelation},    {"in", "@in", kRelation},
    {"+", "_+_", kSum},           {"-", "_-_", kSum},           {"*", "_*_", kProduct},
    {"/", "_/_", kProduct},       {"%", "_%_", kProduct}};

/// By recursive descent, but for binary operators, which are put together on a stack of their own:
/// a level of parentheses then takes few frames. After a syntax error every function returns at
/// once: failed_ is checked where tokens are consumed in loops, and the tree made so far is
/// dropped. What to say about it is left to syntax_errors.h.
class Parser {
 public:
  Parser(const std::vector<Token>& tokens, const ParserOptions& options, std::vector<Issue>& issues)
      : tokens_(tokens), options_(options), issues_(issues) {}

  std::unique_ptr<Ast> run() {
    ast_->root = expression();
    if (!failed_ && peek().kind != TokenKind::end) syntax_error();
    if (!failed_ && (ast_->too_high() || ast_->node(ast_->root).nesting > kMaxDepth)) too_high();
    return failed_ ? nullptr : std::move(ast_);
  }

  /// The tokens are no expression.
  bool found_syntax_error() const { return syntax_error_; }

 private:
  const Token& peek(std::size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  bool is(std::string_view punctuation) const {
    return peek().kind == TokenKind::punctuation && peek().text == punctuation;
  }
  bool take(std::string_view punctuation) {
    if (failed_ || !is(punctuation)) return false;
    ++at_;
    return true;
  }
  void expect(std::string_view punctuation) {
    if (!take(punctuation)) syntax_error();
  }

  NodeId syntax_error() {
    if (!failed_) syntax_error_ = true;
    failed_ = true;
    return after_error();
  }

  void recursion_error() {
    if (!failed_)
      issues_.push_back({kNoPosition, cat("expression recursion limit exceeded: ", kMaxDepth)});
    failed_ = true;
  }

  void too_high() {
    if (!failed_) issues_.push_back({kNoPosition, "max recursion depth exceeded"});
    failed_ = true;
  }

  /// Stands for what could not be parsed; the program is never built.
  NodeId after_error() { return ast_->add_constant(Value::null(), peek().position); }

  void issue(std::uint32_t position, std::string message) {
    issues_.push_back({position, std::move(message)});
  }

  NodeId call(std::string_view function, std::uint32_t position, const std::vector<NodeId>& args,
              bool receiver = false) {
    AstNode node;
    node.kind = NodeKind::call;
    node.position = position;
    node.receiver = receiver;
    node.name = ast_->intern(function);
    return ast_->add(node, args);
  }

  NodeId expression() {
    if (failed_) return after_error();
    if (depth_ >= kMaxDepth) {
      recursion_error();
      return after_error();
    }
    ++depth_;
    NodeId made = operation();
    if (!failed_ && is("?")) {
      const std::uint32_t position = peek().position;
      ++at_;
      const NodeId yes = operation();
      expect(":");
      const NodeId no = expression();
      made = call("_?_:_", position, {made, yes, no});
    }
    --depth_;
    return made;
  }

  const Operator* peek_operator() const {
    if (peek().kind != TokenKind::punctuation && peek().kind != TokenKind::kw_in) return nullptr;
    for (const Operator& candidate : kOperators) {
      if (candidate.token == peek().text) return &candidate;
    }
    return nullptr;
  }

  /// An operator that waits for its right operand, which is on the stack below it.
  struct Waiting {
    const Operator* operation;
    std::uint32_t position;
  };

  /// Operands and operators up to something else.
  NodeId operation() {
    if (failed_) return after_error();
    const std::size_t base = waiting_.size();
    while (!failed_) {
      operands_.push_back(operand(base));
      const Operator* next = failed_ ? nullptr : peek_operator();
      // All that binds as tightly stands to the left of what comes.
      while (waiting_.size() > base && reduces(*waiting_.back().operation, next)) reduce(base);
      if (next == nullptr) break;
      waiting_.push_back({next, peek().position});
      ++at_;
    }
    waiting_.resize(base);
    const NodeId made = operands_.back();
    operands_.pop_back();
    return made;
  }

  /// An operand nests in the operators that wait for it: each is an instance of its rule.
  NodeId operand(std::size_t base) {
    std::size_t relations = 1;
    std::size_t calculations = 1;
    for (std::size_t i = waiting_.size(); i > base; --i) {
      const Level level = waiting_[i - 1].operation->level;
      if (level < kRelation) break;
      ++(level == kRelation ? relations : calculations);
    }
    relation_depth_ += relations;
    calculation_depth_ += calculations;
    if (relation_depth_ > kMaxDepth || calculation_depth_ > kMaxDepth) recursion_error();
    const NodeId made = unary();
    relation_depth_ -= relations;
    calculation_depth_ -= calculations;
    return made;
  }

  /// Chains of && and || are one call, made once the chain is complete.
  static bool reduces(const Operator& last, const Operator* next) {
    if (next == nullptr) return true;
    return last.level <= kConjunction ? last.level > next->level : last.level >= next->level;
  }

  void reduce(std::size_t base) {
    const Waiting last = waiting_.back();
    std::size_t operators = 1;
    if (last.operation->level <= kConjunction) {
      while (waiting_.size() - base > operators &&
             waiting_[waiting_.size() - operators - 1].operation == last.operation)
        ++operators;
    }
    const std::uint32_t position = waiting_[waiting_.size() - operators].position;
    waiting_.resize(waiting_.size() - operators);
    const std::vector<NodeId> terms(operands_.end() - static_cast<std::ptrdiff_t>(operators) - 1,
                                    operands_.end());
    operands_.resize(operands_.size() - operators - 1);
    operands_.push_back(call(last.operation->function, position, terms));
    if (ast_->too_high()) too_high();
  }

  NodeId unary() {
    if (failed_) return after_error();
    const std::string_view sign = is("!") ? "!" : is("-") ? "-" : "";
    if (sign.empty()) return member(primary());
    const std::uint32_t position = peek().position;
    std::size_t count = 0;
    while (take(sign)) ++count;
    const bool odd = count % 2 == 1;
    // A single sign belongs to the literal.
    if (sign == "-" && count == 1 &&
        (peek().kind == TokenKind::integer || peek().kind == TokenKind::real)) {
      const std::uint32_t start = tokens_[at_ - 1].position;
      return member(number(true, start));
    }
    const NodeId operand = member(primary());
    if (!odd) return operand;
    return call(sign == "!" ? "!_" : "-_", position, {operand});
  }

  NodeId number(bool negative, std::uint32_t position) {
    Value value;
    std::string message;
    if (!parse_number(peek(), negative, value, message)) issue(position, message);
    ++at_;
    return ast_->add_constant(std::move(value), position);
  }

  NodeId member(NodeId operand) {
    while (!failed_) {
      const std::uint32_t position = peek().position;
      if (take(".")) {
        operand = dot(operand, position);
      } else if (take("[")) {
        const bool optional = optional_mark("[?", position);
        const NodeId index = expression();
        expect("]");
        operand = call(optional ? "_[?_]" : "_[_]", position, {operand, index});
      } else if (is("{") && is_name(operand)) {
        operand = message(operand);
      } else {
        break;
      }
      if (ast_->too_high()) too_high();
    }
    return operand;
  }

  NodeId dot(NodeId operand, std::uint32_t position) {
    AstNode node;
    node.kind = NodeKind::select;
    node.position = position;
    node.optional = optional_mark(".?", position);
    const Token name = peek();
    if (name.kind == TokenKind::quoted_ident) {
      if (!options_.quoted_fields) issue(name.position, "unsupported syntax: '`'");
    } else if (name.kind != TokenKind::ident) {
      return syntax_error();
    }
    ++at_;
    if (name.kind == TokenKind::ident && !node.optional && is("(")) {
      const std::uint32_t open = peek().position;
      std::vector<NodeId> arguments = call_arguments();
      return function_call(name.text, operand, std::move(arguments), open);
    }
    std::string_view field = name.text;
    if (name.kind == TokenKind::quoted_ident) field = field.substr(1, field.size() - 2);
    node.name = ast_->intern(field);
    return ast_->add(node, {operand});
  }

  bool optional_mark() { return optional_mark("?", peek().position); }

  bool optional_mark(std::string_view syntax, std::uint32_t position) {
    if (!is("?")) return false;
    if (!options_.optional_syntax) issue(position, cat("unsupported syntax '", syntax, "'"));
    ++at_;
    return true;
  }

  std::vector<NodeId> call_arguments() {
    std::vector<NodeId> arguments;
    expect("(");
    if (take(")")) return arguments;
    do arguments.push_back(expression());
    while (take(","));
    expect(")");
    return arguments;
  }

  NodeId function_call(std::string_view function, NodeId receiver, std::vector<NodeId> arguments,
                       std::uint32_t position) {
    if (failed_) return after_error();
    if (options_.macros) {
      const NodeId made =
          expand_macro(*ast_, options_, {function, receiver, &arguments, position}, issues_);
      if (made != kNoNode) return made;
    }
    if (receiver != kNoNode) arguments.insert(arguments.begin(), receiver);
    return call(function, position, arguments, receiver != kNoNode);
  }

  bool is_name(NodeId id) const {
    const AstNode* node = &ast_->node(id);
    while (node->kind == NodeKind::select && !node->optional && !node->test_only)
      node = &ast_->node(ast_->child(*node, 0));
    return node->kind == NodeKind::ident;
  }

  std::string qualified_name(NodeId id) const {
    const AstNode& node = ast_->node(id);
    if (node.kind == NodeKind::ident) return cat(node.rooted ? "." : "", ast_->name(node));
    return cat(qualified_name(ast_->child(node, 0)), ".", ast_->name(node));
  }

  NodeId message(NodeId type) {
    AstNode node;
    node.kind = NodeKind::message;
    node.position = peek().position;
    node.name = ast_->intern(qualified_name(type));
    std::vector<NodeId> children;
    expect("{");
    while (!failed_ && !take("}")) {
      const bool optional = optional_mark();
      const Token field = peek();
      if (field.kind != TokenKind::ident && field.kind != TokenKind::quoted_ident)
        return syntax_error();
      ++at_;
      if (field.kind == TokenKind::quoted_ident && !options_.quoted_fields)
        issue(field.position, "unsupported syntax: '`'");
      const NodeId key = ast_->add_constant(Value::string(std::string(field.text)), field.position);
      children.push_back(optional ? key | Ast::kOptionalBit : key);
      expect(":");
      children.push_back(expression());
      if (!take(",") && !is("}")) return syntax_error();
    }
    return ast_->add(node, children);
  }

  NodeId primary() {
    if (failed_) return after_error();
    switch (peek().kind) {
      case TokenKind::ident:
        return ident(false, peek().position);
      case TokenKind::punctuation:
        break;
      case TokenKind::end:
      case TokenKind::kw_in:
      case TokenKind::quoted_ident:
        return syntax_error();
      default:
        return literal();
    }
    if (take("(")) {
      const NodeId made = expression();
      expect(")");
      return made;
    }
    if (is("[")) return list();
    if (is("{")) return map();
    if (!take(".") || peek().kind != TokenKind::ident) return syntax_error();
    return ident(true, peek().position);
  }

  NodeId literal() {
    const Token token = peek();
    switch (token.kind) {
      case TokenKind::kw_true:
      case TokenKind::kw_false:
        ++at_;
        return ast_->add_constant(Value::boolean(token.kind == TokenKind::kw_true), token.position);
      case TokenKind::kw_null:
        ++at_;
        return ast_->add_constant(Value::null(), token.position);
      case TokenKind::string:
      case TokenKind::bytes: {
        Value value;
        std::string message;
        if (!parse_text(token, value, message)) issue(token.position, message);
        ++at_;
        return ast_->add_constant(std::move(value), token.position);
      }
      default:
        return number(false, token.position);
    }
  }

  NodeId ident(bool rooted, std::uint32_t position) {
    const Token name = peek();
    ++at_;
    if (std::find(std::begin(kReserved), std::end(kReserved), name.text) != std::end(kReserved) &&
        !begins_message())
      issue(name.position, cat("reserved identifier: ", name.text));
    if (is("(")) {
      const std::uint32_t open = peek().position;
      std::vector<NodeId> arguments = call_arguments();
      const std::string function = cat(rooted ? "." : "", name.text);
      return function_call(function, kNoNode, std::move(arguments), open);
    }
    AstNode node;
    node.kind = NodeKind::ident;
    node.position = position;
    node.rooted = rooted;
    node.name = ast_->intern(name.text);
    return ast_->add(node, {});
  }

  /// The name just taken is the first of the type of a message: a.b.C{...}.
  bool begins_message() const {
    std::size_t i = 0;
    const auto at = [&](std::string_view punctuation) {
      return peek(i).kind == TokenKind::punctuation && peek(i).text == punctuation;
    };
    while (at(".") && peek(i + 1).kind == TokenKind::ident) i += 2;
    return at("{");
  }

  NodeId list() {
    AstNode node;
    node.kind = NodeKind::list;
    node.position = peek().position;
    expect("[");
    std::vector<NodeId> elements;
    while (!failed_ && !take("]")) {
      const bool optional = optional_mark();
      const NodeId element = expression();
      elements.push_back(optional ? element | Ast::kOptionalBit : element);
      if (!take(",") && !is("]")) return syntax_error();
    }
    return ast_->add(node, elements);
  }

  NodeId map() {
    AstNode node;
    node.kind = NodeKind::map;
    node.position = peek().position;
    expect("{");
    std::vector<NodeId> entries;
    while (!failed_ && !take("}")) {
      const bool optional = optional_mark();
      const NodeId key = expression();
      entries.push_back(optional ? key | Ast::kOptionalBit : key);
      expect(":");
      entries.push_back(expression());
      if (!take(",") && !is("}")) return syntax_error();
    }
    return ast_->add(node, entries);
  }

  const std::vector<Token>& tokens_;
  const ParserOptions& options_;
  std::vector<Issue>& issues_;
  std::unique_ptr<Ast> ast_ = std::make_unique<Ast>();
  std::size_t at_ = 0;
  std::vector<NodeId> operands_;
  std::vector<Waiting> waiting_;
  std::size_t depth_ = 0;
  std::size_t relation_depth_ = 0;
  std::size_t calculation_depth_ = 0;
  bool failed_ = false;
  bool syntax_error_ = false;
};

}  // namespace

std::unique_ptr<Ast> parse(std::string_view source, const ParserOptions& options,
                           std::vector<Issue>& issues) {
  const std::size_t length = code_points(source);
  if (length > kMaxCodePoints) {
    issues.push_back({kNoPosition, cat("expression code point size exceeds limit: size: ", length,
                                       ", limit ", kMaxCodePoints)});
    return nullptr;
  }
  const std::size_t before = issues.size();
  const std::vector<Token> tokens = tokenize(source, issues);
  Parser parser(tokens, options, issues);
  std::unique_ptr<Ast> ast = parser.run();
  if (parser.found_syntax_error()) report_syntax_errors(source, tokens, issues);
  // Both know the same grammar; should they ever differ, this one counts.
  if (ast == nullptr && issues.size() == before) issues.push_back({0, "Syntax error"});
  if (issues.size() == before) return ast;
  sort_issues(issues);
  return nullptr;
}

}  // namespace dibs::cel
