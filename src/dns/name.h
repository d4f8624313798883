#pragma once
// A domain name, as it goes over the wire: labels, each behind its length, ended by an empty one.
//
// Case is kept, since whoever asked compares what he gets back; lower() is the form for maps and
// comparisons. A Name is always well-formed: labels of 63 bytes at most, 255 in all.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::dns {

class Name {
 public:
  /// The root.
  Name() : wire_(1, '\0') {}

  /// "a.b.c", with or without a dot at the end, without escapes. Null when it is no name.
  static std::optional<Name> from_text(std::string_view text);
  static std::optional<Name> from_labels(const std::vector<std::string_view>& labels);
  /// `label` before this name.
  std::optional<Name> below(std::string_view label) const;

  const std::string& wire() const { return wire_; }
  bool is_root() const { return wire_.size() == 1; }
  std::vector<std::string_view> labels() const;
  Name lower() const;
  /// Itself or below `zone`. Both in lower case.
  bool is_within(const Name& zone) const;
  /// "a.b.c."; bytes that are no plain characters as \DDD.
  std::string text() const;

  friend bool operator==(const Name&, const Name&) = default;

  static constexpr std::size_t kLongest = 255;
  static constexpr std::size_t kLongestLabel = 63;

 private:
  explicit Name(std::string wire) : wire_(std::move(wire)) {}
  std::string wire_;
};

}  // namespace dibs::dns
