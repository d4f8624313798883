#include "node/pods/trust_anchors.h"

#include <set>
#include <vector>

#include "base/strings.h"

namespace dibs::node {
namespace {

using json::Value;

const client::Gvr kBundles{"certificates.k8s.io", "v1", "clustertrustbundles"};
constexpr std::string_view kBegin = "-----BEGIN CERTIFICATE-----";
constexpr std::string_view kEnd = "-----END CERTIFICATE-----";

}  // namespace

std::string selector_query(const Value& selector) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : selector["matchLabels"].members())
    parts.push_back(cat(key, "=", value.as_string()));
  for (const Value& rule : selector["matchExpressions"].items()) {
    const std::string_view key = rule["key"].as_string();
    const std::string_view how = rule["operator"].as_string();
    std::vector<std::string> values;
    for (const Value& value : rule["values"].items()) values.push_back(value.str());
    if (how == "Exists") {
      parts.push_back(std::string(key));
    } else if (how == "DoesNotExist") {
      parts.push_back(cat("!", key));
    } else {
      parts.push_back(cat(key, how == "In" ? " in (" : " notin (", join(values, ","), ")"));
    }
  }
  return join(parts, ",");
}

std::string merged_certificates(const std::vector<std::string>& texts) {
  std::set<std::string> all;
  for (const std::string& text : texts) {
    for (std::size_t from = text.find(kBegin); from != text.npos; from = text.find(kBegin, from)) {
      const std::size_t end = text.find(kEnd, from);
      if (end == text.npos) break;
      all.insert(text.substr(from, end + kEnd.size() - from));
      from = end;
    }
  }
  std::string out;
  for (const std::string& one : all) append(out, one, "\n");
  return out;
}

Result<std::string> trust_anchors(client::Client& client, const Value& source) {
  const bool optional = source["optional"].as_bool();
  if (source["name"].is_string()) {
    const auto bundle = client.get(kBundles, "", source["name"].as_string());
    if (bundle.ok()) return merged_certificates({(*bundle)["spec"]["trustBundle"].str()});
    if (bundle.error().code() == Code::not_found && optional) return std::string();
    return bundle.error().within("while getting ClusterTrustBundle");
  }
  std::vector<std::string> texts;
  // No selector takes nothing, an empty one everything.
  if (source["labelSelector"].is_object()) {
    client::ListOptions options;
    options.field_selector = cat("spec.signerName=", source["signerName"].as_string());
    options.label_selector = selector_query(source["labelSelector"]);
    DIBS_TRY(const client::List bundles, client.list(kBundles, "", options));
    for (const Value& bundle : bundles.items) texts.push_back(bundle["spec"]["trustBundle"].str());
  }
  if (texts.empty() && !optional) {
    return Error::not_found(
        "combination of signerName and labelSelector matched zero ClusterTrustBundles");
  }
  return merged_certificates(texts);
}

bool wants_trust_anchors(const Value& pod) {
  for (const Value& volume : pod["spec"]["volumes"].items()) {
    for (const Value& source : volume["projected"]["sources"].items()) {
      if (source["clusterTrustBundle"].is_object()) return true;
    }
  }
  return false;
}

}  // namespace dibs::node
