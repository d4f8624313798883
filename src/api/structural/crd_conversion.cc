#include "api/structural/crd_conversion.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "api/kinds/names.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

using json::Value;

bool names_known_review(const Value& versions) {
  const auto items = versions.items();
  return std::any_of(items.begin(), items.end(), [](const Value& version) {
    return version.as_string() == "v1" || version.as_string() == "v1beta1";
  });
}

void validate_review_versions(const Value& versions, bool demand_known, const Path& path,
                              FieldErrors& errors) {
  if (versions.empty()) {
    errors.required(path);
    return;
  }
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < versions.size(); ++i) {
    if (!seen.insert(versions[i].as_string()).second) {
      errors.invalid(path.index(i), versions[i], "duplicate version");
      continue;
    }
    add_invalid(is_dns1035_label(versions[i].as_string()), versions[i], path.index(i), errors);
  }
  if (demand_known && !names_known_review(versions)) {
    errors.invalid(path, versions, "must include at least one of v1, v1beta1");
  }
}

void validate_url(std::string_view url, const Path& path, FieldErrors& errors) {
  constexpr std::string_view kForm = "; desired format: https://host[/path]";
  const auto colon = url.find(':');
  const auto scheme =
      to_lower(colon == std::string_view::npos ? std::string_view() : url.substr(0, colon));
  std::string_view rest = colon == std::string_view::npos ? url : url.substr(colon + 1);
  auto cut = [&](char mark) {
    const auto at = rest.find(mark);
    if (at == std::string_view::npos) return std::string_view();
    const auto tail = rest.substr(at + 1);
    rest = rest.substr(0, at);
    return tail;
  };
  const auto fragment = cut('#');
  const auto query = cut('?');
  std::string_view host;
  std::string_view user;
  if (rest.starts_with("//")) {
    host = rest.substr(2, rest.find('/', 2) - 2);
    if (const auto at = host.rfind('@'); at != std::string_view::npos) {
      user = host.substr(0, at);
      host = host.substr(at + 1);
    }
  }
  if (scheme != "https")
    errors.invalid(path, scheme, cat("'https' is the only allowed URL scheme", kForm));
  if (host.empty()) errors.invalid(path, host, cat("host must be specified", kForm));
  if (!user.empty()) errors.invalid(path, user, "user information is not permitted in the URL");
  if (!fragment.empty()) errors.invalid(path, fragment, "fragments are not permitted in the URL");
  if (!query.empty()) errors.invalid(path, query, "query parameters are not permitted in the URL");
}

void validate_service_path(std::string_view text, const Path& path, FieldErrors& errors) {
  if (text.empty() || text == "/") return;
  if (text == "//") {
    errors.invalid(path, text, "segment[0] may not be empty");
    return;
  }
  if (!text.starts_with('/')) errors.invalid(path, text, "must start with a '/'");
  auto rest = text.substr(1);
  if (rest.ends_with('/')) rest.remove_suffix(1);
  const auto steps = split(rest, '/');
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].empty()) {
      errors.invalid(path, text, cat("segment[", i, "] may not be empty"));
      continue;
    }
    for (const std::string& fault : is_dns1123_subdomain(steps[i])) {
      errors.invalid(path, text, cat("segment[", i, "]: ", fault));
    }
  }
}

void validate_service(const Value& service, const Path& path, FieldErrors& errors) {
  // Upstream hands over name and namespace in the wrong order, so each is reported as the other.
  if (service["namespace"].as_string().empty()) errors.required(path.child("name"));
  if (service["name"].as_string().empty()) errors.required(path.child("namespace"));
  if (const auto faults = is_port_number(service["port"].as_int()); !faults.empty()) {
    errors.invalid(path.child("port"), service["port"].as_int(),
                   cat("port is not valid: ", join(faults, ", ")));
  }
  validate_service_path(service["path"].as_string(), path.child("path"), errors);
}

bool is_certificate_bundle(const Value& bundle) {
  std::string pem;
  return base64_decode(bundle.as_string(), pem) &&
         pem.find("-----BEGIN CERTIFICATE-----") != std::string::npos;
}

void validate_client(const Value& client, const Value& old_client, bool established,
                     const Path& path, FieldErrors& errors) {
  const Value& url = client["url"];
  const Value& service = client["service"];
  if (url.is_null() == service.is_null()) {
    errors.required(path, "exactly one of url or service is required");
  } else if (!url.is_null()) {
    validate_url(url.as_string(), path.child("url"), errors);
  } else {
    validate_service(service, path.child("service"), errors);
  }
  const Value& bundle = client["caBundle"];
  const Value& old_bundle = old_client["caBundle"];
  const bool was_bad = !old_bundle.as_string().empty() && !is_certificate_bundle(old_bundle);
  if (established && !was_bad && !bundle.as_string().empty() && !is_certificate_bundle(bundle)) {
    errors.invalid(path.child("caBundle"), bundle,
                   "unable to load root certificates: unable to parse bytes as PEM block");
  }
}

}  // namespace

void validate_conversion(const Value& conversion, const Value* old, bool established,
                         const Path& path, FieldErrors& errors) {
  if (conversion.is_null()) return;
  const Value& strategy = conversion["strategy"];
  if (strategy.as_string().empty()) {
    errors.required(path.child("strategy"));
  } else if (strategy.as_string() != "None" && strategy.as_string() != "Webhook") {
    errors.not_supported(path.child("strategy"), strategy, {"None", "Webhook"});
  }
  const Value& client = conversion["webhook"]["clientConfig"];
  const Value& reviews = conversion["webhook"]["conversionReviewVersions"];
  if (strategy.as_string() == "Webhook") {
    const Value& old_webhook = old == nullptr ? json::null_value() : (*old)["webhook"];
    if (client.is_null()) {
      errors.required(path.child("webhookClientConfig"),
                      "required when strategy is set to Webhook");
    } else {
      validate_client(client, old_webhook["clientConfig"], established,
                      path.child("webhookClientConfig"), errors);
    }
    const Value& old_reviews = old_webhook["conversionReviewVersions"];
    validate_review_versions(reviews, old_reviews.empty() || names_known_review(old_reviews),
                             path.child("conversionReviewVersions"), errors);
    return;
  }
  constexpr std::string_view kText = "should not be set when strategy is not set to Webhook";
  if (!client.is_null()) errors.forbidden(path.child("webhookClientConfig"), kText);
  if (!reviews.empty()) errors.forbidden(path.child("conversionReviewVersions"), kText);
}

}  // namespace dibs::api
