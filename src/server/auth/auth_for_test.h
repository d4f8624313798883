#pragma once
// Who asks for what, as tests write it.

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "json/parse.h"
#include "server/auth/authorizer.h"

namespace dibs::server::auth::test {

inline Value parsed(std::string_view text) {
  Result<Value> value = json::parse(text);
  EXPECT_TRUE(value.ok()) << text;
  return value.ok() ? *value : Value();
}

inline RequestAttributes wants(UserInfo user, std::string verb, std::string resource,
                               std::string space = "", std::string name = "") {
  RequestAttributes what;
  what.user = std::move(user);
  what.verb = std::move(verb);
  what.resource = std::move(resource);
  what.name_space = std::move(space);
  what.name = std::move(name);
  return what;
}

inline UserInfo user(std::string name, std::vector<std::string> groups = {}) {
  return {std::move(name), "", std::move(groups), {}};
}

}  // namespace dibs::server::auth::test
