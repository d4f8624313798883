// Tells unknown and duplicate fields of a JSON text in the order of the document. The parser's tree
// has lost where a key came for the second time; this reads the text again, which happens only when
// there was a duplicate.

#include <algorithm>
#include <string>
#include <unordered_set>

#include "api/schema/decode.h"
#include "base/strings.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

constexpr std::size_t kMaxErrors = 100;

class Scanner {
 public:
  Scanner(std::string_view text, std::vector<std::string>& errors) : text_(text), errors_(errors) {}

  /// `schema` is null where nothing is known of the value: then nothing is told of it.
  void value(const Schema* schema, int depth) {
    blank();
    char c = peek();
    if (schema == nullptr || depth > kMaxDepth) {
      skip();
    } else if (c == '{') {
      object(schema, depth);
    } else if (c == '[') {
      array(schema, depth);
    } else if (c == '"') {
      string();
    } else {
      while (at_ < text_.size() &&
             std::string_view(",]} \t\r\n").find(text_[at_]) == std::string_view::npos)
        ++at_;
    }
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void blank() {
    while (at_ < text_.size() &&
           std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
      ++at_;
  }

  std::string string() {
    std::size_t begin = at_++;
    bool escaped = false;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\\') {
        escaped = true;
        ++at_;
      }
      ++at_;
    }
    at_ = std::min(at_ + 1, text_.size());
    std::string_view literal = text_.substr(begin, at_ - begin);
    if (literal.size() < 2) return {};
    if (!escaped) return std::string(literal.substr(1, literal.size() - 2));
    auto parsed = json::parse(literal);
    return parsed.ok() ? parsed->str() : std::string(literal);
  }

  /// A value of which nothing is told, however deep.
  void skip() {
    std::size_t open = 0;
    do {
      blank();
      char c = peek();
      if (c == '"') {
        string();
      } else if (c == '{' || c == '[') {
        ++open;
        ++at_;
      } else if (c == '}' || c == ']') {
        if (open == 0) return;
        --open;
        ++at_;
      } else if (c == ',' || c == ':') {
        if (open == 0) return;
        ++at_;
      } else {
        while (at_ < text_.size() &&
               std::string_view(",:]} \t\r\n").find(text_[at_]) == std::string_view::npos)
          ++at_;
      }
    } while (open > 0 && at_ < text_.size());
  }

  void tell(std::string_view what, std::string_view name) {
    if (errors_.size() >= kMaxErrors) return;
    std::string path = path_;
    if (!path.empty()) path.push_back('.');
    path.append(name);
    std::string error = cat(what, " field ", quoted(path));
    if (std::find(errors_.begin(), errors_.end(), error) == errors_.end())
      errors_.push_back(std::move(error));
  }

  void object(const Schema* schema, int depth) {
    ++at_;
    bool is_struct = schema != nullptr && schema->shape == Shape::object;
    bool is_map = schema != nullptr && schema->shape == Shape::map;
    std::unordered_set<std::string> seen;
    std::size_t length = path_.size();
    while (at_ < text_.size()) {
      blank();
      if (peek() != '"') break;
      std::string key = string();
      blank();
      ++at_;  // the colon
      const Schema* inner = nullptr;
      if (is_struct) {
        const Field* field = schema->field(key);
        if (field == nullptr) {
          tell("unknown", key);
        } else {
          inner = field->schema;
        }
      } else if (is_map) {
        inner = schema->element;
      }
      bool known = is_map || inner != nullptr;
      if (known && !seen.insert(key).second) tell("duplicate", key);
      if (!path_.empty()) path_.push_back('.');
      path_.append(key);
      value(inner, depth + 1);
      path_.resize(length);
      blank();
      if (peek() != ',') break;
      ++at_;
    }
    ++at_;  // the brace
  }

  void array(const Schema* schema, int depth) {
    ++at_;
    const Schema* inner =
        schema != nullptr && schema->shape == Shape::list ? schema->element : nullptr;
    std::size_t length = path_.size();
    std::size_t index = 0;
    while (at_ < text_.size()) {
      blank();
      if (at_ >= text_.size() || peek() == ']') break;
      append(path_, '[', index++, ']');
      value(inner, depth + 1);
      path_.resize(length);
      blank();
      if (peek() != ',') break;
      ++at_;
    }
    ++at_;
  }

  static constexpr int kMaxDepth = 1000;
  std::string_view text_;
  std::size_t at_ = 0;
  std::string path_;
  std::vector<std::string>& errors_;
};

}  // namespace

std::vector<std::string> strict_errors_of(std::string_view text, const Schema& schema) {
  std::vector<std::string> errors;
  Scanner(text, errors).value(&schema, 0);
  return errors;
}

}  // namespace dibs::api
