#pragma once
// The log: one line of logfmt per event, to standard error unless a program or test sets another
// sink.
//
//   log::info("claim allocated", {{"claim", key}, {"devices", 2}});
//   time=2026-01-02T03:04:05.000006Z level=info msg="claim allocated" claim=default/gpu devices=2
//
// Thread-safe; a line is written as a whole. A message is a constant phrase, what varies is a
// field.

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/result.h"

namespace dibs::log {

enum class Level : std::uint8_t { debug, info, warn, error, off };

struct Field {
  template <typename T>
  requires std::is_integral_v<T> &&(!std::is_same_v<T, bool>)Field(std::string_view key, T value)
      : key(key), value(std::to_string(value)) {}
  Field(std::string_view key, bool value) : key(key), value(value ? "true" : "false") {}
  Field(std::string_view key, const char* value) : key(key), value(value) {}
  Field(std::string_view key, std::string_view value) : key(key), value(value) {}
  Field(std::string_view key, std::string value) : key(key), value(std::move(value)) {}
  Field(std::string_view key, const Error& error) : key(key), value(error.message()) {}

  std::string_view key;
  std::string value;
};

using Fields = std::initializer_list<Field>;

void write(Level level, std::string_view message, Fields fields = {});
inline void debug(std::string_view message, Fields fields = {}) {
  write(Level::debug, message, fields);
}
inline void info(std::string_view message, Fields fields = {}) {
  write(Level::info, message, fields);
}
inline void warn(std::string_view message, Fields fields = {}) {
  write(Level::warn, message, fields);
}
inline void error(std::string_view message, Fields fields = {}) {
  write(Level::error, message, fields);
}

/// Events below the level are dropped. The start value is Level::info.
void set_level(Level level);
/// Cheap: guard what is costly to put into fields.
bool enabled(Level level);
/// False for an unknown name.
bool parse_level(std::string_view name, Level& level);

/// Gets each line with its line break, one call at a time; null goes back to standard error.
using Sink = std::function<void(std::string_view line)>;
void set_sink(Sink sink);

}  // namespace dibs::log
