#include <algorithm>
#include <charconv>
#include <set>

#include "api/merge/selectors.h"
#include "base/names.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

std::string invalid(std::string_view field, std::string_view value, std::string_view detail) {
  return cat(field, ": Invalid value: ", quoted(value), ": ", detail);
}

std::optional<std::int64_t> to_integer(std::string_view text) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  if (text.empty() || text.front() == '+') return std::nullopt;
  std::int64_t number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// A list of faults as one text: alone as it stands, several in brackets.
std::string joined(const std::vector<std::string>& faults) {
  if (faults.size() == 1) return faults.front();
  return cat('[', join(faults, ", "), ']');
}

std::vector<std::string> requirement_faults(const LabelRequirement& requirement) {
  std::vector<std::string> faults;
  const auto key_faults = is_qualified_name(requirement.key);
  if (!key_faults.empty()) {
    faults.push_back(invalid("key", requirement.key, join(key_faults, "; ")));
  }
  const auto shown = [&] {
    std::string list = "[";
    for (std::size_t i = 0; i < requirement.values.size(); ++i) {
      append(list, i ? "," : "", quoted(requirement.values[i]));
    }
    return requirement.values.empty() ? std::string("null") : list + "]";
  };
  switch (requirement.op) {
    case LabelOperator::in:
    case LabelOperator::not_in:
      if (requirement.values.empty()) {
        faults.push_back(cat("values: Invalid value: ", shown(),
                             ": for 'in', 'notin' operators, values set can't be empty"));
      }
      break;
    case LabelOperator::exists:
    case LabelOperator::does_not_exist:
      if (!requirement.values.empty()) {
        faults.push_back(cat("values: Invalid value: ", shown(),
                             ": values set must be empty for exists and does not exist"));
      }
      break;
    case LabelOperator::greater_than:
    case LabelOperator::less_than:
      for (std::size_t i = 0; i < requirement.values.size(); ++i) {
        if (!to_integer(requirement.values[i])) {
          faults.push_back(invalid(cat("values[", i, ']'), requirement.values[i],
                                   "for 'Gt', 'Lt' operators, the value must be an integer"));
        }
      }
      break;
    default:
      break;
  }
  for (std::size_t i = 0; i < requirement.values.size(); ++i) {
    const auto value_faults = is_label_value(requirement.values[i]);
    if (!value_faults.empty()) {
      faults.push_back(invalid(cat("values[", i, "][", requirement.key, ']'), requirement.values[i],
                               join(value_faults, "; ")));
    }
  }
  return faults;
}

enum class Token : std::uint8_t {
  end,
  identifier,
  open,
  close,
  comma,
  bang,
  equals,
  double_equals,
  not_equals,
  greater,
  less,
  in,
  not_in,
  error,
};

struct Lexeme {
  Token token;
  std::string text;
};

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
bool is_special(char c) { return std::string_view("=!(),><").find(c) != std::string_view::npos; }

Token symbol_token(std::string_view text) {
  if (text == "=") return Token::equals;
  if (text == "==") return Token::double_equals;
  if (text == "!=") return Token::not_equals;
  if (text == "!") return Token::bang;
  if (text == "(") return Token::open;
  if (text == ")") return Token::close;
  if (text == ",") return Token::comma;
  if (text == ">") return Token::greater;
  if (text == "<") return Token::less;
  return Token::error;
}

class Parser {
 public:
  explicit Parser(std::string_view text) { scan(text); }

  Result<std::vector<LabelRequirement>> parse() {
    std::vector<LabelRequirement> requirements;
    while (true) {
      const Lexeme& first = peek();
      if (first.token == Token::end) return requirements;
      if (!starts_requirement(first.token)) {
        return fail("found '", first.text, "', expected: !, identifier, or 'end of string'");
      }
      auto requirement = parse_requirement();
      if (!requirement.ok()) return requirement.error().within("unable to parse requirement");
      requirements.push_back(std::move(requirement).value());
      const Lexeme& next = take();
      if (next.token == Token::end) return requirements;
      if (next.token != Token::comma) {
        return fail("found '", next.text, "', expected: ',' or 'end of string'");
      }
      if (!starts_requirement(peek().token)) {
        return fail("found '", peek().text, "', expected: identifier after ','");
      }
    }
  }

 private:
  // "in" and "notin" are plain words but where an operator is looked for.
  static bool is_word(Token token) {
    return token == Token::identifier || token == Token::in || token == Token::not_in;
  }
  static bool starts_requirement(Token token) { return is_word(token) || token == Token::bang; }

  template <typename... Pieces>
  static Error fail(const Pieces&... pieces) {
    return Error::bad_request(cat(pieces...));
  }

  // Ends at the end of the text or at a zero byte.
  void scan(std::string_view text) {
    text = text.substr(0, text.find('\0'));
    std::size_t at = 0;
    while (true) {
      while (at < text.size() && is_blank(text[at])) ++at;
      if (at == text.size()) break;
      const std::size_t begin = at;
      if (!is_special(text[at])) {
        while (at < text.size() && !is_special(text[at]) && !is_blank(text[at])) ++at;
        const std::string_view word = text.substr(begin, at - begin);
        const Token token = word == "in"      ? Token::in
                            : word == "notin" ? Token::not_in
                                              : Token::identifier;
        lexemes_.push_back({token, std::string(word)});
        continue;
      }
      // The longest run of symbols that is an operator: every symbol is one by itself.
      std::size_t length = 1;
      if (at + 1 < text.size() && symbol_token(text.substr(at, 2)) != Token::error) length = 2;
      lexemes_.push_back(
          {symbol_token(text.substr(at, length)), std::string(text.substr(at, length))});
      at += length;
    }
    lexemes_.push_back({Token::end, ""});
  }

  // The end is never passed: what follows it is the end again.
  const Lexeme& peek() const { return lexemes_[at_]; }
  const Lexeme& take() {
    const Lexeme& lexeme = lexemes_[at_];
    if (at_ + 1 < lexemes_.size()) ++at_;
    return lexeme;
  }

  Result<LabelRequirement> parse_requirement() {
    LabelRequirement requirement;
    const Lexeme* lexeme = &take();
    const bool negated = lexeme->token == Token::bang;
    if (negated) lexeme = &take();
    if (!is_word(lexeme->token)) return fail("found '", lexeme->text, "', expected: identifier");
    requirement.key = lexeme->text;
    const auto key_faults = is_qualified_name(requirement.key);
    if (!key_faults.empty()) {
      return fail(invalid("<nil>", requirement.key, join(key_faults, "; ")));
    }
    if (negated) {
      requirement.op = LabelOperator::does_not_exist;
      return requirement;
    }
    if (peek().token == Token::end || peek().token == Token::comma) {
      requirement.op = LabelOperator::exists;
      return requirement;
    }
    DIBS_TRY(requirement.op, parse_operator());
    if (requirement.op == LabelOperator::in || requirement.op == LabelOperator::not_in) {
      DIBS_TRY(requirement.values, parse_values());
    } else {
      DIBS_TRY(auto value, parse_value());
      requirement.values.push_back(std::move(value));
    }
    const auto faults = requirement_faults(requirement);
    if (!faults.empty()) return fail(joined(faults));
    return requirement;
  }

  Result<LabelOperator> parse_operator() {
    const Lexeme& lexeme = take();
    switch (lexeme.token) {
      case Token::in:
        return LabelOperator::in;
      case Token::not_in:
        return LabelOperator::not_in;
      case Token::equals:
        return LabelOperator::equals;
      case Token::double_equals:
        return LabelOperator::double_equals;
      case Token::not_equals:
        return LabelOperator::not_equals;
      case Token::greater:
        return LabelOperator::greater_than;
      case Token::less:
        return LabelOperator::less_than;
      default:
        return fail("found '", lexeme.text, "', expected: in, notin, =, ==, !=, gt, lt");
    }
  }

  // "(a,b)", where values may be empty: "()" and "(,)" hold one empty value.
  Result<std::vector<std::string>> parse_values() {
    const Lexeme& open = take();
    if (open.token != Token::open) return fail("found '", open.text, "' expected: '('");
    if (peek().token == Token::close) {
      take();
      return std::vector<std::string>{""};
    }
    if (!is_word(peek().token) && peek().token != Token::comma) {
      return fail("found '", peek().text, "', expected: ',', ')' or identifier");
    }
    std::set<std::string> values;
    while (true) {
      const Lexeme& lexeme = take();
      if (is_word(lexeme.token)) {
        values.insert(lexeme.text);
        if (peek().token == Token::comma) continue;
        if (peek().token == Token::close) break;
        return fail("found '", peek().text, "', expected: ',' or ')'");
      }
      if (lexeme.token != Token::comma) {
        return fail("found '", lexeme.text, "', expected: ',', or identifier");
      }
      if (values.empty() || peek().token == Token::comma || peek().token == Token::close) {
        values.insert("");
      }
      if (peek().token == Token::close) break;
    }
    take();
    return std::vector<std::string>(values.begin(), values.end());
  }

  Result<std::string> parse_value() {
    if (peek().token == Token::end || peek().token == Token::comma) return std::string();
    const Lexeme& lexeme = take();
    if (!is_word(lexeme.token)) return fail("found '", lexeme.text, "', expected: identifier");
    return lexeme.text;
  }

  std::vector<Lexeme> lexemes_;
  std::size_t at_ = 0;
};

std::string_view spelling(LabelOperator op) {
  switch (op) {
    case LabelOperator::equals:
      return "=";
    case LabelOperator::double_equals:
      return "==";
    case LabelOperator::not_equals:
      return "!=";
    case LabelOperator::in:
      return " in ";
    case LabelOperator::not_in:
      return " notin ";
    case LabelOperator::greater_than:
      return ">";
    case LabelOperator::less_than:
      return "<";
    default:
      return "";
  }
}

std::optional<LabelOperator> expression_operator(std::string_view name) {
  if (name == "In") return LabelOperator::in;
  if (name == "NotIn") return LabelOperator::not_in;
  if (name == "Exists") return LabelOperator::exists;
  if (name == "DoesNotExist") return LabelOperator::does_not_exist;
  return std::nullopt;
}

}  // namespace

bool LabelRequirement::matches(const std::string_view* value) const {
  const auto has_value = [&] {
    return std::find(values.begin(), values.end(), *value) != values.end();
  };
  switch (op) {
    case LabelOperator::equals:
    case LabelOperator::double_equals:
    case LabelOperator::in:
      return value != nullptr && has_value();
    case LabelOperator::not_equals:
    case LabelOperator::not_in:
      return value == nullptr || !has_value();
    case LabelOperator::exists:
      return value != nullptr;
    case LabelOperator::does_not_exist:
      return value == nullptr;
    case LabelOperator::greater_than:
    case LabelOperator::less_than: {
      if (value == nullptr || values.size() != 1) return false;
      const auto left = to_integer(*value);
      const auto right = to_integer(values.front());
      if (!left || !right) return false;
      return op == LabelOperator::greater_than ? *left > *right : *left < *right;
    }
  }
  return false;
}

LabelSelector LabelSelector::nothing() {
  LabelSelector selector;
  selector.nothing_ = true;
  return selector;
}

LabelSelector::LabelSelector(std::vector<LabelRequirement> requirements)
    : requirements_(std::move(requirements)) {
  const auto less = [](const LabelRequirement& a, const LabelRequirement& b) {
    return a.key < b.key;
  };
  std::stable_sort(requirements_.begin(), requirements_.end(), less);
}

bool LabelSelector::matches(const Value& labels) const {
  if (nothing_) return false;
  for (const LabelRequirement& requirement : requirements_) {
    const Value* found = labels.find(requirement.key);
    std::string_view text;
    if (found != nullptr) text = found->as_string();
    if (!requirement.matches(found != nullptr ? &text : nullptr)) return false;
  }
  return true;
}

std::string LabelSelector::str() const {
  std::string out;
  for (const LabelRequirement& requirement : requirements_) {
    if (!out.empty()) out.push_back(',');
    if (requirement.op == LabelOperator::does_not_exist) out.push_back('!');
    append(out, requirement.key, spelling(requirement.op));
    const bool list =
        requirement.op == LabelOperator::in || requirement.op == LabelOperator::not_in;
    if (list) out.push_back('(');
    auto values = requirement.values;
    std::sort(values.begin(), values.end());
    out.append(join(values, ","));
    if (list) out.push_back(')');
  }
  return out;
}

Result<LabelSelector> parse_label_selector(std::string_view text) {
  DIBS_TRY(auto requirements, Parser(text).parse());
  return LabelSelector(std::move(requirements));
}

Result<LabelSelector> to_label_selector(const Value& selector) {
  if (!selector.is_object()) return LabelSelector::nothing();
  std::vector<LabelRequirement> requirements;
  for (const auto& [key, value] : selector["matchLabels"].members()) {
    requirements.push_back({std::string(key), LabelOperator::equals, {value.str()}});
  }
  for (const Value& expression : selector["matchExpressions"].items()) {
    const std::string_view name = expression["operator"].as_string();
    const auto op = expression_operator(name);
    if (!op) return Error::plain(cat(quoted(name), " is not a valid label selector operator"));
    LabelRequirement requirement{expression["key"].str(), *op, {}};
    for (const Value& value : expression["values"].items()) {
      requirement.values.push_back(value.str());
    }
    requirements.push_back(std::move(requirement));
  }
  for (const LabelRequirement& requirement : requirements) {
    const auto faults = requirement_faults(requirement);
    if (!faults.empty()) return Error::plain(joined(faults));
  }
  return LabelSelector(std::move(requirements));
}

}  // namespace dibs::api
