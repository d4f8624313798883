#include "dns/name.h"

#include "base/strings.h"

namespace dibs::dns {

std::optional<Name> Name::from_text(std::string_view text) {
  if (text.ends_with('.')) text.remove_suffix(1);
  if (text.empty()) return Name();
  return from_labels(split(text, '.'));
}

std::optional<Name> Name::from_labels(const std::vector<std::string_view>& labels) {
  std::string wire;
  for (const auto label : labels) {
    if (label.empty() || label.size() > kLongestLabel) return std::nullopt;
    wire.push_back(static_cast<char>(label.size()));
    wire.append(label);
    if (wire.size() >= kLongest) return std::nullopt;
  }
  wire.push_back('\0');
  return Name(std::move(wire));
}

std::optional<Name> Name::below(std::string_view label) const {
  if (label.empty() || label.size() > kLongestLabel) return std::nullopt;
  if (label.size() + 1 + wire_.size() > kLongest) return std::nullopt;
  return Name(cat(static_cast<char>(label.size()), label, wire_));
}

std::vector<std::string_view> Name::labels() const {
  std::vector<std::string_view> out;
  const std::string_view wire = wire_;
  for (std::size_t at = 0; wire[at] != '\0';) {
    const auto size = static_cast<unsigned char>(wire[at]);
    out.push_back(wire.substr(at + 1, size));
    at += 1 + size;
  }
  return out;
}

Name Name::lower() const {
  // Lengths are below 64, so that no length looks like a letter.
  return Name(to_lower(wire_));
}

bool Name::is_within(const Name& zone) const {
  const std::string_view wire = wire_;
  for (std::size_t at = 0; wire.size() - at >= zone.wire_.size();) {
    if (wire.substr(at) == zone.wire_) return true;
    if (wire[at] == '\0') return false;
    at += 1 + static_cast<unsigned char>(wire[at]);
  }
  return false;
}

std::string Name::text() const {
  std::string out;
  for (const auto label : labels()) {
    for (const char c : label) {
      const auto byte = static_cast<unsigned char>(c);
      if (c == '.' || c == '\\') {
        append(out, '\\', c);
      } else if (byte > 0x20 && byte < 0x7f) {
        out.push_back(c);
      } else {
        append(out, '\\', static_cast<char>('0' + byte / 100),
               static_cast<char>('0' + byte / 10 % 10), static_cast<char>('0' + byte % 10));
      }
    }
    out.push_back('.');
  }
  return out.empty() ? "." : out;
}

}  // namespace dibs::dns
