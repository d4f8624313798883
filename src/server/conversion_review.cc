#include "server/conversion_review.h"

#include "api/kinds/metadata.h"
#include "base/strings.h"
#include "json/go_print.h"
#include "server/plugins/webhooks_review.h"

namespace dibs::server {
namespace {

constexpr std::string_view kGroup = "apiextensions.k8s.io/";
constexpr std::string_view kCall = "call";
constexpr std::string_view kMalformed = "malformed_response";
constexpr std::string_view kPartial = "partial_response";
constexpr std::string_view kInvalid = "invalid_converted_object";

ConversionAnswer failed(std::string why, std::string_view type) {
  ConversionAnswer out;
  out.fault = ConversionFault{std::move(why), type};
  return out;
}

/// Of an answer that came, but is none to the question; "" when it is.
std::string answer_fault(std::string_view version, std::string_view uid, const Value& review) {
  const bool strict = version == "v1";  // v1beta1 was never looked at closely
  const Value expected =
      Value::object({{"apiVersion", cat(kGroup, version)}, {"kind", "ConversionReview"}});
  if (strict && shown_kind(review) != shown_kind(expected)) {
    return cat("expected webhook response of ", shown_kind(expected), ", got ", shown_kind(review));
  }
  const Value& response = review["response"];
  if (response.is_null()) return "no response provided";
  if (!response.is_object()) {
    return cat("json: cannot unmarshal ", json::go_kind(response),
               " into Go struct field ConversionReview.response of type ", version,
               ".ConversionResponse");
  }
  if (strict && response["uid"].as_string() != uid) {
    return cat("expected response.uid=", quoted(uid), ", got ",
               quoted(response["uid"].as_string()));
  }
  const std::string_view status = response["result"]["status"].as_string();
  if (status == "Success") return {};
  const std::string_view message = response["result"]["message"].as_string();
  if (!message.empty()) return std::string(message);
  return cat("response.result.status was '", status, "', not 'Success'");
}

std::string same(std::string_view what, std::string_view was, std::string_view is) {
  if (was == is) return {};
  return cat("must have the same ", what, ": ", was, " != ", is);
}

/// What says which object it is must not change.
std::string identity_fault(const Value& original, const Value& converted) {
  const Value& was = original["metadata"];
  const Value& is = converted["metadata"];
  for (const auto& [what, key] : {std::pair<std::string_view, std::string_view>{"name", "name"},
                                  {"namespace", "namespace"},
                                  {"UID", "uid"}}) {
    std::string fault = same(what, was[key].as_string(), is[key].as_string());
    if (!fault.empty()) return fault;
  }
  return {};
}

std::string joined(const api::FieldErrors& errors) {
  std::vector<std::string> texts;
  for (const api::FieldError& error : errors.errors()) {
    texts.push_back(cat(error.field, ": ", error.text));
  }
  return texts.size() == 1 ? texts[0] : cat("[", join(texts, ", "), "]");
}

std::string texts_fault(std::string_view key, const Value& texts, const Value& before) {
  if (!texts.is_object()) {
    return cat("invalid metadata.", key, " of type ", json::go_type(texts), " in converted object");
  }
  for (const auto& [name, value] : texts.members()) {
    if (!value.is_string()) {
      return cat("metadata.", key, "[", name, "] must be a string, but is ", json::go_type(value),
                 " in converted object");
    }
  }
  if (texts == before) return {};
  api::FieldErrors errors;
  if (key == "labels") {
    api::validate_labels(texts, api::Path("metadata").child("labels"), errors);
  } else {
    api::validate_annotations(texts, api::Path("metadata").child("annotation"), errors);
  }
  return errors.empty() ? std::string() : joined(errors);
}

/// Everything of metadata is the original's, but for labels and annotations.
std::string restore_metadata(const Value& original, Value& converted) {
  const Value& given = converted["metadata"];
  if (given.is_null()) return "missing metadata in converted object";
  Value metadata = original["metadata"];
  for (std::string_view key : {"labels", "annotations"}) {
    const Value texts = given[key];
    if (texts.is_null()) {
      metadata.erase(key);
      continue;
    }
    if (std::string fault = texts_fault(key, texts, metadata[key]); !fault.empty()) return fault;
    metadata.set(key, texts);
  }
  converted.set("metadata", std::move(metadata));
  return {};
}

/// The rest of "conversion webhook for … returned …", or "" when the object is good.
std::string object_fault(std::string_view api_version, const Value& original, Value& converted,
                         std::optional<std::size_t> index) {
  const std::string_view which = index ? "converted object" : "object";
  const std::string where = index ? cat(" at index ", *index) : "";
  const auto invalid = [&](std::string_view why) {
    return cat("returned invalid ", which, where, ": ", why);
  };
  const auto wrong_kind = [&](std::string_view why) {
    return cat("returned invalid ", which, index ? where : " at index 0", ": ", why);
  };
  if (!converted.is_object()) {
    return invalid(cat("json: cannot unmarshal ", json::go_kind(converted),
                       " into Go value of type map[string]interface {}"));
  }
  const std::string_view got = converted["apiVersion"].as_string();
  if (got != api_version) {
    return wrong_kind(cat("invalid groupVersion (expected ", api_version, ", received ", got, ")"));
  }
  if (!(converted["kind"] == original["kind"])) {
    return wrong_kind(cat("invalid kind (expected ", original["kind"].as_string(), ", received ",
                          converted["kind"].as_string(), ")"));
  }
  const Value& metadata = converted["metadata"];
  if (!metadata.is_null() && !metadata.is_object()) {
    return cat("returned invalid metadata: invalid metadata of type ", json::go_type(metadata),
               " in converted object");
  }
  if (std::string fault = identity_fault(original, converted); !fault.empty())
    return invalid(fault);
  if (std::string fault = restore_metadata(original, converted); !fault.empty()) {
    return cat("returned invalid metadata", where.empty() ? "" : " in object", where, ": ", fault);
  }
  return {};
}

}  // namespace

Value make_conversion(std::string_view version, std::string_view uid, std::string_view api_version,
                      const std::vector<Value>& objects) {
  Value list = Value::array();
  for (const Value& object : objects) list.push(object);
  return Value::object({{"kind", "ConversionReview"},
                        {"apiVersion", cat(kGroup, version)},
                        {"request", Value::object({{"uid", uid},
                                                   {"desiredAPIVersion", api_version},
                                                   {"objects", std::move(list)}})}});
}

ConversionAnswer read_conversion(std::string_view version, std::string_view uid,
                                 std::string_view api_version, const std::vector<Value>& objects,
                                 const net::Response& response) {
  const std::string opening = cat("conversion webhook for ", shown_kind(objects.front()), " ");
  const WebhookAnswer answered = read_webhook_answer(response, cat(version, ".ConversionReview"));
  if (answered.fault) return failed(cat(opening, "failed: ", answered.fault->why), kCall);
  if (std::string fault = answer_fault(version, uid, answered.review); !fault.empty()) {
    return failed(cat(opening, "failed: ", fault), kMalformed);
  }
  const Value& converted = answered.review["response"]["convertedObjects"];
  if (converted.size() != objects.size()) {
    return failed(
        cat(opening, "returned ", converted.size(), " objects, expected ", objects.size()),
        kPartial);
  }
  ConversionAnswer out;
  const bool single = objects.size() == 1;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    Value object = converted[i];
    const std::string fault =
        object_fault(api_version, objects[i], object, single ? std::nullopt : std::optional(i));
    if (!fault.empty()) return failed(cat(opening, fault), kInvalid);
    out.objects.push_back(std::move(object));
  }
  return out;
}

}  // namespace dibs::server
