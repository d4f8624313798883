#include "cdi/names.h"

#include <vector>

#include "base/characters.h"
#include "base/names.h"
#include "base/strings.h"

namespace dibs::cdi {
namespace {

// The first character of `inner` that is neither alphanumeric nor in `more`, as a whole rune.
std::string_view first_bad(std::string_view inner, std::string_view more) {
  for (std::size_t i = 0; i < inner.size(); ++i) {
    if (is_alphanumeric(inner[i]) || more.find(inner[i]) != std::string_view::npos) continue;
    std::size_t length = 1;
    while (i + length < inner.size() && (static_cast<unsigned char>(inner[i + length]) >> 6) == 2) {
      ++length;
    }
    return inner.substr(i, length);
  }
  return {};
}

Result<> check_part(std::string_view what, std::string_view name) {
  if (name.empty()) return Error::invalid(cat("invalid ", what, ". empty name"));
  if (!is_letter(name.front())) {
    return Error::invalid(cat("invalid ", what, ". ", quoted(name), ", should start with letter"));
  }
  if (name.size() == 1) return success();
  if (const auto bad = first_bad(name.substr(1, name.size() - 2), "_-."); !bad.empty()) {
    return Error::invalid(
        cat("invalid ", what, ". invalid character '", bad, "' in name ", quoted(name)));
  }
  if (!is_alphanumeric(name.back())) {
    return Error::invalid(
        cat("invalid ", what, ". ", quoted(name), ", should end with a letter or digit"));
  }
  return success();
}

}  // namespace

std::string qualified_name(std::string_view vendor, std::string_view class_name,
                           std::string_view device) {
  return cat(vendor, '/', class_name, '=', device);
}

Kind split_kind(std::string_view kind) {
  const auto slash = kind.find('/');
  if (slash == std::string_view::npos || slash == 0 || slash + 1 == kind.size()) {
    return {"", std::string(kind)};
  }
  return {std::string(kind.substr(0, slash)), std::string(kind.substr(slash + 1))};
}

Result<QualifiedName> parse_qualified_name(std::string_view name) {
  QualifiedName parts;
  const auto equals = name.find('=');
  if (!name.empty() && name.front() != '/' && equals != std::string_view::npos && equals > 0 &&
      equals + 1 < name.size()) {
    Kind kind = split_kind(name.substr(0, equals));
    if (!kind.vendor.empty()) {
      parts.vendor = std::move(kind.vendor);
      parts.class_name = std::move(kind.class_name);
      parts.device = name.substr(equals + 1);
    }
  }
  if (parts.vendor.empty()) {
    return Error::invalid(cat("unqualified device ", quoted(name), ", missing vendor"));
  }
  for (const auto& problem :
       {check_vendor(parts.vendor), check_class(parts.class_name), check_device(parts.device)}) {
    if (!problem.ok()) return problem.error().within(cat("invalid device ", quoted(name)));
  }
  return parts;
}

Result<> check_vendor(std::string_view vendor) { return check_part("vendor", vendor); }
Result<> check_class(std::string_view class_name) { return check_part("class", class_name); }

Result<> check_device(std::string_view name) {
  if (name.empty()) return Error::invalid("invalid (empty) device name");
  if (!is_alphanumeric(name.front())) {
    return Error::invalid(
        cat("invalid class ", quoted(name), ", should start with a letter or digit"));
  }
  if (name.size() == 1) return success();
  if (const auto bad = first_bad(name.substr(1, name.size() - 2), "_-.:"); !bad.empty()) {
    return Error::invalid(cat("invalid character '", bad, "' in device name ", quoted(name)));
  }
  if (!is_alphanumeric(name.back())) {
    return Error::invalid(
        cat("invalid name ", quoted(name), ", should end with a letter or digit"));
  }
  return success();
}

Result<> check_annotations(std::string_view owner,
                           const std::map<std::string, std::string>& annotations) {
  constexpr std::size_t kLimit = 256 * 1024;
  const std::string path = owner.empty() ? "annotations" : cat(owner, ".annotations");
  std::vector<std::string> problems;
  std::size_t size = 0;
  for (const auto& [key, value] : annotations) {
    size += key.size() + value.size();
    for (const auto& problem :
         is_qualified_name(to_lower(key), Unit::characters, "a qualified name")) {
      problems.push_back(cat(path, '.', key, " is invalid: ", problem));
    }
  }
  if (size > kLimit) {
    problems.push_back(
        cat(path, " is too long: annotations size ", size, " is larger than limit ", kLimit));
  }
  if (problems.empty()) return success();
  return Error::invalid(join(problems, "\n"));
}

}  // namespace dibs::cdi
