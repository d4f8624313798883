#include "api/structural/embedded.h"

#include <utility>

#include "api/kinds/metadata.h"
#include "api/kinds/names.h"
#include "api/schema/builtin.h"
#include "api/schema/decode.h"
#include "base/strings.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

using json::Value;

std::string shown(const Value& value) {
  return value.is_string() ? quoted(value.as_string()) : json::write(value, true);
}

/// "spec.a", "spec.m[key]", "spec.l[0]": how a fault inside of an embedded resource names its
/// place.
std::string child_path(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : cat(path, ".", key);
}

class EmbeddedDecoder {
 public:
  explicit EmbeddedDecoder(std::vector<std::string>& unknown) : unknown_(unknown) {}

  Result<> run(Value& value, const Schema& schema, const std::string& path, bool is_embedded) {
    if (schema.rules == nullptr) return success();
    if (value.is_object()) {
      std::vector<std::string> keys;
      for (const auto& [key, member] : value.members()) keys.emplace_back(key);
      for (const std::string& key : keys) {
        if (is_embedded) DIBS_CHECK(decode_meta_field(value, key, path));
        const Field* field = schema.field(key);
        if (field != nullptr) {
          DIBS_CHECK(change(value, key, *field->schema, child_path(path, key)));
        } else if (schema.rules->other != nullptr) {
          DIBS_CHECK(change(value, key, *schema.rules->other, cat(path, "[", key, "]")));
        }
      }
    } else if (value.is_array() && schema.rules->items != nullptr) {
      const Schema& items = *schema.rules->items;
      for (std::size_t i = 0; i < value.size(); ++i) {
        Value copy = value[i];
        DIBS_CHECK(run(copy, items, cat(path, "[", i, "]"), items.embedded_resource));
        if (!copy.same_node(value[i])) value.mut(i) = std::move(copy);
      }
    }
    return success();
  }

 private:
  Result<> decode_meta_field(Value& value, const std::string& key, const std::string& path) {
    const Value& member = value[key];
    if (key == "apiVersion" || key == "kind") {
      if (member.is_string()) return success();
      return Error::bad_request(
          cat(child_path(path, key), ": Invalid value: ", shown(member), ": must be a string"));
    }
    if (key != "metadata") return success();
    auto metadata = decode_metadata(member, child_path(path, "metadata"), unknown_);
    if (!metadata.ok()) {
      return Error::bad_request(cat(child_path(path, "metadata"), ": Invalid value: ",
                                    shown(member), ": ", metadata.error().message()));
    }
    value.set("metadata", *std::move(metadata));
    return success();
  }

  Result<> change(Value& object, const std::string& key, const Schema& schema,
                  const std::string& path) {
    const Value& member = object[key];
    if (!member.is_object() && !member.is_array()) return success();
    Value copy = member;
    DIBS_CHECK(run(copy, schema, path, schema.embedded_resource));
    if (!copy.same_node(object[key])) object.set(key, std::move(copy));
    return success();
  }

  std::vector<std::string>& unknown_;
};

Faults group_version_faults(std::string_view text) {
  const auto slashes = std::count(text.begin(), text.end(), '/');
  if (slashes <= 1) return {};
  return {cat("unexpected GroupVersion string: ", text)};
}

void judge_resource(const Value& value, const Path& path, FieldErrors& errors) {
  if (!value.contains("apiVersion")) errors.required(path.child("apiVersion"));
  if (!value.contains("kind")) errors.required(path.child("kind"));
  for (const auto& [key, member] : value.members()) {
    const Path at = path.child(key);
    if (key == "apiVersion" || key == "kind") {
      const auto text = member.as_string();
      if (!member.is_string()) {
        errors.invalid(at, member, "must be a string");
      } else if (text.empty()) {
        errors.invalid(at, member, "must not be empty");
      } else if (key == "apiVersion") {
        add_invalid(group_version_faults(text), member, at, errors);
      } else if (const auto faults = is_dns1035_label(to_lower(text)); !faults.empty()) {
        errors.invalid(at, member,
                       cat("may have mixed case, but should otherwise match: ", join(faults, ",")));
      }
    } else if (key == "metadata") {
      std::vector<std::string> ignored;
      auto metadata = decode_metadata(member, "metadata", ignored);
      if (!metadata.ok()) {
        errors.invalid(at, member, metadata.error().message());
        continue;
      }
      // A name is not demanded of an embedded object, only that it be one.
      if ((*metadata)["name"].as_string().empty()) metadata->set("name", "fakename");
      const bool is_namespaced = !(*metadata)["namespace"].as_string().empty();
      FieldErrors found;
      validate_metadata(Value::object({{"metadata", *metadata}}), is_namespaced,
                        NameRule::path_segment, found, false);
      for (const FieldError& error : found.errors())
        errors.add(error.fault, path.child(error.field), error.text);
    }
  }
}

void judge(const Value& value, const Schema& schema, const Path& path, bool is_embedded,
           FieldErrors& errors) {
  if (schema.rules == nullptr) return;
  if (value.is_object()) {
    if (is_embedded) judge_resource(value, path, errors);
    for (const auto& [key, member] : value.members()) {
      if (const Field* field = schema.field(key)) {
        judge(member, *field->schema, path.child(key), field->schema->embedded_resource, errors);
      } else if (const Schema* other = schema.rules->other) {
        judge(member, *other, path.key(key), other->embedded_resource, errors);
      }
    }
  } else if (value.is_array() && schema.rules->items != nullptr) {
    const Schema& items = *schema.rules->items;
    for (std::size_t i = 0; i < value.size(); ++i) {
      judge(value[i], items, path.index(i), items.embedded_resource, errors);
    }
  }
}

}  // namespace

Result<Value> decode_metadata(const Value& raw, std::string_view path,
                              std::vector<std::string>& unknown) {
  static const Schema* const schema = builtin_type("meta/v1.ObjectMeta");
  std::vector<std::string> told;
  DIBS_TRY(auto metadata, decode(raw, *schema, Strictness::warn, told));
  constexpr std::string_view kBegin = "unknown field \"";
  for (std::string_view text : told) {
    if (!text.starts_with(kBegin)) continue;
    text.remove_prefix(kBegin.size());
    text.remove_suffix(1);
    unknown.push_back(cat(path, ".", text));
  }
  return metadata;
}

Result<> decode_embedded(Value& object, const Schema& schema, std::vector<std::string>& unknown) {
  return EmbeddedDecoder(unknown).run(object, schema, "", false);
}

void validate_embedded(const Value& object, const Schema& schema, FieldErrors& errors) {
  judge(object, schema, Path(), false, errors);
}

void validate_embedded_value(const Value& value, const Schema& schema, const Path& path,
                             FieldErrors& errors) {
  judge(value, schema, path, schema.embedded_resource, errors);
}

}  // namespace dibs::api
