#include "server/body.h"

#include <algorithm>

#include "api/merge/managed_fields.h"
#include "api/schema/builtin.h"
#include "api/schema/decode.h"
#include "api/schema/protobuf.h"
#include "base/strings.h"
#include "json/go_print.h"
#include "json/parse.h"
#include "json/yaml.h"
#include "server/custom_kinds.h"
#include "server/field_management.h"
#include "server/negotiate.h"

namespace dibs::server {
namespace {

constexpr std::size_t kEchoBytes = 30;

constexpr std::string_view kTypeMeta =
    "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string "
    "\"json:\\\"kind,omitempty\\\"\" }";

/// A decoded body and the faults that fieldValidation decides about.
struct Raw {
  Value value;
  std::vector<std::string> strict;
  bool strict_complete = false;  // `strict` has the unknown fields too
  bool protobuf = false;
};

std::string unrecognized(const Expected& expected, std::string_view why, std::string_view body) {
  return cat("the object provided is unrecognized (must be of type ", expected.kind.kind,
             "): ", why, " (", echo(body), ")");
}

Error version_kind_error(const Expected& expected, std::string_view fault, std::string_view body) {
  return Error::bad_request(
      unrecognized(expected, cat("couldn't get version/kind; json parse error: ", fault), body));
}

Result<> check_type_meta(const Value& value, const Expected& expected, std::string_view body) {
  if (auto fault = type_meta_fault(value); !fault.empty())
    return version_kind_error(expected, fault, body);
  return success();
}

Result<Raw> parse_json_body(const Expected& expected, std::string_view body) {
  Raw raw;
  std::vector<std::string> duplicates;
  json::ParseOptions options;
  options.duplicates = &duplicates;
  options.max_depth = kMaxDepth;
  auto value = json::parse(body, options);
  if (!value.ok()) return version_kind_error(expected, value.error().message(), body);
  DIBS_CHECK(check_type_meta(*value, expected, body));
  // Duplicates and unknown fields are told in the order of the document, so they are looked for
  // together.
  if (!duplicates.empty() && expected.schema) {
    raw.strict = api::strict_errors_of(body, *expected.schema);
    raw.strict_complete = true;
  } else {
    for (auto& path : duplicates) raw.strict.push_back(cat("duplicate field ", quoted(path)));
  }
  raw.value = std::move(value).value();
  return raw;
}

Result<Raw> parse_yaml_body(const Expected& expected, std::string_view body, bool strict) {
  Raw raw;
  std::vector<std::string> duplicates;
  auto value = json::parse_yaml(body, &duplicates);
  if (!value.ok()) return Error::bad_request(unrecognized(expected, value.error().message(), body));
  DIBS_CHECK(check_type_meta(*value, expected, body));
  if (!duplicates.empty() && strict) {
    raw.strict.push_back(cat("yaml: unmarshal errors:\n  ", join(duplicates, "\n  ")));
  } else {
    raw.strict = std::move(duplicates);
  }
  raw.value = std::move(value).value();
  return raw;
}

Result<Raw> parse_protobuf_body(const Expected& expected, std::string_view body) {
  auto value = parse_protobuf(body);
  if (!value.ok()) return Error::bad_request(unrecognized(expected, value.error().message(), body));
  Raw raw;
  raw.value = std::move(value).value();
  raw.protobuf = true;
  return raw;
}

Result<Raw> parse_bytes(const Context& context, const Expected& expected) {
  std::string_view body = context.request.body;
  DIBS_TRY(BodyFormat format, body_format(context.request.headers.get("Content-Type")));
  if (format == BodyFormat::json) return parse_json_body(expected, body);
  if (format == BodyFormat::yaml)
    return parse_yaml_body(expected, body, context.validation == FieldValidation::strict);
  if (!expected.custom) return parse_protobuf_body(expected, body);
  return Error(Code::unsupported_media_type,
               "the body of the request was in an unknown format - accepted media types include: "
               "application/json, application/yaml");
}

Result<Raw> parse_body(const Context& context, const Expected& expected) {
  if (!context.request.value.is_null()) {
    DIBS_CHECK(check_type_meta(context.request.value, expected, context.request.body));
    Raw given;
    given.value = context.request.value;
    return given;
  }
  DIBS_TRY(Raw raw, parse_bytes(context, expected));
  if (raw.value.is_null()) raw.value = Value::object();
  return raw;
}

std::string internal_group(std::string_view group) {
  if (group.empty()) return "core";
  return std::string(group.substr(0, group.find('.')));
}

Error wrong_version_error(const Expected& expected, std::string_view api_version) {
  return Error::bad_request(cat("the API version in the data (", api_version,
                                ") does not match the expected API version (",
                                expected.kind.api_version(), ")"));
}

Result<> check_kind(const Expected& expected, const Value& raw, std::string_view body) {
  std::string kind(raw["kind"].as_string());
  std::string api_version(raw["apiVersion"].as_string());
  const auto& want = expected.kind;
  if (expected.custom) {
    if (kind.empty() || api_version.empty()) {
      return Error::bad_request(unrecognized(
          expected,
          cat("Object '", kind.empty() ? "Kind" : "apiVersion", "' is missing in '", body, "'"),
          body));
    }
    return success();
  }
  if (kind.empty()) kind = want.kind;
  if (api_version.empty()) api_version = want.api_version();
  auto slash = api_version.find('/');
  if (slash != std::string::npos && api_version.find('/', slash + 1) != std::string::npos) {
    return Error::bad_request(
        unrecognized(expected, cat("unexpected GroupVersion string: ", api_version), body));
  }
  if (kind == want.kind && api_version == want.api_version()) return success();
  std::string group = slash == std::string::npos ? "" : api_version.substr(0, slash);
  std::string version = slash == std::string::npos ? api_version : api_version.substr(slash + 1);
  std::string opening =
      cat(kind, " in version ", quoted(version), " cannot be handled as a ", want.kind, ": ");
  bool registered = api::builtin_schema(group, version, kind, expected.release) != nullptr ||
                    api::is_former_version(api_version, kind);
  if (!registered) {
    return Error::bad_request(cat(opening, "no kind ", quoted(kind), " is registered for version ",
                                  quoted(api_version),
                                  " in scheme \"pkg/api/legacyscheme/scheme.go:30\""));
  }
  if (kind != want.kind) {
    return Error::bad_request(cat(opening, "converting (", version, ".", kind, ") to (",
                                  internal_group(want.group), ".", want.kind,
                                  "): unknown conversion"));
  }
  return wrong_version_error(expected, api_version);
}

/// The second half for custom objects, after what their own version says of their fields.
Result<> check_custom_kind(const Expected& expected, const Value& raw) {
  const auto kind = raw["kind"].as_string();
  const auto api_version = raw["apiVersion"].as_string();
  const auto& want = expected.kind;
  if (api_version != want.api_version()) return wrong_version_error(expected, api_version);
  if (kind == want.kind) return success();
  api::FieldErrors errors;
  errors.invalid(api::Path("kind"), kind, cat("must be ", want.kind));
  return errors.to_error(kind, want.group, raw["metadata"]["name"].as_string());
}

std::string joined(const std::vector<std::string>& pieces) { return join(pieces, ", "); }

void add_warnings(Context& context, std::vector<std::string> strict) {
  for (auto& text : strict) {
    if (std::find(context.warnings.begin(), context.warnings.end(), text) ==
        context.warnings.end()) {
      context.warn(std::move(text));
    }
  }
}

/// By the schema, or by the rules of a custom kind.
Result<Value> decode_by(const Expected& expected, const Value& raw,
                        std::vector<std::string>& strict) {
  if (expected.custom)
    return decode_custom(*expected.custom->custom_kind, expected.kind.version, raw, strict);
  return api::decode(raw, *expected.schema, api::Strictness::warn, strict);
}

void set_type(Value& object, const Expected& expected) {
  object.set("kind", expected.kind.kind);
  object.set("apiVersion", expected.kind.api_version());
}

}  // namespace

std::string type_meta_fault(const Value& value) {
  if (value.is_null()) return {};
  if (!value.is_object()) {
    return cat("json: cannot unmarshal ", json::go_kind(value), " into Go value of type ",
               kTypeMeta);
  }
  for (std::string_view key : {"apiVersion", "kind"}) {
    const Value& field = value[key];
    if (!field.is_null() && !field.is_string()) {
      return cat("json: cannot unmarshal ", json::go_kind(field), " into Go struct field .", key,
                 " of type string");
    }
  }
  return {};
}

/// An envelope's message by its own kind; one of an unknown kind is left empty, check_kind() tells.
Result<Value> parse_protobuf(std::string_view body) {
  DIBS_TRY(api::ProtobufEnvelope envelope, api::open_envelope(body));
  auto slash = envelope.api_version.find('/');
  std::string_view all = envelope.api_version;
  std::string_view group = slash == std::string::npos ? std::string_view() : all.substr(0, slash);
  std::string_view version = slash == std::string::npos ? all : all.substr(slash + 1);
  Value value = Value::object();
  if (const api::Schema* schema = api::builtin_schema(group, version, envelope.kind)) {
    DIBS_TRY(value, api::decode_protobuf(envelope.raw, *schema));
  }
  value.set("kind", envelope.kind);
  value.set("apiVersion", envelope.api_version);
  return value;
}

std::string echo(std::string_view body) {
  if (body.empty()) return "<empty>";
  std::string_view start = body.substr(0, kEchoBytes);
  std::string text = body.front() == '{' ? std::string(start) : hex_encode(start);
  if (body.size() > kEchoBytes) text.append(" ...");
  return text;
}

Expected expected_of(const Resource& resource) {
  return {{resource.group, resource.version, resource.kind},
          resource.schema,
          resource.custom ? &resource : nullptr,
          resource.release};
}

Result<Decoded> decode_body(Context& context, const Expected& expected) {
  DIBS_TRY(Raw raw, parse_body(context, expected));
  DIBS_CHECK(check_kind(expected, raw.value, context.request.body));
  std::vector<std::string> unknown;
  auto object = expected.custom
                    ? decode_custom_body(*expected.custom->custom_kind, raw.value, unknown)
                    : decode_by(expected, raw.value, unknown);
  if (!raw.strict_complete) raw.strict.insert(raw.strict.end(), unknown.begin(), unknown.end());
  std::string_view kind = expected.kind.kind;
  std::string_view version = expected.kind.version;
  if (expected.custom) {
    kind = raw.value["kind"].as_string();
    version = raw.value["apiVersion"].as_string();
    version = version.substr(version.find('/') + 1);
  }
  std::string opening = cat(kind, " in version ", quoted(version), " cannot be handled as a ",
                            expected.kind.kind, ": ");
  if (!object.ok()) return Error::bad_request(cat(opening, object.error().message()));
  if (!raw.strict.empty() && !raw.protobuf) {
    if (context.validation == FieldValidation::strict) {
      return Error::bad_request(cat(opening, "strict decoding error: ", joined(raw.strict)));
    }
    if (context.validation == FieldValidation::warn) add_warnings(context, std::move(raw.strict));
  }
  if (expected.custom) DIBS_CHECK(check_custom_kind(expected, raw.value));
  set_type(*object, expected);
  const bool forgets = api::resets_managed_fields(raw.value);
  return Decoded{std::move(object).value(), std::move(raw.value), forgets};
}

Result<Decoded> decode_patched(Context& context, const Expected& expected, const Value& raw,
                               std::vector<std::string> strict, std::string_view patch) {
  auto refuse = [&](std::string_view why) -> Error {
    api::FieldErrors errors;
    errors.invalid(api::Path("patch"), patch, why);
    return errors.to_error("", "", "");
  };
  if (!raw.is_object()) return refuse("the patch leaves no object");
  auto kind = raw["kind"].as_string();
  auto api_version = raw["apiVersion"].as_string();
  if ((!kind.empty() && kind != expected.kind.kind) ||
      (!api_version.empty() && api_version != expected.kind.api_version())) {
    return refuse(
        cat("no kind ", quoted(kind), " is registered for version ", quoted(api_version)));
  }
  auto object = decode_by(expected, raw, strict);
  if (!object.ok()) return refuse(object.error().message());
  if (!strict.empty()) {
    if (context.validation == FieldValidation::strict) {
      return refuse(cat("strict decoding error: ", joined(strict)));
    }
    if (context.validation == FieldValidation::warn) add_warnings(context, std::move(strict));
  }
  set_type(*object, expected);
  return Decoded{std::move(object).value(), raw, api::resets_managed_fields(raw)};
}

Result<> read_write_options(Context& context, std::string_view options_kind) {
  api::FieldErrors errors;
  const net::Target& target = context.target;
  const auto manager = target.get("fieldManager");
  if (options_kind == "PatchOptions") {
    const bool apply =
        media_type(context.request.headers.get("Content-Type")) == "application/apply-patch+yaml";
    if (apply && manager.empty())
      errors.required(api::Path("fieldManager"), "is required for apply patch");
    if (!apply && target.has("force"))
      errors.forbidden(api::Path("force"), "may not be specified for non-apply patch");
  }
  if (manager.size() > 128) errors.too_long(api::Path("fieldManager"), 128);
  for (std::size_t i = 0; i < manager.size(); ++i) {
    auto c = static_cast<unsigned char>(manager[i]);
    if (c < 0x20 || c == 0x7f) {
      std::string hex = hex_encode(std::string(1, manager[i]));
      errors.invalid(api::Path("fieldManager"), manager,
                     cat("invalid character U+00", to_upper(hex), " (at position ", i, ")"));
    }
  }
  Value dry_run = Value::array();
  for (const auto& [key, value] : target.query) {
    if (key == "dryRun") dry_run.push(value);
  }
  for (const Value& item : dry_run.items()) {
    if (item.as_string() != "All") {
      errors.not_supported(api::Path("dryRun"), dry_run, {"All"});
      break;
    }
    context.dry_run = true;
  }
  auto validation = context.target.get("fieldValidation");
  if (validation == "Strict") {
    context.validation = FieldValidation::strict;
  } else if (validation == "Ignore") {
    context.validation = FieldValidation::ignore;
  } else if (!validation.empty() && validation != "Warn") {
    errors.not_supported(api::Path("fieldValidation"), validation,
                         {"", "Ignore", "Strict", "Warn"});
  }
  if (!errors.empty()) return errors.to_error(options_kind, "meta.k8s.io", "");
  context.field_manager = field_manager_of(context.request, context.target);
  return success();
}

}  // namespace dibs::server
