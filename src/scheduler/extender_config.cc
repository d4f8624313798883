#include "scheduler/extender_config.h"

#include <algorithm>

#include "base/names.h"
#include "base/strings.h"
#include "client/https_transport.h"

namespace dibs::scheduler {
namespace {

using api::FieldErrors;
using api::Path;
using json::Value;

std::string from_base64(const Value& value) {
  // Decoding has let only base64 pass.
  std::string bytes;
  base64_decode(value.as_string(), bytes);
  return bytes;
}

ExtenderConfig::Tls read_tls(const Value& source, bool https, const Path& path,
                             FieldErrors& found) {
  ExtenderConfig::Tls made;
  made.insecure = source["insecure"].as_bool();
  made.server_name = source["serverName"].str();
  made.ca_file = source["caFile"].str();
  made.ca = from_base64(source["caData"]);
  made.certificate_file = source["certFile"].str();
  made.certificate = from_base64(source["certData"]);
  made.key_file = source["keyFile"].str();
  made.key = from_base64(source["keyData"]);
  const bool trusts = !made.ca_file.empty() || !made.ca.empty();
  if (made.insecure && trusts) {
    found.invalid(path.child("insecure"), true,
                  "specifying a root certificates file with the insecure flag is not allowed");
  }
  const bool shows = !made.certificate_file.empty() || !made.certificate.empty();
  if (shows != (!made.key_file.empty() || !made.key.empty())) {
    found.invalid(path, source, "certificate and key are given together or not at all");
  }
  // As upstream has it: nothing is trusted, so nothing is checked.
  if (https && !trusts) made.insecure = true;
  return made;
}

void read_resources(const Value& list, const Path& path, ExtenderConfig& made,
                    std::set<std::string>& seen, FieldErrors& found) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string name = list[i]["name"].str();
    const Path at = path.index(i);
    const Path name_path = at.child("name");
    const Faults faults = is_qualified_name(name);
    for (const std::string& fault : faults) found.invalid(name_path, name, fault);
    if (faults.empty() && !is_extended_resource_name(name)) {
      found.invalid(name_path, name, "is an invalid extended resource name");
    }
    if (!seen.insert(name).second) {
      found.invalid(name_path, name, "duplicate extender managed resource name");
    }
    made.resources.insert(name);
    if (list[i]["ignoredByScheduler"].as_bool()) made.ignored.push_back(name);
  }
}

ExtenderConfig read_extender(const Value& source, const Path& path, std::set<std::string>& seen,
                             FieldErrors& found) {
  ExtenderConfig made;
  made.url = source["urlPrefix"].str();
  while (made.url.ends_with('/')) made.url.pop_back();
  made.filter_verb = source["filterVerb"].str();
  made.prioritize_verb = source["prioritizeVerb"].str();
  made.preempt_verb = source["preemptVerb"].str();
  made.bind_verb = source["bindVerb"].str();
  made.weight = source["weight"].as_int();
  made.knows_nodes = source["nodeCacheCapable"].as_bool();
  made.ignorable = source["ignorable"].as_bool();
  // Decoding has let only durations pass.
  const Duration timeout = parse_duration(source["httpTimeout"].as_string("0s")).value();
  if (timeout < Duration(0)) {
    found.invalid(path.child("httpTimeout"), source["httpTimeout"], "must not be negative");
  } else if (timeout > Duration(0)) {
    made.timeout = timeout;
  }
  made.tls = read_tls(source["tlsConfig"], source["enableHTTPS"].as_bool(), path.child("tlsConfig"),
                      found);
  if (!made.prioritize_verb.empty() && made.weight <= 0) {
    found.invalid(path.child("weight"), made.weight, "must have a positive weight applied to it");
  }
  read_resources(source["managedResources"], path.child("managedResources"), made, seen, found);
  if (made.filter_verb.empty() && made.prioritize_verb.empty() && made.preempt_verb.empty() &&
      made.bind_verb.empty()) {
    found.warn(cat(path.str(), " has no effect: it has no verb"));
  }
  return made;
}

Result<> read_pem(runtime::Files& files, const std::string& file, const char* field,
                  std::string& text) {
  if (!text.empty() || file.empty()) return success();
  auto read = files.read(file);
  if (!read.ok()) return read.error().within(cat("tlsConfig.", field));
  text = std::move(*read);
  return success();
}

Result<std::shared_ptr<client::Transport>> connect(const ExtenderConfig& extender,
                                                   runtime::Files& files,
                                                   runtime::Runtime& runtime) {
  client::Access access;
  access.server = extender.url;
  access.tls.insecure = extender.tls.insecure;
  access.tls.server_name = extender.tls.server_name;
  access.tls.ca_pem = extender.tls.ca;
  access.tls.certificate_pem = extender.tls.certificate;
  access.tls.key_pem = extender.tls.key;
  DIBS_CHECK(read_pem(files, extender.tls.ca_file, "caFile", access.tls.ca_pem));
  DIBS_CHECK(
      read_pem(files, extender.tls.certificate_file, "certFile", access.tls.certificate_pem));
  DIBS_CHECK(read_pem(files, extender.tls.key_file, "keyFile", access.tls.key_pem));
  client::HttpsOptions https;
  https.timeout = extender.timeout;
  https.user_agent = "kube-scheduler";
  DIBS_TRY(auto made, client::make_https_transport(access, files, runtime, https));
  return std::shared_ptr<client::Transport>(std::move(made));
}

}  // namespace

std::vector<ExtenderConfig> read_extenders(const Value& list, FieldErrors& found) {
  const Path path("extenders");
  std::vector<ExtenderConfig> made;
  std::set<std::string> seen;
  std::size_t binders = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    made.push_back(read_extender(list[i], path.index(i), seen, found));
    if (!made.back().bind_verb.empty()) ++binders;
  }
  if (binders > 1) {
    found.invalid(path, cat("found ", binders, " extenders implementing bind"),
                  "only one extender can implement bind");
  }
  std::stable_partition(made.begin(), made.end(),
                        [](const ExtenderConfig& one) { return !one.ignorable; });
  return made;
}

Result<std::vector<std::shared_ptr<client::Transport>>> connect_extenders(
    const std::vector<ExtenderConfig>& extenders, runtime::Files& files,
    runtime::Runtime& runtime) {
  std::vector<std::shared_ptr<client::Transport>> made;
  for (const ExtenderConfig& extender : extenders) {
    auto way = connect(extender, files, runtime);
    if (!way.ok()) return way.error().within(cat("extender ", quoted(extender.url)));
    made.push_back(std::move(*way));
  }
  return made;
}

}  // namespace dibs::scheduler
