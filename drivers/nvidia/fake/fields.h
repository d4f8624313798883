#pragma once
// Reads an object of a YAML file field by field. The first thing that is wrong is kept, with its
// line, and everything read after it is a default; who reads asks once at the end.

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"
#include "json/yaml.h"

namespace dibs::drivers::nvidia::fake {

/// A parsed file and what is wrong with it.
class Document {
 public:
  static Result<Document> parse(std::string_view text, std::string_view name);

  const json::Value& root() const { return root_; }
  /// "machine.yaml:12: gpus[3].model: why"
  void complain(std::string_view path, std::string_view why);
  /// Nothing was wrong.
  Result<> verdict() const;

 private:
  std::string name_;
  json::Value root_;
  json::YamlLines lines_;
  std::string wrong_;
};

class Fields {
 public:
  Fields(Document& document, const json::Value& value, std::string path);

  bool has(std::string_view name);
  /// Complains where the field is missing and there is no fallback.
  std::string text(std::string_view name, std::optional<std::string> fallback = std::nullopt);
  std::uint64_t number(std::string_view name, std::optional<std::uint64_t> fallback = std::nullopt,
                       std::uint64_t most = std::numeric_limits<std::uint32_t>::max());
  bool boolean(std::string_view name, bool fallback);
  /// "40Gi" or a number of bytes.
  std::uint64_t bytes(std::string_view name, std::optional<std::uint64_t> fallback = std::nullopt);
  /// One of these, by its place among them.
  unsigned choice(std::string_view name, const std::vector<std::string>& words,
                  std::optional<unsigned> fallback = std::nullopt);
  std::vector<std::string> texts(std::string_view name);
  std::vector<std::uint64_t> numbers(std::string_view name);
  /// The objects of a list; those of a map by key.
  std::vector<Fields> list(std::string_view name);
  std::map<std::string, Fields> map(std::string_view name);
  std::optional<Fields> object(std::string_view name);
  /// Complains about every field that nobody asked for.
  void no_others();

  void complain(std::string_view name, std::string_view why) const;
  const json::Value& value() const { return *value_; }

 private:
  const json::Value* find(std::string_view name);
  const json::Value* needed(std::string_view name, bool optional);
  std::string at(std::string_view name) const;

  Document* document_;
  const json::Value* value_;
  std::string path_;
  std::vector<std::string> known_ = {};
};

}  // namespace dibs::drivers::nvidia::fake
