#include "server/trust.h"

#include <algorithm>

#include "base/strings.h"
#include "json/parse.h"
#include "net/x509.h"

namespace dibs::server {
namespace {

using json::Value;

bool is_bundle(std::string_view key) { return key.ends_with("client-ca-file"); }

std::string list_text(const std::vector<std::string>& items) {
  Value list = Value::array();
  for (const std::string& item : items) list.push(item);
  return json::write(list);
}

void add_items(std::string_view text, std::vector<std::string>& out) {
  const auto list = json::parse(text);
  if (!list.ok()) return;
  for (const Value& item : list->items()) {
    if (item.is_string() && std::find(out.begin(), out.end(), item.as_string()) == out.end()) {
      out.push_back(item.str());
    }
  }
}

/// The certificates of the text that are good still and not in `out` yet.
void add_certificates(std::string_view text, Time now, std::vector<std::string>& out) {
  for (std::string& one : net::split_certificates(text)) {
    const auto info = net::parse_certificate(one);
    if (!info.ok() || info->not_after < now) continue;
    if (std::find(out.begin(), out.end(), one) == out.end()) out.push_back(std::move(one));
  }
}

}  // namespace

Value trust_object(const Options& options) {
  const auth::RequestHeaderOptions& proxies = options.front_proxies;
  Value data = Value::object(
      {{"client-ca-file", options.client_ca_pem.empty() ? options.ca_pem : options.client_ca_pem}});
  if (!proxies.ca_pem.empty()) {
    data.set("requestheader-allowed-names", list_text(proxies.allowed_names));
    data.set("requestheader-client-ca-file", proxies.ca_pem);
    data.set("requestheader-extra-headers-prefix", list_text(proxies.extra_prefixes));
    data.set("requestheader-group-headers", list_text(proxies.group_headers));
    if (!proxies.uid_headers.empty() && options.minor() >= 32) {
      data.set("requestheader-uid-headers", list_text(proxies.uid_headers));
    }
    data.set("requestheader-username-headers", list_text(proxies.username_headers));
  }
  return Value::object({{"metadata", Value::object({{"name", "extension-apiserver-authentication"},
                                                    {"namespace", "kube-system"}})},
                        {"data", std::move(data)}});
}

Value trust_brought_up_to_date(const Value& there, const Value& wanted, Time now) {
  Value data = there["data"];
  if (!data.is_object()) data = Value::object();
  for (const auto& [key, text] : wanted["data"].members()) {
    std::vector<std::string> items;
    for (const Value* one : {&there["data"][key], &text}) {
      if (!one->is_string()) continue;
      if (is_bundle(key)) {
        add_certificates(one->as_string(), now, items);
      } else {
        add_items(one->as_string(), items);
      }
    }
    data.set(key, is_bundle(key) ? join(items, "") : list_text(items));
  }
  if (data == there["data"]) return {};
  Value next = there;
  next.set("data", std::move(data));
  return next;
}

}  // namespace dibs::server
