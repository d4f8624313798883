#include "server/status.h"

#include "base/strings.h"
#include "json/parse.h"

namespace dibs::server {

using json::Value;

Value status_value(const Error& error) {
  Value status = Value::object({{"kind", "Status"},
                                {"apiVersion", "v1"},
                                {"metadata", Value::object()},
                                {"status", "Failure"}});
  if (!error.message().empty()) status.set("message", error.message());
  if (auto text = reason(error); !text.empty()) status.set("reason", text);
  if (const ErrorDetails* details = error.details()) {
    Value out = Value::object();
    if (!details->name.empty()) out.set("name", details->name);
    if (!details->group.empty()) out.set("group", details->group);
    if (!details->kind.empty()) out.set("kind", details->kind);
    if (!details->uid.empty()) out.set("uid", details->uid);
    if (!details->causes.empty()) {
      Value causes = Value::array();
      for (const Cause& cause : details->causes) {
        Value one = Value::object();
        if (!cause.reason.empty()) one.set("reason", cause.reason);
        if (!cause.message.empty()) one.set("message", cause.message);
        if (!cause.field.empty()) one.set("field", cause.field);
        causes.push(std::move(one));
      }
      out.set("causes", std::move(causes));
    }
    if (details->retry_after_seconds > 0)
      out.set("retryAfterSeconds", details->retry_after_seconds);
    // Whoever words a refusal himself decides whether it has details.
    if (details->status == 0 || !out.empty()) status.set("details", std::move(out));
  }
  status.set("code", http_status(error));
  return status;
}

net::Response json_response(int status, const Value& body) {
  net::Response response;
  response.status = status;
  response.headers.add("Content-Type", "application/json");
  response.headers.add("Cache-Control", "no-cache, private");
  response.body = json::write(body);
  response.body.push_back('\n');
  return response;
}

net::Response text_response(int status, std::string text) {
  net::Response response;
  response.status = status;
  response.headers.add("Content-Type", "text/plain; charset=utf-8");
  response.headers.add("X-Content-Type-Options", "nosniff");
  response.body = std::move(text);
  return response;
}

net::Response status_response(const Error& error) {
  net::Response response = json_response(http_status(error), status_value(error));
  if (const ErrorDetails* details = error.details(); details && details->retry_after_seconds > 0) {
    response.headers.add("Retry-After", cat(details->retry_after_seconds));
  }
  return response;
}

Value success_status(std::string_view name, std::string_view group, std::string_view resource,
                     std::string_view uid) {
  Value details = Value::object();
  if (!name.empty()) details.set("name", name);
  if (!group.empty()) details.set("group", group);
  if (!resource.empty()) details.set("kind", resource);
  if (!uid.empty()) details.set("uid", uid);
  return Value::object({{"kind", "Status"},
                        {"apiVersion", "v1"},
                        {"metadata", Value::object()},
                        {"status", "Success"},
                        {"details", std::move(details)}});
}

std::string qualified(std::string_view resource, std::string_view group) {
  return group.empty() ? std::string(resource) : cat(resource, ".", group);
}

namespace {

ErrorDetails details_of(std::string_view group, std::string_view resource, std::string_view name) {
  ErrorDetails details;
  details.name = name;
  details.group = group;
  details.kind = resource;
  return details;
}

}  // namespace

Error not_found_error(std::string_view group, std::string_view resource, std::string_view name) {
  return {Code::not_found, cat(qualified(resource, group), " \"", name, "\" not found"),
          details_of(group, resource, name)};
}

Error already_exists_error(std::string_view group, std::string_view resource,
                           std::string_view name) {
  return {Code::already_exists, cat(qualified(resource, group), " \"", name, "\" already exists"),
          details_of(group, resource, name)};
}

Error conflict_error(std::string_view group, std::string_view resource, std::string_view name,
                     std::string_view reason) {
  return {Code::conflict,
          cat("Operation cannot be fulfilled on ", qualified(resource, group), " \"", name,
              "\": ", reason),
          details_of(group, resource, name)};
}

Error wrong_uid_error(std::string_view group, std::string_view resource, std::string_view name,
                      std::string_view key, std::string_view wanted, std::string_view actual) {
  return conflict_error(
      group, resource, name,
      cat("StorageError: invalid object, Code: 4, Key: ", key,
          ", ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: ",
          wanted, ", UID in object meta: ", actual));
}

Error forbidden_error(std::string_view group, std::string_view resource, std::string_view name,
                      std::string_view reason) {
  std::string message = qualified(resource, group);
  if (!name.empty()) append(message, " \"", name, "\"");
  append(message, " is forbidden: ", reason);
  return {Code::forbidden, std::move(message), details_of(group, resource, name)};
}

Error unknown_resource_error() {
  return {Code::not_found, "the server could not find the requested resource", ErrorDetails{}};
}

Error try_again_error(std::string_view why) {
  ErrorDetails details;
  details.retry_after_seconds = 1;
  return {Code::unavailable, std::string(why), std::move(details)};
}

Error method_not_allowed_error() {
  return {Code::method_not_allowed,
          "the server does not allow this method on the requested resource", ErrorDetails{}};
}

}  // namespace dibs::server
