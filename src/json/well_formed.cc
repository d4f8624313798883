#include "json/well_formed.h"

#include <vector>

#include "base/characters.h"

namespace dibs::json {
namespace {

class Scan {
 public:
  Scan(std::string_view text, std::size_t max_depth) : text_(text), max_depth_(max_depth) {}

  bool whole() {
    if (!value()) return false;
    while (!open_.empty()) {
      if (!rest_of_container()) return false;
    }
    blanks();
    return at_ == text_.size();
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char wanted) {
    if (peek() != wanted || at_ == text_.size()) return false;
    ++at_;
    return true;
  }
  void blanks() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) {
      ++at_;
    }
  }

  /// A scalar, or the start of a container up to its first value or its end.
  bool value() {
    while (true) {
      blanks();
      switch (peek()) {
        case '"':
          return string();
        case 't':
          return word("true");
        case 'f':
          return word("false");
        case 'n':
          return word("null");
        case '{':
        case '[':
          break;
        default:
          return number();
      }
      const bool object = text_[at_++] == '{';
      if (open_.size() == max_depth_) return false;
      blanks();
      if (take(object ? '}' : ']')) return true;
      open_.push_back(object);
      if (object && !name()) return false;
    }
  }

  /// Behind a value inside of a container: its end, or the next value.
  bool rest_of_container() {
    blanks();
    const bool object = open_.back();
    if (take(object ? '}' : ']')) {
      open_.pop_back();
      return true;
    }
    if (!take(',')) return false;
    if (object) {
      blanks();
      if (!name()) return false;
    }
    return value();
  }

  bool name() {
    if (peek() != '"' || !string()) return false;
    blanks();
    return take(':');
  }

  bool string() {
    for (++at_; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '"') {
        ++at_;
        return true;
      }
      if (static_cast<unsigned char>(c) < 0x20) return false;
      if (c == '\\' && !escape()) return false;
    }
    return false;
  }

  /// Leaves `at_` on its last character.
  bool escape() {
    if (++at_ == text_.size()) return false;
    if (text_[at_] != 'u') return std::string_view("\"\\/bfnrt").find(text_[at_]) != npos;
    for (int i = 0; i < 4; ++i) {
      if (++at_ == text_.size() || !is_hex_digit(text_[at_])) return false;
    }
    return true;
  }

  bool word(std::string_view wanted) {
    if (text_.substr(at_, wanted.size()) != wanted) return false;
    at_ += wanted.size();
    return true;
  }

  bool digits() {
    const std::size_t begin = at_;
    while (is_digit(peek())) ++at_;
    return at_ > begin;
  }

  bool number() {
    take('-');
    if (!take('0') && !digits()) return false;
    if (take('.') && !digits()) return false;
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      return digits();
    }
    return true;
  }

  static constexpr auto npos = std::string_view::npos;

  const std::string_view text_;
  const std::size_t max_depth_;
  std::size_t at_ = 0;
  std::vector<bool> open_;  // containers around: whether each is an object
};

}  // namespace

bool is_well_formed(std::string_view text, std::size_t max_depth) {
  return Scan(text, max_depth).whole();
}

}  // namespace dibs::json
