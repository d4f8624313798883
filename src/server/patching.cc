// The four patch types of PATCH requests.
#include "api/merge/apply.h"
#include "api/merge/strategic_merge.h"
#include "base/strings.h"
#include "json/go_print.h"
#include "json/parse.h"
#include "json/patch.h"
#include "json/yaml.h"
#include "server/field_management.h"
#include "server/writing.h"

namespace dibs::server {
namespace {

Result<PatchType> patch_type(const Context& context, bool custom) {
  std::string type = media_type(context.request.headers.get("Content-Type"));
  if (type == "application/json-patch+json") return PatchType::json;
  if (type == "application/merge-patch+json") return PatchType::merge;
  if (type == "application/apply-patch+yaml") return PatchType::apply;
  if (type == "application/strategic-merge-patch+json" && !custom) return PatchType::strategic;
  if (custom) {
    return Error(
        Code::unsupported_media_type,
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml");
  }
  return Error(Code::unsupported_media_type, "415: Unsupported Media Type", ErrorDetails{});
}

Error bad_patch(std::string_view what, std::string_view type) {
  return Error::bad_request(
      cat("error decoding patch: json: cannot unmarshal ", what, " into Go value of type ", type));
}

Result<Value> parse_patch(const Context& context, std::vector<std::string>& duplicates) {
  json::ParseOptions options;
  options.duplicates = &duplicates;
  options.max_depth = kMaxDepth;
  const Value& given = context.request.value;
  auto patch = given.is_null() ? json::parse(context.request.body, options) : Result<Value>(given);
  if (!patch.ok() && patch.error().message() == "exceeded max depth")
    return Error::bad_request(cat("invalid JSON patch: exceeded max depth of ", kMaxDepth));
  if (!patch.ok()) return Error::bad_request("invalid JSON patch");
  for (auto& path : duplicates) path = cat("duplicate field ", quoted(path));
  return patch;
}

/// A strategic patch is read into Go's structures by another path, which words its faults
/// differently.
Error as_restored(const Error& error, std::string_view shown) {
  constexpr std::string_view kStart = "json: cannot unmarshal ";
  const std::string& message = error.message();
  auto start = message.find(kStart);
  auto type = message.rfind(" of type ");
  if (start == std::string::npos || type == std::string::npos) return error;
  std::string_view from = std::string_view(message).substr(start + kStart.size());
  from = from.substr(0, from.find(' '));
  if (from == "object") from = "map";
  std::string_view to = std::string_view(message).substr(type + 9);
  std::string text = cat("unrecognized type: ", to);
  if (to.starts_with("[]"))
    text = cat("cannot restore slice from ", from);
  else if (to.starts_with("map["))
    text = cat("cannot restore map from ", from);
  else if (to.find('.') != std::string_view::npos)
    text = cat("cannot restore struct from: ", from);
  api::FieldErrors errors;
  errors.invalid(api::Path("patch"), shown, text);
  return errors.to_error("", "", "");
}

Result<> check_name(const Context& context, const Value& object) {
  auto given = object["metadata"]["name"].as_string();
  if (given.empty()) {
    return Error::bad_request(cat("the name of the object (", context.info.name,
                                  " based on URL) was undeterminable: name must be provided"));
  }
  if (given != context.info.name) {
    return Error::bad_request(cat("the name of the object (", given,
                                  ") does not match the name on the URL (", context.info.name,
                                  ")"));
  }
  return success();
}

Result<Value> parse_configuration(Context& context, const Expected& expected) {
  std::vector<std::string> duplicates;
  const Value& sent = context.request.value;
  auto config =
      sent.is_null() ? json::parse_yaml(context.request.body, &duplicates) : Result<Value>(sent);
  if (!config.ok()) {
    bool flow = trim(context.request.body).starts_with('{');
    return Error::bad_request(cat(
        flow ? "error decoding patch: error converting YAML to JSON: " : "error encoding patch: ",
        config.error().message()));
  }
  if (config->is_null()) config = Value::object();
  if (!config->is_object()) {
    return Error::bad_request(
        cat("error decoding patch: error unmarshaling JSON: while decoding JSON: json: cannot "
            "unmarshal ",
            go_kind(*config), " into Go value of type map[string]interface {}"));
  }
  auto kind = (*config)["kind"].as_string();
  auto api_version = (*config)["apiVersion"].as_string();
  if (kind != expected.kind.kind || api_version != expected.kind.api_version()) {
    std::string shown = api_version.find('/') == std::string_view::npos ? cat("/", api_version)
                                                                        : std::string(api_version);
    return Error::bad_request(cat("invalid object type: ", shown, ", Kind=", kind));
  }
  if ((*config)["metadata"].contains("managedFields")) {
    return Error::bad_request("metadata.managedFields must be nil");
  }
  if (!duplicates.empty()) {
    if (context.validation == FieldValidation::strict) {
      return Error::bad_request(cat("error strict decoding YAML: ", join(duplicates, ", ")));
    }
    if (context.validation == FieldValidation::warn && context.warnings.empty()) {
      for (auto& text : duplicates) context.warn(std::move(text));
    }
  }
  return config;
}

/// A configuration need not say where it belongs, but must not say otherwise.
Result<> place(const Context& context, const Resource& resource, Value& config) {
  auto name_space = config["metadata"]["namespace"].as_string();
  if (resource.namespaced && !name_space.empty() && name_space != context.info.name_space)
    return wrong_namespace_error();
  auto given = config["metadata"]["name"].as_string();
  if (!given.empty() && given != context.info.name) {
    return Error::bad_request(cat("the name of the object (", given,
                                  ") does not match the name on the URL (", context.info.name,
                                  ")"));
  }
  config.mut("metadata").set("name", context.info.name);
  return success();
}

Result<Decoded> apply_patch(Context& context, const Expected& expected, const Resource& resource,
                            const Value* served) {
  DIBS_TRY(Value config, parse_configuration(context, expected));
  DIBS_CHECK(place(context, resource, config));
  Resource written = resource;
  written.schema = expected.schema;
  WriterOf writer(context, written);
  api::FieldWriter by = writer.get();
  std::string shown = expected.kind.api_version();
  by.api_version = shown;
  by.kind = expected.kind.kind;
  by.manager = context.target.get("fieldManager");
  DIBS_TRY(api::ApplyResult merged,
           api::apply(by, served, config, query_flag(context.target, "force")));
  if (!served) merged.object.mut("metadata").erase("resourceVersion");
  return decode_patched(context, expected, merged.object, {}, context.request.body);
}

}  // namespace

bool is_apply(const Context& context) {
  return media_type(context.request.headers.get("Content-Type")) == "application/apply-patch+yaml";
}

Result<Patch> read_patch(Context& context, bool custom) {
  DIBS_TRY(const PatchType type, patch_type(context, custom));
  DIBS_CHECK(read_write_options(context, "PatchOptions"));
  Patch patch{type};
  if (type == PatchType::apply) return patch;
  DIBS_TRY(patch.value, parse_patch(context, patch.duplicates));
  return patch;
}

Result<Decoded> patched(Context& context, const Patch& sent, const Expected& expected,
                        const Resource& resource, const Value* served) {
  const auto& [type, patch, duplicates] = sent;
  if (type == PatchType::apply) return apply_patch(context, expected, resource, served);

  Value result;
  switch (type) {
    case PatchType::json: {
      if (!patch.is_array() && !patch.is_null()) {
        return bad_patch(go_kind(patch), "[]handlers.jsonPatchOp");
      }
      for (const Value& op : patch.items()) {
        if (!op.is_object()) return bad_patch(go_kind(op), "handlers.jsonPatchOp");
      }
      auto applied = json::apply_json_patch(*served, patch);
      if (!applied.ok()) {
        const Error& error = applied.error();
        return error.code() == Code::invalid ? Error(Code::invalid, error.message(), ErrorDetails{})
                                             : error;
      }
      result = std::move(applied).value();
      break;
    }
    case PatchType::merge:
      if (patch.is_null()) return Error::bad_request("Invalid JSON Patch");
      if (!patch.is_object()) return bad_patch(go_kind(patch), "map[string]interface {}");
      result = json::apply_merge_patch(*served, patch);
      break;
    default: {
      if (!patch.is_object() && !patch.is_null()) {
        return Error::bad_request(cat("json: cannot unmarshal ", go_kind(patch),
                                      " into Go value of type map[string]interface {}"));
      }
      DIBS_TRY(result, api::strategic_merge(*served, patch, *expected.schema));
      break;
    }
  }
  // Copies within an object make it deeper than any of its patches.
  if (json::deeper_than(result, kMaxDepth)) {
    return Error(Code::invalid, cat("the patched object exceeds the max depth of ", kMaxDepth),
                 ErrorDetails{});
  }
  // A strategic patch is shown as Go prints the map it was read into.
  std::string shown = type == PatchType::strategic ? json::go_value(patch) : context.request.body;
  auto decoded = decode_patched(context, expected, result, duplicates, shown);
  if (!decoded.ok())
    return type == PatchType::strategic ? as_restored(decoded.error(), shown) : decoded;
  DIBS_CHECK(check_name(context, decoded->object));
  return decoded;
}

}  // namespace dibs::server
