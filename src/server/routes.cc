#include "server/routes.h"

#include <openssl/sha.h>

#include "api/openapi/discovery.h"
#include "api/openapi/openapi.h"
#include "base/strings.h"
#include "json/parse.h"
#include "net/gzip.h"
#include "server/presenting.h"
#include "server/server_leases.h"
#include "server/status.h"

namespace dibs::server {
namespace {

net::Response not_found_page() { return text_response(404, "404 page not found\n"); }

std::string digest_of(std::string_view body) {
  unsigned char hash[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(body.data()), body.size(), hash);
  return to_upper(hex_encode(std::string_view(reinterpret_cast<const char*>(hash), sizeof hash)));
}

/// The discovery form asked for: "v2", "v2beta1", or "" for the plain documents.
std::string aggregated_version(const Context& context, const Options& options) {
  std::string accept;
  for (std::string_view value : context.request.headers.all("Accept"))
    append(accept, accept.empty() ? "" : ",", value);
  std::string_view release = options.answers_as();
  bool old_release =
      release == "1.27" || release == "1.30" || release == "1.32" || release == "1.34";
  for (std::string_view clause : split(accept, ',')) {
    if (clause.find("as=APIGroupDiscoveryList") == std::string_view::npos ||
        clause.find("g=apidiscovery.k8s.io") == std::string_view::npos) {
      continue;
    }
    bool v2 = false;
    bool beta = false;
    for (std::string_view part : split(clause, ';')) {
      part = trim(part);
      v2 = v2 || part == "v=v2";
      beta = beta || part == "v=v2beta1";
    }
    if (v2 && release != "1.27") return "v2";
    if (beta && old_release) return "v2beta1";
  }
  return {};
}

json::Value version_document(std::string_view release) {
  auto dot = release.find('.');
  std::string major(release.substr(0, dot));
  std::string minor(release.substr(dot + 1));
  int number = std::atoi(minor.c_str());
  json::Value out = json::Value::object({{"major", major}, {"minor", minor}});
  if (number >= 33) {
    out.set("emulationMajor", major);
    out.set("emulationMinor", minor);
    out.set("minCompatibilityMajor", major);
    out.set("minCompatibilityMinor", cat(number - 1));
  }
  out.set("gitVersion", cat("v", release, ".0"));
  out.set("gitCommit", "");
  out.set("gitTreeState", "clean");
  out.set("buildDate", "1970-01-01T00:00:00Z");
  out.set("goVersion", "none");
  out.set("compiler", "g++");
  out.set("platform", "linux/amd64");
  return out;
}

}  // namespace

Routes::DocumentPtr Routes::with_digest(std::string body) {
  std::string etag = digest_of(body);
  return std::make_shared<const Document>(Document{std::move(body), std::move(etag)});
}

Response Routes::handle(const Context& context) {
  std::string_view path = context.target.path;
  const std::string& method = context.request.method;
  for (std::string_view which : {"healthz", "livez", "readyz"}) {
    if (!path.starts_with("/") || !path.substr(1).starts_with(which)) continue;
    std::string_view rest = path.substr(1 + which.size());
    if (rest.empty()) return sources_.health->all(which, context.target);
    if (rest.front() == '/') return sources_.health->one(which, rest.substr(1));
  }
  if (path == "/version" || path == "/version/") {
    if (method != "GET") return status_response(method_not_allowed_error());
    auto body = version_document(sources_.options->answers_as());
    net::Response response;
    response.headers.add("Content-Type", "application/json");
    response.headers.add("Cache-Control", "no-cache, private");
    response.body = json::write_pretty(body);
    return response;
  }
  if (path == "/debug/api_priority_and_fairness/dump_priority_levels")
    return text_response(200, sources_.priority_levels());
  if (path == "/metrics") {
    net::Response response;
    response.headers.add("Content-Type", std::string(metrics::Registry::kContentType));
    response.body = sources_.metrics->expose();
    return response;
  }
  if (path == "/api" || path == "/api/" || path == "/apis" || path == "/apis/" ||
      path.starts_with("/api/") || path.starts_with("/apis/")) {
    return discovery(context, path);
  }
  if (path == "/openapi/v2" || path == "/openapi/v3" || path.starts_with("/openapi/v3/")) {
    return openapi(context, path);
  }
  if (path == "/openid/v1/jwks") {
    net::Response response = json_response(200, sources_.jwks());
    response.headers.set("Content-Type", "application/jwk-set+json");
    return response;
  }
  if (path == "/.well-known/openid-configuration") {
    const Options& options = *sources_.options;
    json::Value algorithms = json::Value::array();
    for (const std::string& one : sources_.jwt_algorithms()) algorithms.push(one);
    return json_response(
        200, json::Value::object(
                 {{"issuer", options.issuer},
                  {"jwks_uri", options.jwks_uri.empty()
                                   ? cat("https://", service_place(options), "/openid/v1/jwks")
                                   : options.jwks_uri},
                  {"response_types_supported", json::Value::array({"id_token"})},
                  {"subject_types_supported", json::Value::array({"public"})},
                  {"id_token_signing_alg_values_supported", std::move(algorithms)}}));
  }
  if (path == "/") {
    json::Value paths = json::Value::array();
    for (std::string_view one :
         {"/.well-known/openid-configuration", "/api", "/api/v1", "/apis", "/healthz", "/livez",
          "/metrics", "/openapi/v2", "/openapi/v3", "/openid/v1/jwks", "/readyz", "/version"}) {
      paths.push(one);
    }
    return json_response(200, json::Value::object({{"paths", std::move(paths)}}));
  }
  return not_found_page();
}

Response Routes::discovery(const Context& context, std::string_view path) {
  const api::Catalog& catalog = context.resources->catalog;
  const ExtensionsPtr extensions = sources_.extensions();
  if (path.ends_with('/')) path.remove_suffix(1);
  std::vector<std::string_view> parts = split(path.substr(1), '/');
  bool core = parts[0] == "api";
  // /api and /apis answer to every method, as upstream's do; below them only GET is known.
  if (parts.size() == 1) {
    if (core && context.request.method != "GET" && context.request.method != "HEAD") {
      return status_response(method_not_allowed_error());
    }
    std::string version = aggregated_version(context, *sources_.options);
    if (version.empty()) {
      auto answer = negotiate_answer(context.request, context.target, AnswerTo::one);
      if (!answer.ok()) return status_response(answer.error());
    }
    if (!version.empty()) {
      std::string key = cat("discovery/", parts[0], "/", version);
      const Generations wanted{context.resources->generation, extensions->generation};
      auto document = find(key, wanted);
      if (!document) {
        json::Value list = api::aggregated_discovery(catalog, core, version);
        if (!core) add_to_discovery(list, *extensions);
        document = with_digest(json::write(list));
        keep(key, wanted, document);
      }
      net::Response response;
      response.headers.add("Content-Type", cat("application/json;g=apidiscovery.k8s.io;v=", version,
                                               ";as=APIGroupDiscoveryList"));
      response.headers.add("ETag", cat("\"", document->etag, "\""));
      response.headers.add("Vary", "Accept");
      response.headers.add("Cache-Control", "public");
      if (context.request.headers.get("If-None-Match") == cat("\"", document->etag, "\"")) {
        response.status = 304;
        return response;
      }
      response.body = document->body;
      return response;
    }
    json::Value body =
        core ? api::api_versions(sources_.options->advertise) : api::api_group_list(catalog);
    if (!core) add_to_group_list(body, *extensions);
    return present_value(context, 200, body);
  }
  const api::GroupInfo* group = catalog.group(core ? std::string_view() : parts[1]);
  const bool extended = !core && extensions->has_group(parts[1]);
  if (!group && (!extended || parts.size() != 2)) return not_found_page();
  auto answer = negotiate_answer(context.request, context.target, AnswerTo::one);
  if (!answer.ok()) return status_response(answer.error());
  if (!core && parts.size() == 2) {
    if (context.request.method != "GET") return status_response(method_not_allowed_error());
    json::Value body = group ? api::api_group(*group) : json::Value();
    if (extended) body = group_with(std::move(body), parts[1], *extensions);
    return present_value(context, 200, body);
  }
  const api::VersionInfo* version = group->version(core ? parts[1] : parts[2]);
  if (!version) return group->custom ? not_found_page() : status_response(unknown_resource_error());
  if (context.request.method != "GET") return status_response(method_not_allowed_error());
  return present_value(context, 200, api::api_resource_list(*group, *version));
}

Routes::DocumentPtr Routes::find(const std::string& key, const Generations& wanted) const {
  const MutexLock lock(mutex_);
  const auto found = cache_.find(key);
  return found != cache_.end() && found->second.of == wanted ? found->second.document : nullptr;
}

void Routes::keep(const std::string& key, const Generations& of, DocumentPtr document) {
  const MutexLock lock(mutex_);
  cache_[key] = {of, std::move(document)};
}

Routes::DocumentPtr Routes::make_openapi(const api::Catalog& catalog, std::string_view path,
                                         bool protobuf, const Extensions& extensions) const {
  const std::string release = cat("v", sources_.options->answers_as(), ".0");
  if (path == "/openapi/v2") {
    json::Value value = api::openapi_v2(catalog, release);
    add_to_openapi_v2(value, extensions);
    return with_digest(protobuf ? api::openapi_v2_protobuf(value) : json::write(value));
  }
  if (path == "/openapi/v3") {
    json::Value index = api::openapi_v3_index(catalog);
    add_to_openapi_v3(index, extensions);
    return with_digest(json::write(index));
  }
  const auto value = api::openapi_v3(catalog, path.substr(12), release);
  if (!value) return nullptr;
  return std::make_shared<const Document>(
      Document{json::write(*value), api::openapi_v3_hash(catalog, path.substr(12))});
}

Response Routes::openapi(const Context& context, std::string_view path) {
  bool protobuf = path == "/openapi/v2" && context.request.headers.get("Accept").find(
                                               "proto-openapi.spec.v2") != std::string_view::npos;
  std::string key = cat(path, protobuf ? "|pb" : "");
  const ExtensionsPtr extensions = sources_.extensions();
  const Generations wanted{context.resources->generation, extensions->documents};
  auto document = find(key, wanted);
  if (!document) {
    // One at a time, on threads that may wait; nobody else does.
    const MutexLock making(making_);
    document = find(key, wanted);
    if (!document) {
      document = make_openapi(context.resources->catalog, path, protobuf, *extensions);
      if (!document) {
        net::Response missing;
        missing.status = 404;
        return missing;
      }
      keep(key, wanted, document);
    }
  }
  net::Response response;
  std::string_view hash = context.target.get("hash");
  if (path.starts_with("/openapi/v3/") && !hash.empty() && hash != document->etag) {
    response.status = 301;
    response.headers.add("Location", cat(path, "?hash=", document->etag));
    return response;
  }
  response.headers.add("Content-Type",
                       path == "/openapi/v3" ? "text/plain; charset=utf-8"
                       : protobuf ? "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
                                  : "application/json");
  response.headers.add("Etag", cat("\"", document->etag, "\""));
  response.headers.add("Vary", "Accept");
  if (!hash.empty()) response.headers.add("Cache-Control", "public, immutable");
  if (context.request.headers.get("If-None-Match") == cat("\"", document->etag, "\"")) {
    response.status = 304;
    return response;
  }
  response.body = document->body;
  if (response.body.size() > 1024 &&
      net::accepts_gzip(context.request.headers.get("Accept-Encoding"))) {
    response.body = net::gzip(response.body);
    response.headers.add("Content-Encoding", "gzip");
  }
  return response;
}

}  // namespace dibs::server
