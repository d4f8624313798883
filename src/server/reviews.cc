#include "server/reviews.h"

#include "api/kinds/checks.h"
#include "api/kinds/metadata.h"
#include "api/kinds/names.h"
#include "api/merge/selectors.h"
#include "api/schema/builtin.h"
#include "api/schema/go_print.h"
#include "base/strings.h"
#include "server/auth/tokens.h"
#include "server/body.h"
#include "server/field_management.h"
#include "server/presenting.h"
#include "server/status.h"

namespace dibs::server {
namespace {

using api::FieldErrors;
using api::Path;

std::vector<std::string> strings_of(const Value& list) {
  std::vector<std::string> out;
  for (const Value& item : list.items()) out.push_back(item.str());
  return out;
}

/// The attributes that spec.resourceAttributes or spec.nonResourceAttributes describe.
auth::RequestAttributes attributes_of(const Value& spec) {
  auth::RequestAttributes what;
  const Value& resource = spec["resourceAttributes"];
  if (resource.is_object()) {
    what.verb = resource["verb"].str();
    what.group = resource["group"].str();
    what.version = resource["version"].str();
    what.resource = resource["resource"].str();
    what.subresource = resource["subresource"].str();
    what.name_space = resource["namespace"].str();
    what.name = resource["name"].str();
    what.field_selector = resource["fieldSelector"]["rawSelector"].str();
    what.label_selector = resource["labelSelector"]["rawSelector"].str();
  } else {
    what.is_resource = false;
    what.verb = spec["nonResourceAttributes"]["verb"].str();
    what.path = spec["nonResourceAttributes"]["path"].str();
  }
  return what;
}

Value shown_path(const Value& spec) {
  const Value& what = spec["nonResourceAttributes"];
  if (!what.is_object()) return Value();
  return Value::object({{"Path", what["path"].str()}, {"Verb", what["verb"].str()}});
}

void check_attributes(const Value& spec, FieldErrors& errors) {
  if (spec["resourceAttributes"].is_object() == spec["nonResourceAttributes"].is_object()) {
    errors.invalid(Path("spec"), shown_path(spec),
                   "exactly one of nonResourceAttributes or resourceAttributes must be specified");
  }
}

/// Operators that are not known are no fault: clients may be newer.
void check_requirement(const Value& requirement, const Path& path, bool of_labels,
                       FieldErrors& errors) {
  const Value& values = requirement["values"];
  if (!of_labels && requirement["key"].as_string().empty())
    errors.required(path.child("key"), "must be specified");
  const std::string_view op = requirement["operator"].as_string();
  if ((op == "In" || op == "NotIn") && values.empty()) {
    errors.required(path.child("values"), "must be specified when `operator` is 'In' or 'NotIn'");
  } else if ((op == "Exists" || op == "DoesNotExist") && !values.empty()) {
    errors.forbidden(path.child("values"),
                     "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
  }
  if (!of_labels) return;
  api::validate_label_key(requirement["key"].as_string(), path.child("key"), errors);
  const Path list = path.child("values");
  for (std::size_t i = 0; i < values.size(); ++i) {
    api::add_invalid(is_label_value(values[i].as_string()), values[i], list.index(i), errors);
  }
}

/// A selector is given as text or as requirements.
void check_selector(const Value& selector, const Path& path, bool of_labels, FieldErrors& errors) {
  if (!selector.is_object()) return;
  const Value& raw = selector["rawSelector"];
  const Value& requirements = selector["requirements"];
  if (!raw.as_string().empty() && !requirements.empty()) {
    errors.invalid(path.child("rawSelector"), raw,
                   "may not specified at the same time as requirements");
  }
  const Path list = path.child("requirements");
  if (raw.as_string().empty() && requirements.empty()) {
    errors.required(
        list, cat("when ", path.str(), " is specified, requirements or rawSelector is required"));
  }
  for (std::size_t i = 0; i < requirements.size(); ++i) {
    check_requirement(requirements[i], list.index(i), of_labels, errors);
  }
}

void check_selectors(const Value& spec, FieldErrors& errors) {
  const Value& what = spec["resourceAttributes"];
  const Path path("spec.resourceAttributes");
  check_selector(what["fieldSelector"], path.child("fieldSelector"), false, errors);
  check_selector(what["labelSelector"], path.child("labelSelector"), true, errors);
}

/// A review has no metadata but, where it is asked in a namespace, that.
void check_no_metadata(const Value& review, bool local, FieldErrors& errors) {
  const Value& metadata = review["metadata"];
  for (const auto& [key, value] : metadata.members()) {
    // Releases of old write that there is no creationTimestamp.
    if (value.is_null() || key == "managedFields" || (local && key == "namespace")) continue;
    Value shown = api::in_go_order(metadata, *api::builtin_type("meta/v1.ObjectMeta"));
    for (std::string_view map : {"labels", "annotations"}) {
      if (api::is_set(shown, map)) shown.set(map, api::sorted_map(shown[map]));
    }
    errors.invalid(Path("metadata"), shown,
                   local ? "must be empty except for namespace" : "must be empty");
    return;
  }
}

/// What of the selectors an authorizer is not asked with, since it cannot be read.
std::string evaluation_error(const Value& what) {
  std::vector<std::string> texts;
  const auto tell = [&](std::string_view selector, std::size_t read, std::size_t unread) {
    if (unread == 0) return;
    texts.push_back(cat("spec.resourceAttributes.", selector, read > 0 ? " partially" : "",
                        " ignored due to parse error"));
  };
  const Value& fields = what["fieldSelector"];
  std::size_t read = 0;
  std::size_t unread = 0;
  if (!api::parse_field_selector(fields["rawSelector"].as_string()).ok()) ++unread;
  for (const Value& one : fields["requirements"].items()) {
    const bool known = one["operator"] == Value("In") || one["operator"] == Value("NotIn");
    ++(known && one["values"].size() == 1 ? read : unread);
  }
  tell("fieldSelector", read, unread);
  const Value& labels = what["labelSelector"];
  read = 0;
  unread = 0;
  if (!api::parse_label_selector(labels["rawSelector"].as_string()).ok()) ++unread;
  for (const Value& one : labels["requirements"].items()) {
    const Value selector = Value::object({{"matchExpressions", Value::array({one})}});
    ++(api::to_label_selector(selector).ok() ? read : unread);
  }
  tell("labelSelector", read, unread);
  return join(texts, "; ");
}

}  // namespace

Result<Response> Reviews::handle(Context& context) {
  const Resource& resource = *context.resource;
  DIBS_CHECK(read_write_options(context, "CreateOptions"));
  DIBS_TRY(Decoded body, decode_body(context, expected_of(resource)));
  if (!resource.namespaced) body.object.mut("metadata").erase("namespace");
  Value review =
      track_write(context, resource, nullptr, std::move(body.object), body.forgets_managers);
  DIBS_TRY(Value answer, answered(context, review));
  return present_value(context, 201, answer);
}

Result<Value> Reviews::answered(Context& context, const Value& review) {
  switch (context.resource->rules->question) {
    case api::Question::token:
      return token(review);
    case api::Question::who_am_i:
      return sender(context, review);
    case api::Question::my_rules:
      return self_rules(context, review);
    default:
      return subject_access(context, review);
  }
}

Value Reviews::sender(const Context& context, Value review) const {
  review.set("metadata", Value::object({{"creationTimestamp", format_rfc3339(context.now)}}));
  review.set("status", Value::object({{"userInfo", auth::user_value(context.user)}}));
  return review;
}

Result<Value> Reviews::subject_access(Context& context, const Value& review) {
  const Resource& resource = *context.resource;
  const Value& spec = review["spec"];
  bool self = resource.rules->question == api::Question::may_i;
  bool local = resource.rules->question == api::Question::may_he_here;
  auto given = review["metadata"]["namespace"].as_string();
  if (local && !given.empty() && given != context.info.name_space) return wrong_namespace_error();
  FieldErrors errors;
  check_attributes(spec, errors);
  if (!self && spec["user"].as_string().empty() && spec["groups"].empty()) {
    errors.invalid(Path("spec").child("user"), "",
                   "at least one of user or group must be specified");
  }
  check_selectors(spec, errors);
  check_no_metadata(review, local, errors);
  if (local && spec["resourceAttributes"].is_object() &&
      spec["resourceAttributes"]["namespace"].as_string() != context.info.name_space) {
    Path where("spec");
    Path inside = where.child("resourceAttributes");
    errors.invalid(inside.child("namespace"), spec["resourceAttributes"]["namespace"].str(),
                   "must match metadata.namespace");
  }
  if (local && spec["nonResourceAttributes"].is_object()) {
    errors.invalid(Path("spec.nonResourceAttributes"), shown_path(spec),
                   "disallowed on this kind of request");
  }
  if (!errors.empty()) return errors.to_error("", resource.group, "");

  auth::RequestAttributes what = attributes_of(spec);
  if (self) {
    what.user = context.user;
  } else {
    what.user.name = spec["user"].str();
    what.user.uid = spec["uid"].str();
    what.user.groups = strings_of(spec["groups"]);
    for (const auto& [key, values] : spec["extra"].members()) {
      what.user.extra[std::string(key)] = strings_of(values);
    }
  }
  auth::Decision decision = access_.authorize(what);
  Value status = Value::object({{"allowed", decision.allowed}});
  if (!decision.reason.empty()) status.set("reason", decision.reason);
  if (auto ignored = evaluation_error(spec["resourceAttributes"]); !ignored.empty())
    status.set("evaluationError", std::move(ignored));
  Value answer = review;
  if (local) answer.mut("metadata").set("namespace", context.info.name_space);
  answer.set("status", std::move(status));
  return answer;
}

Result<Value> Reviews::self_rules(Context& context, const Value& review) {
  auto name_space = review["spec"]["namespace"].as_string();
  if (name_space.empty()) return Error::bad_request("no namespace on request");
  Value answer = review;
  answer.set("metadata", Value::object());
  answer.set("spec", Value::object());
  answer.set("status", access_.rules_for(context.user, name_space));
  return answer;
}

Result<Value> Reviews::token(const Value& review) {
  auto token = review["spec"]["token"].as_string();
  if (token.empty())
    return Error::bad_request("token is required for TokenReview in authentication");
  Value answer = review;
  answer.set("status", access_.review_token(token, strings_of(review["spec"]["audiences"])));
  return answer;
}

}  // namespace dibs::server
