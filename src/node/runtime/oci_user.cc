#include "node/runtime/oci_user.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/strings.h"

namespace dibs::node {
namespace {

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

using Fields = std::vector<std::string_view>;

// The first line whose field `at` is `text`.
std::optional<Fields> line_with(std::string_view file, std::size_t at, std::string_view text,
                                std::size_t count) {
  for (const auto line : split(file, '\n')) {
    Fields fields = split(line, ':');
    if (fields.size() >= count && fields[at] == text) return fields;
  }
  return std::nullopt;
}

void add_once(std::vector<std::int64_t>& groups, std::int64_t group) {
  if (std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(group);
}

}  // namespace

Result<OciUser> resolve_user(const ContainerSecurity& security, std::string_view image_user,
                             std::string_view passwd, std::string_view group) {
  std::string user;
  std::string group_name;
  if (security.run_as_user) {
    user = std::to_string(*security.run_as_user);
  } else if (!security.run_as_username.empty()) {
    user = security.run_as_username;
  } else {
    user = image_user.substr(0, image_user.find(':'));
    if (const auto colon = image_user.find(':'); colon != std::string_view::npos) {
      group_name = image_user.substr(colon + 1);
    }
  }
  if (user.empty()) user = "0";

  OciUser out;
  std::string login;
  const auto as_number = number(user);
  if (const auto entry = line_with(passwd, as_number ? 2 : 0, user, 6)) {
    out.uid = number((*entry)[2]).value_or(0);
    out.gid = number((*entry)[3]).value_or(0);
    out.home = (*entry)[5];
    login = (*entry)[0];
  } else if (as_number) {
    out.uid = *as_number;
  } else {
    return Error::invalid(
        cat("unable to find user ", user, ": no matching entries in passwd file"));
  }
  if (security.run_as_group) {
    out.gid = *security.run_as_group;
  } else if (!group_name.empty()) {
    if (const auto id = number(group_name)) {
      out.gid = *id;
    } else if (const auto entry = line_with(group, 0, group_name, 3)) {
      out.gid = number((*entry)[2]).value_or(0);
    } else {
      return Error::invalid(
          cat("unable to find group ", group_name, ": no matching entries in group file"));
    }
  }
  out.groups.push_back(out.gid);
  for (const auto id : security.supplemental_groups) add_once(out.groups, id);
  if (!login.empty() && !security.strict_groups) {
    for (const auto line : split(group, '\n')) {
      const Fields fields = split(line, ':');
      if (fields.size() < 4) continue;
      const Fields members = split(fields[3], ',');
      if (std::find(members.begin(), members.end(), login) == members.end()) continue;
      if (const auto id = number(fields[2])) add_once(out.groups, *id);
    }
  }
  return out;
}

}  // namespace dibs::node
