#include "server/reviews.h"

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

void check_attributes(const Value& spec, FieldErrors& errors) {
  bool resource = spec["resourceAttributes"].is_object();
  bool path = spec["nonResourceAttributes"].is_object();
  if (resource == path) {
    Value shown;
    if (path) {
      shown = Value::object({{"Path", spec["nonResourceAttributes"]["path"]},
                             {"Verb", spec["nonResourceAttributes"]["verb"]}});
    }
    errors.invalid(Path("spec"), shown,
                   "exactly one of nonResourceAttributes or resourceAttributes must be specified");
  }
}

}  // namespace

Result<Response> Reviews::handle(Context& context) {
  const Resource& resource = *context.resource;
  DIBS_CHECK(read_write_options(context, "CreateOptions"));
  DIBS_TRY(Decoded body, decode_body(context, expected_of(resource)));
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
  review.mut("metadata").set("creationTimestamp", format_rfc3339(context.now));
  review.set("status", Value::object({{"userInfo", auth::user_value(context.user)}}));
  return review;
}

Result<Value> Reviews::subject_access(Context& context, const Value& review) {
  const Resource& resource = *context.resource;
  const Value& spec = review["spec"];
  bool self = resource.rules->question == api::Question::may_i;
  bool local = resource.rules->question == api::Question::may_he_here;
  FieldErrors errors;
  check_attributes(spec, errors);
  if (!self && spec["user"].as_string().empty() && spec["groups"].empty()) {
    errors.invalid(Path("spec").child("user"), "",
                   "at least one of user or group must be specified");
  }
  if (local && spec["resourceAttributes"].is_object() &&
      spec["resourceAttributes"]["namespace"].as_string() != context.info.name_space) {
    Path where("spec");
    Path inside = where.child("resourceAttributes");
    errors.invalid(inside.child("namespace"), spec["resourceAttributes"]["namespace"].str(),
                   "must match metadata.namespace");
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
  Value answer = review;
  if (local) answer.mut("metadata").set("namespace", context.info.name_space);
  answer.set("status", std::move(status));
  return answer;
}

Result<Value> Reviews::self_rules(Context& context, const Value& review) {
  auto name_space = review["spec"]["namespace"].as_string();
  if (name_space.empty()) return Error::bad_request("no namespace on request");
  Value answer = review;
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
