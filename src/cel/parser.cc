#include "cel/parser.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "cel/lexer.h"
#include "cel/macros.h"
#include "cel/operations.h"

namespace dibs::cel {

namespace {

constexpr std::size_t kMaxDepth = 250;
constexpr std::size_t kMaxCodePoints = 100'000;

constexpr std::string_view kReserved[] = {
    "as",  "break", "const",   "continue",  "else",   "for", "function", "if",   "import",
    "let", "loop",  "package", "namespace", "return", "var", "void",     "while"};

struct Operator {
  std::string_view token;
  std::string_view function;
  int level;
};

constexpr Operator kOperators[] = {{"<", "_<_", 1},  {"<=", "_<=_", 1}, {">=", "_>=_", 1},
                                   {">", "_>_", 1},  {"==", "_==_", 1}, {"!=", "_!=_", 1},
                                   {"in", "@in", 1}, {"+", "_+_", 2},   {"-", "_-_", 2},
                                   {"*", "_*_", 3},  {"/", "_/_", 3},   {"%", "_%_", 3}};

/// By recursive descent. After a syntax error every function returns at once: failed_ is checked
/// where tokens are consumed in loops, and the tree made so far is dropped.
class Parser {
 public:
  Parser(std::vector<Token> tokens, const ParserOptions& options, std::vector<Issue>& issues)
      : tokens_(std::move(tokens)), options_(options), issues_(issues) {}

  std::unique_ptr<Ast> run() {
    ast_->root = expression();
    if (!failed_ && peek().kind != TokenKind::end) syntax_error();
    if (ast_->too_high() && !failed_) recursion_error();
    if (!issues_.empty()) return nullptr;
    return std::move(ast_);
  }

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
    if (!take(punctuation)) syntax_error(punctuation);
  }

  NodeId syntax_error(std::string_view expected = {}) {
    if (!failed_) {
      const Token& token = peek();
      const std::string_view found = token.kind == TokenKind::end ? "<EOF>" : token.text;
      issues_.push_back({token.position, expected.empty()
                                             ? cat("Syntax error: mismatched input '", found, "'")
                                             : cat("Syntax error: mismatched input '", found,
                                                   "' expecting '", expected, "'")});
      failed_ = true;
    }
    return stub();
  }

  void recursion_error() {
    if (!failed_) issues_.push_back({0, cat("expression recursion limit exceeded: ", kMaxDepth)});
    failed_ = true;
  }

  NodeId stub() { return ast_->add_constant(Value::null(), peek().position); }

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
    if (failed_) return stub();
    if (depth_ >= kMaxDepth) {
      recursion_error();
      return stub();
    }
    ++depth_;
    NodeId made = logical("||", "_||_");
    if (!failed_ && is("?")) {
      const std::uint32_t position = peek().position;
      ++at_;
      const NodeId yes = logical("||", "_||_");
      expect(":");
      const NodeId no = expression();
      made = call("_?_:_", position, {made, yes, no});
    }
    --depth_;
    return made;
  }

  NodeId logical(std::string_view token, std::string_view function) {
    const bool is_or = token == "||";
    const auto operand = [&] { return is_or ? logical("&&", "_&&_") : binary(1); };
    NodeId first = operand();
    if (failed_ || !is(token)) return first;
    const std::uint32_t position = peek().position;
    std::vector<NodeId> terms{first};
    while (take(token)) terms.push_back(operand());
    return call(function, position, terms);
  }

  const Operator* peek_operator(int level) const {
    if (peek().kind != TokenKind::punctuation && peek().kind != TokenKind::kw_in) return nullptr;
    for (const Operator& candidate : kOperators) {
      if (candidate.level == level && candidate.token == peek().text) return &candidate;
    }
    return nullptr;
  }

  NodeId binary(int level) {
    if (level > 3) return unary();
    NodeId left = binary(level + 1);
    while (!failed_) {
      const Operator* found = peek_operator(level);
      if (found == nullptr) break;
      const std::uint32_t position = peek().position;
      ++at_;
      const NodeId right = binary(level + 1);
      left = call(found->function, position, {left, right});
      if (ast_->too_high()) recursion_error();
    }
    return left;
  }

  NodeId unary() {
    if (failed_) return stub();
    const std::string_view sign = is("!") ? "!" : is("-") ? "-" : "";
    if (sign.empty()) return member(primary());
    const std::uint32_t position = peek().position;
    std::size_t count = 0;
    while (take(sign)) ++count;
    const bool odd = count % 2 == 1;
    if (sign == "-" && odd &&
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
        const bool optional = optional_mark();
        const NodeId index = expression();
        expect("]");
        operand = call(optional ? "_[?_]" : "_[_]", position, {operand, index});
      } else if (is("{") && is_name(operand)) {
        operand = message(operand);
      } else {
        break;
      }
      if (ast_->too_high()) recursion_error();
    }
    return operand;
  }

  NodeId dot(NodeId operand, std::uint32_t position) {
    AstNode node;
    node.kind = NodeKind::select;
    node.position = position;
    node.optional = optional_mark();
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

  bool optional_mark() {
    if (!is("?")) return false;
    if (!options_.optional_syntax) issue(peek().position, "unsupported syntax '?'");
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
    if (failed_) return stub();
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
      const NodeId key = ast_->add_constant(Value::string(std::string(field.text)), field.position);
      children.push_back(optional ? key | Ast::kOptionalBit : key);
      expect(":");
      children.push_back(expression());
      if (!take(",") && !is("}")) return syntax_error("}");
    }
    return ast_->add(node, children);
  }

  NodeId primary() {
    if (failed_) return stub();
    const Token token = peek();
    switch (token.kind) {
      case TokenKind::integer:
      case TokenKind::uinteger:
      case TokenKind::real:
        return number(false, token.position);
      case TokenKind::string:
      case TokenKind::bytes: {
        Value value;
        std::string message;
        if (!parse_text(token, value, message)) issue(token.position, message);
        ++at_;
        return ast_->add_constant(std::move(value), token.position);
      }
      case TokenKind::kw_true:
      case TokenKind::kw_false:
        ++at_;
        return ast_->add_constant(Value::boolean(token.kind == TokenKind::kw_true), token.position);
      case TokenKind::kw_null:
        ++at_;
        return ast_->add_constant(Value::null(), token.position);
      case TokenKind::ident:
        return ident(false, token.position);
      case TokenKind::punctuation:
        break;
      default:
        return syntax_error();
    }
    if (take(".")) {
      if (peek().kind != TokenKind::ident) return syntax_error();
      return ident(true, token.position);
    }
    if (take("(")) {
      const NodeId made = expression();
      expect(")");
      return made;
    }
    if (is("[")) return list();
    if (is("{")) return map();
    return syntax_error();
  }

  NodeId ident(bool rooted, std::uint32_t position) {
    const Token name = peek();
    ++at_;
    if (std::find(std::begin(kReserved), std::end(kReserved), name.text) != std::end(kReserved))
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
      if (!take(",") && !is("]")) return syntax_error("]");
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
      if (!take(",") && !is("}")) return syntax_error("}");
    }
    return ast_->add(node, entries);
  }

  std::vector<Token> tokens_;
  const ParserOptions& options_;
  std::vector<Issue>& issues_;
  std::unique_ptr<Ast> ast_ = std::make_unique<Ast>();
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  bool failed_ = false;
};

}  // namespace

std::unique_ptr<Ast> parse(std::string_view source, const ParserOptions& options,
                           std::vector<Issue>& issues) {
  const std::size_t length = code_points(source);
  if (length > kMaxCodePoints) {
    issues.push_back({0, cat("expression code point size exceeds limit: size: ", length, ", limit ",
                             kMaxCodePoints)});
    return nullptr;
  }
  std::vector<Token> tokens = tokenize(source, issues);
  if (!issues.empty()) return nullptr;
  return Parser(std::move(tokens), options, issues).run();
}

}  // namespace dibs::cel
