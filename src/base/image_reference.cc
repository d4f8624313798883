#include "base/image_reference.h"

#include <algorithm>

#include "base/characters.h"
#include "base/strings.h"

namespace dibs {
namespace {

bool is_lower_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return is_hex_digit(c) && (is_digit(c) || is_lower(c)); });
}

// Runs of lower case letters and digits with one dot, one or two underscores or any dashes between.
bool is_component(std::string_view text) {
  if (text.empty() || !is_lower_alphanumeric(text.front()) || !is_lower_alphanumeric(text.back())) {
    return false;
  }
  for (std::size_t i = 0; i < text.size();) {
    if (is_lower_alphanumeric(text[i])) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < text.size() && text[end] == text[i]) ++end;
    const std::size_t count = end - i;
    const bool fine =
        text[i] == '-' || (text[i] == '.' && count == 1) || (text[i] == '_' && count <= 2);
    if (!fine || !is_lower_alphanumeric(text[end])) return false;
    i = end;
  }
  return true;
}

// A host name or address in brackets, with an optional port.
bool is_registry(std::string_view text) {
  const auto colon = text.rfind(':');
  std::string_view host = text;
  if (colon != std::string_view::npos && !text.ends_with(']')) {
    const std::string_view port = text.substr(colon + 1);
    if (port.empty() || port.find_first_not_of("0123456789") != std::string_view::npos)
      return false;
    host = text.substr(0, colon);
  }
  if (host.starts_with('[') && host.ends_with(']')) return host.size() > 2;
  for (const auto label : split(host, '.')) {
    if (label.empty() || !is_alphanumeric(label.front()) || !is_alphanumeric(label.back())) {
      return false;
    }
    if (!std::all_of(label.begin(), label.end(),
                     [](char c) { return is_alphanumeric(c) || c == '-'; })) {
      return false;
    }
  }
  return true;
}

/// An algorithm and at least 32 hexadecimal digits; those of sha256 are 64 in lower case.
bool is_any_digest(std::string_view text) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  if (text.substr(0, colon) == "sha256") return is_digest(text);
  const auto hex = text.substr(colon + 1);
  return hex.size() >= 32 && std::all_of(hex.begin(), hex.end(), is_hex_digit);
}

bool is_tag(std::string_view text) {
  if (text.empty() || text.size() > 128) return false;
  if (!is_alphanumeric(text.front()) && text.front() != '_') return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return is_alphanumeric(c) || c == '_' || c == '.' || c == '-'; });
}

}  // namespace

bool is_digest(std::string_view text) {
  return text.starts_with("sha256:") && text.size() == 71 && is_lower_hex(text.substr(7));
}

std::string ImageReference::text() const {
  return cat(repository, tag.empty() ? "" : ":", tag, digest.empty() ? "" : "@", digest);
}

Result<ImageReference> parse_image_reference(std::string_view name) {
  const Error malformed = Error::invalid("invalid reference format");
  if (name.empty()) return malformed;
  if (name.size() == 64 && is_lower_hex(name)) {
    return Error::invalid(
        cat("invalid repository name (", name, "), cannot specify 64-byte hexadecimal strings"));
  }
  std::string_view registry = "docker.io";
  std::string rest(name);
  if (const auto slash = name.find('/'); slash != std::string_view::npos) {
    const std::string_view first = name.substr(0, slash);
    if (first.find_first_of(".:") != std::string_view::npos || first == "localhost" ||
        to_lower(first) != first) {
      registry = first == "index.docker.io" ? "docker.io" : first;
      rest = name.substr(slash + 1);
    }
  }
  if (registry == "docker.io" && rest.find('/') == std::string::npos) rest = "library/" + rest;
  const std::string_view remote = std::string_view(rest).substr(0, rest.find(':'));
  if (to_lower(remote) != remote) {
    return Error::invalid(
        cat("invalid reference format: repository name (", remote, ") must be lowercase"));
  }
  ImageReference reference;
  std::string_view path = rest;
  if (const auto at = path.find('@'); at != std::string_view::npos) {
    reference.digest = path.substr(at + 1);
    if (!is_any_digest(reference.digest)) return malformed;
    path = path.substr(0, at);
  }
  if (const auto colon = path.find(':'); colon != std::string_view::npos) {
    reference.tag = path.substr(colon + 1);
    if (!is_tag(reference.tag)) return malformed;
    path = path.substr(0, colon);
  }
  for (const auto component : split(path, '/')) {
    if (!is_component(component)) return malformed;
  }
  if (!is_registry(registry)) return malformed;
  if (path.size() > 255) {
    return Error::invalid("repository name must not be more than 255 characters");
  }
  reference.repository = cat(registry, '/', path);
  if (reference.tag.empty() && reference.digest.empty()) reference.tag = "latest";
  return reference;
}

}  // namespace dibs
