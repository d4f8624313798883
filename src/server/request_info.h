#pragma once
// What a request asks for, read from its method, path and query alone.

#include <string>
#include <string_view>

#include "base/result.h"
#include "net/http.h"

namespace dibs::server {

struct RequestInfo {
  bool is_resource = false;
  std::string verb;  // get, list, watch, create, update, patch, delete, deletecollection; or the
                     // lower-case method
  std::string path;

  // Of a resource request.
  bool core = false;  // under /api
  std::string group;
  std::string version;
  std::string name_space;
  bool in_namespace =
      false;  // the path goes through a namespace; of a Namespace itself it does not
  std::string resource;
  std::string name;
  std::string subresource;
  std::string rest;  // segments after the sub-resource (proxy)
  std::size_t parts_before_rest = 0;
  bool legacy_watch = false;

  bool is_write() const { return verb != "get" && verb != "list" && verb != "watch"; }
};

RequestInfo parse_request_info(std::string_view method, const net::Target& target);

/// As Go reads a query boolean: "", "0" and "false" are false where the parameter is absent or so
/// written; everything else is true.
bool query_flag(const net::Target& target, std::string_view name);

/// Of the parameter `timeout`: a Go duration. Errors: bad_request.
Result<> check_timeout(const net::Target& target);

}  // namespace dibs::server
