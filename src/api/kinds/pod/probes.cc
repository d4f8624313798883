#include "api/kinds/pod/probes.h"

#include "api/kinds/checks.h"
#include "api/kinds/names.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

void check_exec(const Value& exec, const Path& path, FieldErrors& errors) {
  if (exec["command"].empty()) errors.required(path.child("command"));
}

void check_http_get(const Value& get, const Path& path, FieldErrors& errors) {
  if (get["path"].as_string().empty()) errors.required(path.child("path"));
  validate_port_reference(get["port"], path.child("port"), errors);
  if (!is_one_of(get["scheme"].as_string(), {"HTTP", "HTTPS"})) {
    errors.not_supported(path.child("scheme"), Value(get["scheme"].as_string()), {"HTTP", "HTTPS"});
  }
  for (const Value& header : get["httpHeaders"].items()) {
    std::string_view name = header["name"].as_string();
    add_invalid(is_http_header_name(name), Value(name), path.child("httpHeaders"), errors);
  }
}

void check_sleep(const Value& sleep, std::int64_t grace_seconds, const Path& path,
                 FieldErrors& errors) {
  std::int64_t seconds = sleep["seconds"].as_int();
  if (seconds < 0 || seconds > grace_seconds) {
    errors.invalid(path, Value(seconds),
                   cat("must be non-negative and less than terminationGracePeriodSeconds (",
                       grace_seconds, ")"));
  }
}

void validate_handler(const Value& handler, std::int64_t grace_seconds, const Path& path,
                      FieldErrors& errors) {
  bool found = false;
  for (const char* key : {"exec", "httpGet", "tcpSocket", "grpc", "sleep"}) {
    if (!is_set(handler, key)) continue;
    Path at = path.child(key);
    if (found) {
      errors.forbidden(at, "may not specify more than 1 handler type");
      continue;
    }
    found = true;
    std::string_view kind = key;
    const Value& value = handler[key];
    if (kind == "exec")
      check_exec(value, at, errors);
    else if (kind == "httpGet")
      check_http_get(value, at, errors);
    else if (kind == "sleep")
      check_sleep(value, grace_seconds, at, errors);
    else
      validate_port_reference(value["port"], at.child("port"), errors);
  }
  if (!found) errors.required(path, "must specify a handler type");
}

void validate_probe(const Value& probe, std::int64_t grace_seconds, const Path& path,
                    FieldErrors& errors) {
  validate_handler(probe, grace_seconds, path, errors);
  for (const char* key : {"initialDelaySeconds", "timeoutSeconds", "periodSeconds",
                          "successThreshold", "failureThreshold"}) {
    check_nonnegative(probe, key, path, errors);
  }
  const Value& grace = probe["terminationGracePeriodSeconds"];
  if (!grace.is_null() && grace.as_int() <= 0) {
    errors.invalid(path.child("terminationGracePeriodSeconds"), grace, "must be greater than 0");
  }
}

}  // namespace

void validate_port_reference(const Value& port, const Path& path, FieldErrors& errors) {
  if (port.is_string()) {
    add_invalid(is_port_name(port.as_string()), port, path, errors);
  } else {
    add_invalid(is_port_number(port.as_int()), Value(port.as_int()), path, errors);
  }
}

void validate_probes(const Value& container, std::int64_t grace_seconds, const Path& path,
                     FieldErrors& errors) {
  for (const char* key : {"livenessProbe", "readinessProbe", "startupProbe"}) {
    if (!is_set(container, key)) continue;
    const Value& probe = container[key];
    Path at = path.child(key);
    validate_probe(probe, grace_seconds, at, errors);
    if (std::string_view(key) == "readinessProbe") {
      if (is_set(probe, "terminationGracePeriodSeconds")) {
        errors.invalid(at.child("terminationGracePeriodSeconds"),
                       probe["terminationGracePeriodSeconds"],
                       "must not be set for readinessProbes");
      }
    } else if (probe["successThreshold"].as_int() != 1) {
      errors.invalid(at.child("successThreshold"), Value(probe["successThreshold"].as_int()),
                     "must be 1");
    }
  }
}

void validate_lifecycle(const Value& lifecycle, const Value& os, std::int64_t grace_seconds,
                        const Path& path, FieldErrors& errors) {
  for (const char* hook : {"postStart", "preStop"}) {
    if (is_set(lifecycle, hook)) {
      validate_handler(lifecycle[hook], grace_seconds, path.child(hook), errors);
    }
  }
  if (is_set(lifecycle, "stopSignal") && os["name"].as_string().empty()) {
    errors.forbidden(path.child("stopSignal"),
                     "may not be set for containers with empty `spec.os.name`");
  }
}

}  // namespace dibs::api
