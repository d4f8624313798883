#pragma once
// Who sends a request.

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::server::auth {

struct UserInfo {
  std::string name;
  std::string uid;
  std::vector<std::string> groups;
  std::map<std::string, std::vector<std::string>> extra;

  bool in_group(std::string_view group) const {
    return std::find(groups.begin(), groups.end(), group) != groups.end();
  }
};

inline constexpr std::string_view kMasters = "system:masters";
inline constexpr std::string_view kAuthenticated = "system:authenticated";
inline constexpr std::string_view kUnauthenticated = "system:unauthenticated";
inline constexpr std::string_view kAnonymous = "system:anonymous";

}  // namespace dibs::server::auth
