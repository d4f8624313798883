#include "cel/parse/syntax_errors.h"

#include <algorithm>
#include <set>
#include <string>

#include "base/strings.h"
#include "cel/parse/syntax_terminals.h"

namespace dibs::cel {

namespace {

constexpr int kMostReports = 100;
constexpr int kMostRecoveries = 30;
constexpr int kMostSkipped = 256;
/// The real parser has its own bound; this one only keeps the walk from running out of stack.
constexpr int kMostNested = 250;

/// One method per rule of the grammar. A method that meets an error reports it, skips to what may
/// follow the rule, and returns; its caller goes on as if nothing had happened. The numbers are
/// places in the grammar: an error twice at one place and token moves on by a token.
class Recognizer {
 public:
  Recognizer(std::string_view source, const std::vector<Token>& tokens, std::vector<Issue>& issues)
      : source_(source), tokens_(tokens), issues_(issues) {
    for (const Token& token : tokens) terminals_.push_back(terminal_of(token));
  }

  void start() {
    rule({0, false}, [&] {
      call(1, {set({kEnd}), false}, &Recognizer::expression);
      match(2, kEnd);
    });
    issues_.insert(issues_.end(), late_.begin(), late_.end());
  }

 private:
  /// What may follow a rule where it was called; `through`: and whatever follows the caller.
  struct Follow {
    Set tokens = 0;
    bool through = false;
  };
  enum class Fault { none, mismatch, no_alternative };

  Terminal ahead(std::size_t i = 1) const {
    return terminals_[std::min(at_ + i - 1, terminals_.size() - 1)];
  }
  void consume() {
    if (skipped_ >= 0 && ++skipped_ > kMostSkipped) {
      stop(cat("error recovery token lookahead limit exceeded: ", kMostSkipped));
      return;
    }
    if (at_ + 1 < terminals_.size()) ++at_;
  }
  void stop(std::string message) {
    if (!stopped_) issues_.push_back({kNoPosition, std::move(message)});
    stopped_ = true;
  }

  template <typename Body>
  void rule(Follow follow, Body body) {
    if (stopped_) return;
    if (depth_ > kMostNested * 8) {
      stop(cat("expression recursion limit exceeded: ", kMostNested));
      return;
    }
    ++depth_;
    follows_.push_back(follow);
    const int place = place_;
    body();
    if (fault_ != Fault::none && !stopped_) {
      report();
      recover();
    }
    fault_ = Fault::none;
    place_ = place;
    follows_.pop_back();
    --depth_;
  }
  void call(int place, Follow follow, void (Recognizer::*method)()) {
    place_ = place;
    rule(follow, [&] { (this->*method)(); });
  }
  bool failed() const { return fault_ != Fault::none || stopped_; }

  // Errors.

  void notify(std::size_t token, std::string message) {
    const std::uint32_t position = tokens_[std::min(token, tokens_.size() - 1)].position;
    if (++reports_ > kMostReports) {
      issues_.push_back(
          {position, cat("Syntax error: More than ", kMostReports, " syntax errors")});
      stopped_ = true;
      return;
    }
    issues_.push_back({position, cat("Syntax error: ", message)});
  }

  static std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text) {
      if (c == '\n')
        out += "\\n";
      else if (c == '\r')
        out += "\\r";
      else if (c == '\t')
        out += "\\t";
      else
        out += c;
    }
    return out;
  }
  std::string shown() const {
    return ahead() == kEnd ? "'<EOF>'" : cat("'", escaped(tokens_[at_].text), "'");
  }
  static std::string listed(Set set) {
    std::string out;
    int count = 0;
    for (int i = 0; i < kTerminals; ++i) {
      if (!has(set, static_cast<Terminal>(i))) continue;
      append(out, count++ == 0 ? "" : ", ", kTerminalNames[i]);
    }
    return count == 1 ? out : cat("{", out, "}");
  }

  void report() {
    if (recovering_) return;
    recovering_ = true;
    if (fault_ == Fault::mismatch) {
      notify(at_, cat("mismatched input ", shown(), " expecting ", listed(expected_)));
      return;
    }
    const std::size_t last = std::min(at_ + offending_ - 1, tokens_.size() - 1);
    std::string text = "<EOF>";
    if (ahead() != kEnd) {
      text.clear();
      for (std::size_t i = at_; i <= last && terminals_[i] != kEnd; ++i) {
        append(text, tokens_[i].text);
        // Blanks are tokens there, and part of the text; what is no token is not.
        if (i < last) append(text, blanks_behind(i));
      }
    }
    const bool word = text.size() > 1 && (text.substr(1) == "true" || text.substr(1) == "false" ||
                                          text.substr(1) == "null");
    if (word)
      notify(last, cat("mismatched input '", text.substr(1), "' expecting IDENTIFIER"));
    else
      notify(last, cat("no viable alternative at input '", escaped(text), "'"));
  }

  std::string blanks_behind(std::size_t token) const {
    const std::string_view text = tokens_[token].text;
    std::size_t at = static_cast<std::size_t>(text.data() + text.size() - source_.data());
    const std::string_view next = tokens_[token + 1].text;
    const std::size_t end = terminals_[token + 1] == kEnd
                                ? source_.size()
                                : static_cast<std::size_t>(next.data() - source_.data());
    std::string blanks;
    for (; at < end; ++at) {
      if (std::string_view(" \t\r\n\f").find(source_[at]) != std::string_view::npos)
        blanks += source_[at];
    }
    return blanks;
  }

  bool attempt() {
    if (recoveries_++ < kMostRecoveries) return true;
    notify(at_, cat("error recovery attempt limit exceeded: ", kMostRecoveries));
    stopped_ = true;
    return false;
  }

  Set recovery_set() const {
    Set all = 0;
    for (const Follow& follow : follows_) all |= follow.tokens;
    return all;
  }
  void skip_to(Set wanted) {
    while (!stopped_ && ahead() != kEnd && !has(wanted, ahead())) consume();
  }

  void recover() {
    if (!attempt()) return;
    skipped_ = 0;
    if (last_error_ == static_cast<std::ptrdiff_t>(at_) && error_places_.contains(place_))
      consume();
    last_error_ = static_cast<std::ptrdiff_t>(at_);
    error_places_.insert(place_);
    skip_to(recovery_set());
    skipped_ = -1;
  }

  void matched() {
    recovering_ = false;
    last_error_ = -1;
    error_places_.clear();
  }

  /// What may come once a rule has ended here.
  Set follow_in_context() const {
    Set all = 0;
    for (std::size_t i = follows_.size(); i > 0; --i) {
      all |= follows_[i - 1].tokens;
      if (!follows_[i - 1].through) return all;
    }
    return all | set({kEnd});
  }

  void unwanted(Set expected) {
    if (recovering_) return;
    recovering_ = true;
    notify(at_, cat("extraneous input ", shown(), " expecting ", listed(expected)));
  }

  /// Drops a token when the one behind it would do.
  bool delete_one(Set expected) {
    if (!has(expected, ahead(2))) return false;
    unwanted(expected);
    consume();
    matched();
    return true;
  }

  void mismatch(Set expected) {
    fault_ = Fault::mismatch;
    expected_ = expected;
  }
  /// `offending`: which of the tokens ahead fits none.
  void no_alternative(std::size_t offending) {
    fault_ = Fault::no_alternative;
    offending_ = offending;
  }

  /// `next`: what may come behind the terminal; `ends`: the rule may end there.
  void match(int place, Terminal terminal, Set next = 0, bool ends = false) {
    match_any(place, set({terminal}), next, ends);
  }
  void match_any(int place, Set wanted, Set next = 0, bool ends = false) {
    if (failed()) return;
    place_ = place;
    if (has(wanted, ahead())) {
      matched();
      // The end stays where it is.
      if (ahead() != kEnd) ++at_;
      return;
    }
    if (!attempt()) return;
    skipped_ = 0;
    if (delete_one(wanted)) {
      consume();
    } else if (has(next | (ends ? follow_in_context() : 0), ahead())) {
      if (!recovering_) {
        recovering_ = true;
        notify(at_, cat("missing ", listed(wanted), " at ", shown()));
      }
    } else {
      mismatch(wanted);
    }
    skipped_ = -1;
  }

  /// Before a choice that must be made: a token that fits no branch is dropped or is an error.
  void expect_one_of(int place, Set wanted) {
    if (failed()) return;
    place_ = place;
    if (recovering_ || has(wanted, ahead())) return;
    if (!delete_one(wanted)) mismatch(wanted);
  }
  /// The same where a loop may go on.
  void expect_again(int place, Set wanted) {
    if (failed()) return;
    place_ = place;
    if (recovering_ || has(wanted, ahead())) return;
    unwanted(wanted);
    skip_to(wanted | recovery_set());
  }

  // Rules.

  void expression() {
    call(37, {set({kQuestion}), true}, &Recognizer::disjunction);
    if (ahead() != kQuestion) return;
    match(38, kQuestion);
    if (failed()) return;
    call(39, {set({kColon}), false}, &Recognizer::disjunction);
    match(40, kColon, kExpressions);
    if (failed()) return;
    call(41, {0, true}, &Recognizer::expression);
  }

  void disjunction() {
    call(45, {set({kOr}), true}, &Recognizer::conjunction);
    while (!failed() && ahead() == kOr) {
      match(46, kOr);
      call(47, {set({kOr}), true}, &Recognizer::conjunction);
    }
  }

  void conjunction() {
    call(53, {set({kAnd}), true}, &Recognizer::any_relation);
    while (!failed() && ahead() == kAnd) {
      match(54, kAnd);
      call(55, {set({kAnd}), true}, &Recognizer::any_relation);
    }
  }

  void any_relation() { relation(true); }
  void one_operand() { relation(false); }
  void relation(bool operators) {
    call(62, {kRelations, true}, &Recognizer::any_calculation);
    while (operators && !failed() && has(kRelations, ahead())) {
      match_any(65, kRelations);
      call(66, {kRelations, true}, &Recognizer::one_operand);
    }
  }

  void any_calculation() { calculation(kProducts | kSums); }
  void product() { calculation(kProducts); }
  void factor() { calculation(0); }
  void calculation(Set operators) {
    call(73, {kProducts | kSums, true}, &Recognizer::unary);
    while (!failed() && has(operators, ahead())) {
      const bool sum = has(kSums, ahead());
      match_any(sum ? 79 : 76, sum ? kSums : kProducts);
      call(sum ? 80 : 77, {kProducts | kSums, true},
           sum ? &Recognizer::product : &Recognizer::factor);
    }
  }

  void unary() {
    expect_one_of(99, kExpressions);
    if (failed()) return;
    if (!has(kExpressions, ahead())) return no_alternative(1);
    if (ahead() == kNot) {
      do {
        match(87, kNot);
        expect_again(90, kExpressions);
      } while (!failed() && ahead() == kNot);
    } else if (ahead() == kMinus && ahead(2) != kInt && ahead(2) != kFloat) {
      if (!has(kPrimaries, ahead(2))) return no_alternative(2);
      do {
        match(93, kMinus);
        expect_again(96, kPrimaries);
        if (failed()) return;
        if (!has(kPrimaries, ahead())) return no_alternative(1);
        if (ahead() == kMinus && !has(kPrimaries, ahead(2))) return no_alternative(2);
      } while (ahead() == kMinus);
    }
    if (failed()) return;
    call(98, {0, true}, &Recognizer::member);
  }

  void member() {
    const Follow more{set({kDot, kOpenBracket}), true};
    call(102, more, &Recognizer::primary);
    while (!failed() && has(more.tokens, ahead())) {
      if (ahead() == kOpenBracket) {
        match(119, kOpenBracket);
        expect_one_of(121, kElements);
        if (!failed() && ahead() == kQuestion) match(120, kQuestion);
        if (failed()) return;
        call(123, {set({kCloseBracket}), false}, &Recognizer::expression);
        match(124, kCloseBracket, more.tokens, true);
        continue;
      }
      if (!has(kFields, ahead(2))) {
        place_ = 126;
        return no_alternative(2);
      }
      match(105, kDot);
      if (ahead() == kIdent && ahead(2) == kOpenParen) {
        match(112, kIdent);
        arguments(115);
        continue;
      }
      if (ahead() == kQuestion) match(106, kQuestion);
      if (failed()) return;
      call(109, more, &Recognizer::identifier);
    }
  }

  /// '(' and a list of expressions and ')'.
  void arguments(int place) {
    match(place - 2, kOpenParen);
    expect_one_of(place, kExpressions | set({kCloseParen}));
    if (failed()) return;
    if (has(kExpressions, ahead()))
      call(place - 1, {set({kCloseParen}), false}, &Recognizer::expression_list);
    match(place + 2, kCloseParen, place == 115 ? set({kDot, kOpenBracket}) : 0, true);
  }

  /// Where the names of a message's type end, counted in tokens ahead; 0 when there is no message.
  std::size_t message_brace() const {
    std::size_t i = ahead() == kDot ? 2 : 1;
    while (ahead(i) == kIdent) {
      if (ahead(i + 1) == kOpenBrace) return i + 1;
      if (ahead(i + 1) != kDot) return 0;
      i += 2;
    }
    return 0;
  }

  void primary() {
    expect_one_of(184, kPrimaries);
    if (failed()) return;
    switch (ahead()) {
      case kOpenParen:
        match(144, kOpenParen);
        call(145, {set({kCloseParen}), false}, &Recognizer::expression);
        match(146, kCloseParen, 0, true);
        return;
      case kOpenBracket:
        match(148, kOpenBracket);
        aggregate(150, kElements, kCloseBracket, &Recognizer::elements);
        return;
      case kOpenBrace:
        match(156, kOpenBrace);
        aggregate(158, kElements, kCloseBrace, &Recognizer::entries);
        return;
      case kDot:
      case kIdent:
        name();
        return;
      default:
        if (!has(kPrimaries, ahead())) return no_alternative(1);
        call(183, {0, true}, &Recognizer::literal);
    }
  }

  void name() {
    if (ahead() == kDot && ahead(2) != kIdent) return no_alternative(2);
    const bool message = message_brace() > 0;
    if (ahead() == kDot) match(131, kDot);
    match(134, kIdent);
    if (message) {
      while (ahead() == kDot) {
        match(168, kDot);
        match(169, kIdent);
      }
      match(175, kOpenBrace);
      aggregate(177, kFields, kCloseBrace, &Recognizer::fields);
    } else if (ahead() == kOpenParen) {
      arguments(141);
    }
  }

  /// What is between brackets or braces: the content, a comma, and the end.
  void aggregate(int place, Set first, Terminal end, void (Recognizer::*content)()) {
    expect_one_of(place, first | set({kComma, end}));
    if (failed()) return;
    if (has(first, ahead())) call(place - 1, {set({kComma, end}), false}, content);
    expect_one_of(place + 3, set({kComma, end}));
    if (failed()) return;
    if (ahead() == kComma) match(place + 2, kComma);
    match(place + 5, end, 0, true);
  }

  void expression_list() {
    call(186, {set({kComma}), true}, &Recognizer::expression);
    while (!failed() && ahead() == kComma) {
      match(187, kComma);
      call(188, {set({kComma}), true}, &Recognizer::expression);
    }
  }

  void elements() {
    call(194, {set({kComma}), true}, &Recognizer::element);
    while (!failed() && ahead() == kComma && has(kElements, ahead(2))) {
      match(195, kComma);
      call(196, {set({kComma}), true}, &Recognizer::element);
    }
  }

  void element() {
    expect_one_of(238, kElements);
    if (!failed() && ahead() == kQuestion) match(237, kQuestion);
    if (failed()) return;
    call(240, {0, true}, &Recognizer::expression);
  }

  void entries() { pairs(220, kElements, &Recognizer::element); }
  void fields() { pairs(202, kFields, &Recognizer::field); }
  void pairs(int place, Set first, void (Recognizer::*key)()) {
    for (int offset = 0;; offset = 3) {
      call(place + offset + (offset > 0 ? 1 : 0), {set({kColon}), false}, key);
      match(place + offset + 1, kColon, kExpressions);
      if (failed()) return;
      call(place + offset + 2, {set({kComma}), true}, &Recognizer::expression);
      if (failed() || ahead() != kComma || !has(first, ahead(2))) return;
      match(place + 3, kComma);
    }
  }

  void field() {
    const std::uint32_t begin = tokens_[at_].position;
    const std::size_t before = late_.size();
    expect_one_of(216, kFields);
    if (!failed() && ahead() == kQuestion) match(215, kQuestion);
    if (failed()) return;
    call(218, {0, true}, &Recognizer::identifier);
    if (late_.size() > before) late_.back().position = begin;
  }

  void identifier() {
    const std::size_t begin = at_;
    expect_one_of(235, set({kIdent, kQuotedIdent}));
    if (!failed() && !has(set({kIdent, kQuotedIdent}), ahead())) no_alternative(1);
    match_any(233, set({kIdent, kQuotedIdent}));
    // What then reads the tree stumbles over it, too.
    if (failed() && !stopped_) late_.push_back({tokens_[begin].position, "unsupported ident kind"});
  }

  void literal() {
    if (ahead() == kMinus) {
      place_ = 256;
      if (ahead(2) != kInt && ahead(2) != kFloat) return no_alternative(2);
      match(242, kMinus);
    }
    match_any(245, kPrimaries);
  }

  const std::string_view source_;
  const std::vector<Token>& tokens_;
  std::vector<Issue>& issues_;
  std::vector<Terminal> terminals_;
  std::vector<Issue> late_;
  std::vector<Follow> follows_;
  std::size_t at_ = 0;
  int place_ = 0;
  int depth_ = 0;

  Fault fault_ = Fault::none;
  Set expected_ = 0;
  std::size_t offending_ = 1;
  bool recovering_ = false;
  bool stopped_ = false;
  std::ptrdiff_t last_error_ = -1;
  std::set<int> error_places_;
  int reports_ = 0;
  int recoveries_ = 0;
  int skipped_ = -1;  // tokens dropped in this recovery; negative: in none
};

}  // namespace

void report_syntax_errors(std::string_view source, const std::vector<Token>& tokens,
                          std::vector<Issue>& issues) {
  Recognizer(source, tokens, issues).start();
}

}  // namespace dibs::cel
