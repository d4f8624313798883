#pragma once
// Random values for property tests.

#include <cmath>
#include <cstring>
#include <random>
#include <string>

#include "json/value.h"

namespace dibs::json {

class RandomValues {
 public:
  explicit RandomValues(unsigned seed) : engine_(seed) {}

  unsigned below(unsigned n) { return static_cast<unsigned>(engine_() % n); }

  std::string text() {
    static const char* const kPieces[] = {"a", "key", "\"",     "\\",   "\n",
                                          "é", "😀",   "\u2028", "<",    "\x01",
                                          "0", " ",   "12",     "~",    "a longer piece of text",
                                          "/", "~0",  "yes",    "- ",   ": ",
                                          "#", "\t",  "'",      "null", "1e3"};
    std::string out;
    for (unsigned i = below(6); i > 0; --i) out += kPieces[below(std::size(kPieces))];
    return out;
  }

  Value scalar() {
    switch (below(5)) {
      case 0:
        return Value();
      case 1:
        return Value(below(2) == 0);
      case 2:
        return Value(static_cast<long long>(engine_()) >> below(64));
      case 3:
        return real();
      default:
        return Value(text());
    }
  }

  Value value(int depth) {
    if (depth == 0 || below(8) < 3) return scalar();
    const bool large = below(20) == 0;
    Value made = below(2) == 0 ? Value::array() : Value::object();
    for (unsigned i = below(large ? 60 : 5); i > 0; --i) {
      if (made.is_array())
        made.push(value(depth - 1));
      else
        made.set(text(), value(depth - 1));
    }
    return made;
  }

  Value object(int depth) {
    Value made = Value::object();
    for (unsigned i = below(6); i > 0; --i) made.set(text(), value(depth - 1));
    return made;
  }

  /// The value with a few changes.
  Value changed(Value value, int depth) {
    if (!value.is_object() || value.empty()) return this->value(depth);
    for (unsigned i = below(3) + 1; i > 0 && !value.empty(); --i) {
      const std::string key(
          value.members().begin()[below(static_cast<unsigned>(value.size()))].key());
      switch (below(4)) {
        case 0:
          value.erase(key);
          break;
        case 1:
          value.set(text(), this->value(depth));
          break;
        case 2:
          value.set(key, this->value(depth));
          break;
        default:
          value.set(key, changed(value[key], depth - 1 > 0 ? depth - 1 : 0));
          break;
      }
    }
    return value;
  }

 private:
  Value real() {
    const std::uint64_t bits = engine_();
    double number;
    std::memcpy(&number, &bits, sizeof number);
    return std::isfinite(number) ? Value(number) : Value(0.5);
  }

  std::mt19937_64 engine_;
};

}  // namespace dibs::json
