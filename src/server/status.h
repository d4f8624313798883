#pragma once
// Status objects: how an Error, or a success without an object, reads on the wire.

#include <string_view>

#include "base/result.h"
#include "json/value.h"
#include "net/http.h"

namespace dibs::server {

json::Value status_value(const Error& error);
net::Response status_response(const Error& error);

/// 200 Status Success, with the details of what was deleted.
json::Value success_status(std::string_view name, std::string_view group, std::string_view resource,
                           std::string_view uid);

net::Response json_response(int status, const json::Value& body);
net::Response text_response(int status, std::string text);

// The errors of resource requests; `resource` is the plural.
Error not_found_error(std::string_view group, std::string_view resource, std::string_view name);
Error already_exists_error(std::string_view group, std::string_view resource,
                           std::string_view name);
Error conflict_error(std::string_view group, std::string_view resource, std::string_view name,
                     std::string_view reason);
/// A client's uid is not that of the object, "" for none.
Error wrong_uid_error(std::string_view group, std::string_view resource, std::string_view name,
                      std::string_view key, std::string_view wanted, std::string_view actual);
Error forbidden_error(std::string_view group, std::string_view resource, std::string_view name,
                      std::string_view reason);
/// For a resource, version or sub-resource that is not served.
Error unknown_resource_error();
Error method_not_allowed_error();
/// 503 with Retry-After: clients then repeat the same request by themselves.
Error try_again_error(std::string_view why);

/// "pods", "deployments.apps"
std::string qualified(std::string_view resource, std::string_view group);

inline constexpr std::string_view kModifiedText =
    "the object has been modified; please apply your changes to the latest version and try again";

}  // namespace dibs::server
