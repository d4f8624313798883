#pragma once
// --runtime-config: which versions of the API are served, beside what is served anyway.
//
// Keys, the more specific one wins: `api/all`, `api/ga`, `api/beta`, `api/alpha`; `group/version`
// (core: `v1` or `api/v1`); `group/version/resource`. A key without a value is true.

#include <map>
#include <string>
#include <string_view>

#include "api/schema/catalog.h"
#include "base/result.h"

namespace dibs::server {

class RuntimeConfig {
 public:
  /// `known` is all that could be served. Errors: bad_request for a key that names nothing, listing
  /// what is known, and for a value that is no boolean.
  static Result<RuntimeConfig> parse(std::string_view text, const api::Catalog& known);

  /// `by_default`: whether it is served when nothing is said of it.
  bool serves(const api::ResourceInfo& resource, bool by_default) const;

 private:
  std::map<std::string, bool, std::less<>> settings_;
};

}  // namespace dibs::server
