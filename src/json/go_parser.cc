#include "json/go_parser.h"

#include <charconv>
#include <unordered_set>

#include "base/strings.h"
#include "json/builder.h"
#include "json/number.h"

namespace dibs::json {
namespace {

constexpr std::size_t kMostDuplicates = 100;

struct Frame {
  Value container;
  Value key;              // of the member that is being read
  bool repeated = false;  // that key was there before
};

class Parser {
 public:
  Parser(std::string_view text, const ParseOptions& options) : text_(text), options_(options) {}

  Result<Value> run() {
    // The bool says whether a value was begun (a container) or is whole.
    while (true) {
      skip_blanks();
      Value value;
      if (!begin_value(value)) return fault();
      if (opened_) continue;
      // A whole value: hand it up, closing containers as they end.
      while (true) {
        if (frames_.empty()) {
          skip_blanks();
          if (at_ < text_.size()) return unexpected("after top-level value");
          if (!late_error_.empty()) return Error::bad_request(late_error_);
          return value;
        }
        attach(std::move(value));
        Step step = next_in_container(value);
        if (step == Step::fault) return fault();
        if (step == Step::value) break;
      }
    }
  }

 private:
  enum class Step { value, closed, fault };

  Error fault() const { return Error::bad_request(message_); }
  Error unexpected(std::string_view context) {
    fail(context);
    return fault();
  }

  // Notes the message for the character here, or for the end of the text.
  bool fail(std::string_view context) {
    message_ = at_ >= text_.size()
                   ? "unexpected end of JSON input"
                   : cat("invalid character ", quoted_character(text_[at_]), ' ', context);
    return false;
  }

  static std::string quoted_character(char c) {
    if (c == '\'') return "'\\''";
    if (c == '"') return "'\"'";
    std::string out;
    append_utf8(out, static_cast<unsigned char>(c));
    std::string quote = quoted(out);
    quote.front() = quote.back() = '\'';
    return quote;
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool at_end() const { return at_ >= text_.size(); }

  void skip_blanks() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c != ' ' && c != '\t' && c != '\n' && c != '\r') return;
      ++at_;
    }
  }

  // Reads a scalar or an empty container into `value`, or opens a container (opened_).
  bool begin_value(Value& value) {
    opened_ = false;
    if (at_end()) return fail("looking for beginning of value");
    switch (peek()) {
      case '{':
        return open(Kind::object, value);
      case '[':
        return open(Kind::array, value);
      case '"': {
        std::string text;
        if (!read_string(text)) return false;
        value = Value(text);
        return true;
      }
      case 't':
        value = true;
        return read_literal("true");
      case 'f':
        value = false;
        return read_literal("false");
      case 'n':
        value = nullptr;
        return read_literal("null");
      default:
        break;
    }
    if (peek() == '-' || is_digit()) return read_number(value);
    return fail("looking for beginning of value");
  }

  bool open(Kind kind, Value& value) {
    if (frames_.size() >= options_.max_depth) {
      message_ = "exceeded max depth";
      return false;
    }
    ++at_;
    skip_blanks();
    if (peek() == (kind == Kind::object ? '}' : ']') && !at_end()) {
      ++at_;
      value = Builder::make(kind, 0);
      return true;
    }
    frames_.push_back({Builder::make(kind, 0), {}, false});
    opened_ = true;
    return kind == Kind::array || read_key();
  }

  // The value that follows is due (value), or the container is whole and now in `value` (closed).
  Step next_in_container(Value& value) {
    skip_blanks();
    const bool object = frames_.back().container.is_object();
    if (peek() == ',' && !at_end()) {
      ++at_;
      if (!object) return Step::value;
      skip_blanks();
      return read_key() ? Step::value : Step::fault;
    }
    if (peek() == (object ? '}' : ']') && !at_end()) {
      ++at_;
      value = std::move(frames_.back().container);
      frames_.pop_back();
      return Step::closed;
    }
    fail(object ? "after object key:value pair" : "after array element");
    return Step::fault;
  }

  bool read_key() {
    if (peek() != '"' || at_end()) return fail("looking for beginning of object key string");
    std::string key;
    if (!read_string(key)) return false;
    skip_blanks();
    if (peek() != ':' || at_end()) return fail("after object key");
    ++at_;
    Frame& frame = frames_.back();
    frame.repeated = frame.container.contains(key);
    frame.key = Value(key);
    if (!frame.repeated) {
      ++members_;
    } else {
      note_duplicate();
    }
    return true;
  }

  void note_duplicate() {
    if (options_.duplicates == nullptr || noted_.size() >= kMostDuplicates) return;
    std::string path;
    for (const Frame& frame : frames_) {
      if (frame.container.is_array()) {
        append(path, '[', frame.container.size(), ']');
      } else {
        append(path, path.empty() ? "" : ".", frame.key.as_string());
      }
    }
    if (!noted_.insert(path).second) return;
    options_.duplicates->push_back(std::move(path));
    if (options_.duplicate_places != nullptr) options_.duplicate_places->push_back(members_);
  }

  void attach(Value value) {
    Frame& frame = frames_.back();
    if (frame.container.is_array()) {
      frame.container.push(std::move(value));
    } else if (!frame.repeated) {
      *Builder::add(frame.container, std::move(frame.key)) = std::move(value);
    } else {
      unite(frame.container.mut(frame.key.as_string()), std::move(value));
    }
  }

  // Without recursion: the objects may be nested deeply.
  static void unite(Value& first, Value first_more) {
    std::vector<std::pair<Value*, Value>> left;
    left.emplace_back(&first, std::move(first_more));
    while (!left.empty()) {
      auto [into, more] = std::move(left.back());
      left.pop_back();
      if (!into->is_object() || !more.is_object()) {
        *into = std::move(more);
        continue;
      }
      // Members first, their insides after: a member that is added moves the others.
      for (const auto& [key, value] : more.members()) {
        if (!into->contains(key)) into->set(key, value);
      }
      for (const auto& [key, value] : more.members()) {
        Value& mine = into->mut(key);
        if (!mine.same_node(value)) left.emplace_back(&mine, value);
      }
    }
  }

  bool read_literal(std::string_view word) {
    for (std::size_t i = 0; i < word.size(); ++i, ++at_) {
      if (i == 0) continue;
      if (at_end() || text_[at_] != word[i]) {
        return fail(cat("in literal ", word, " (expecting '", word[i], "')"));
      }
    }
    return true;
  }

  bool is_digit() const { return !at_end() && text_[at_] >= '0' && text_[at_] <= '9'; }
  void skip_digits() {
    while (is_digit()) ++at_;
  }

  bool read_number(Value& value) {
    const std::size_t start = at_;
    bool whole = true;
    if (peek() == '-') ++at_;
    if (!is_digit()) return fail("in numeric literal");
    if (peek() == '0') {
      ++at_;
    } else {
      skip_digits();
    }
    if (peek() == '.') {
      whole = false;
      ++at_;
      if (!is_digit()) return fail("after decimal point in numeric literal");
      skip_digits();
    }
    if (peek() == 'e' || peek() == 'E') {
      whole = false;
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      if (!is_digit()) return fail("in exponent of numeric literal");
      skip_digits();
    }
    const std::string_view number = text_.substr(start, at_ - start);
    const char* end = number.data() + number.size();
    std::int64_t integer = 0;
    if (whole && std::from_chars(number.data(), end, integer).ec == std::errc()) {
      value = integer;
      return true;
    }
    double real = 0;
    if (!to_double(number, real) && late_error_.empty()) {
      // Told at the end: a fault in the form of the text goes first.
      late_error_ = cat("json: cannot unmarshal number ", number, " into Go value of type float64");
    }
    value = real;
    return true;
  }

  int hex_at(std::size_t place) const {
    if (place >= text_.size()) return -1;
    const char c = text_[place];
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  }

  // The four digits after "\u"; -1 when they are not there.
  int unit_at(std::size_t place) const {
    int unit = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      const int digit = hex_at(place + i);
      if (digit < 0) return -1;
      unit = unit * 16 + digit;
    }
    return unit;
  }

  bool read_string(std::string& out) {
    ++at_;
    while (true) {
      std::size_t end = at_;
      while (end < text_.size() && text_[end] >= 0x20 && text_[end] != '"' && text_[end] != '\\') {
        ++end;
      }
      out.append(text_.substr(at_, end - at_));
      at_ = end;
      if (at_end()) return fail("");
      const auto c = static_cast<unsigned char>(text_[at_]);
      if (c == '"') {
        ++at_;
        return true;
      }
      if (c == '\\') {
        if (!read_escape(out)) return false;
      } else if (c < 0x20) {
        return fail("in string literal");
      } else {
        const std::size_t length = utf8_length(text_.substr(at_));
        if (length == 0) {
          append_utf8(out, 0xfffd);
          ++at_;
        } else {
          out.append(text_.substr(at_, length));
          at_ += length;
        }
      }
    }
  }

  bool read_escape(std::string& out) {
    ++at_;
    if (at_end()) return fail("");
    static constexpr std::string_view kNames = "\"\\/bfnrt";
    static constexpr std::string_view kMeaning = "\"\\/\b\f\n\r\t";
    const std::size_t known = kNames.find(text_[at_]);
    if (known != std::string_view::npos) {
      out.push_back(kMeaning[known]);
      ++at_;
      return true;
    }
    if (text_[at_] != 'u') return fail("in string escape code");
    ++at_;
    const int unit = unit_at(at_);
    if (unit < 0) {
      while (hex_at(at_) >= 0) ++at_;
      return fail("in \\u hexadecimal character escape");
    }
    at_ += 4;
    if (unit >= 0xd800 && unit < 0xdc00 && text_.substr(at_, 2) == "\\u") {
      const int low = unit_at(at_ + 2);
      if (low >= 0xdc00 && low < 0xe000) {
        at_ += 6;
        append_utf8(out, 0x10000u + ((static_cast<std::uint32_t>(unit) - 0xd800) << 10) +
                             (static_cast<std::uint32_t>(low) - 0xdc00));
        return true;
      }
    }
    append_utf8(out, static_cast<std::uint32_t>(unit));
    return true;
  }

  std::string_view text_;
  const ParseOptions& options_;
  std::size_t at_ = 0;
  std::size_t members_ = 0;
  bool opened_ = false;
  std::vector<Frame> frames_;
  std::unordered_set<std::string> noted_;
  std::string message_;
  std::string late_error_;  // a number out of range, told only when the text is well formed
};

}  // namespace

Result<Value> parse_as_go(std::string_view text, const ParseOptions& options) {
  return Parser(text, options).run();
}

void append_utf8(std::string& out, std::uint32_t c) {
  if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) c = 0xfffd;
  if (c < 0x80) {
    out.push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out.push_back(static_cast<char>(0xc0 | (c >> 6)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3f)));
  } else if (c < 0x10000) {
    out.push_back(static_cast<char>(0xe0 | (c >> 12)));
    out.push_back(static_cast<char>(0x80 | ((c >> 6) & 0x3f)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3f)));
  } else {
    out.push_back(static_cast<char>(0xf0 | (c >> 18)));
    out.push_back(static_cast<char>(0x80 | ((c >> 12) & 0x3f)));
    out.push_back(static_cast<char>(0x80 | ((c >> 6) & 0x3f)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3f)));
  }
}

std::size_t utf8_length(std::string_view text) {
  auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  if (first == 0xe0 && byte(1) < 0xa0) return 0;
  if (first == 0xed && byte(1) > 0x9f) return 0;
  if (first == 0xf0 && byte(1) < 0x90) return 0;
  if (first == 0xf4 && byte(1) > 0x8f) return 0;
  return length;
}

}  // namespace dibs::json
