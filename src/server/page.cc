#include "server/page.h"

#include <algorithm>

#include "base/strings.h"
#include "base/time.h"
#include "json/parse.h"
#include "net/gzip.h"
#include "server/audit.h"
#include "server/authentication.h"
#include "server/status.h"

namespace dibs::server {
namespace {

constexpr std::string_view kFolder = "/dibs/";
constexpr std::string_view kIndex = "index.html";
// Names below it hold a digest of what they have.
constexpr std::string_view kNamedByContent = "assets/";
constexpr std::size_t kLongestFile = std::size_t{16} << 20;

// Nothing but this server's own files and API: no script in the page's text, no frame around it,
// no form that leaves it, and no string that becomes markup.
constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";

void harden(net::Response& response) {
  response.headers.set("X-Content-Type-Options", "nosniff");
  response.headers.set("Content-Security-Policy", std::string(kPolicy));
  response.headers.set("Referrer-Policy", "no-referrer");
  response.headers.set("Cross-Origin-Opener-Policy", "same-origin");
  response.headers.set("Cross-Origin-Resource-Policy", "same-origin");
}

net::Response said(int status, std::string text) {
  net::Response response = text_response(status, std::move(text));
  harden(response);
  response.headers.set("Cache-Control", "no-store");
  return response;
}

bool is_loopback(std::string_view address) {
  return address.starts_with("127.") || address.starts_with("[::1]") ||
         address.starts_with("[::ffff:127.");
}

/// Of the address that the client has asked at.
std::string_view port_of(std::string_view host) {
  const std::string_view port = host.substr(std::min(host.size(), host.rfind(':') + 1));
  const bool is_one = !port.empty() && port.size() <= 5 &&
                      port.find_first_not_of("0123456789") == std::string_view::npos;
  return is_one ? port : "6443";
}

json::Value issued_value(std::string_view field, const PageSessions::Issued& issued) {
  return json::Value::object(
      {{std::string(field), issued.secret}, {"expires", format_rfc3339(issued.expires)}});
}

bool impersonates(const net::Request& request) {
  for (const auto& [name, value] : request.headers.fields()) {
    if (to_lower(name).starts_with("impersonate-")) return true;
  }
  return false;
}

}  // namespace

std::optional<net::Response> Page::answer(const net::Request& request, const net::Target& target) {
  const std::string_view path = target.path;
  if (!path.starts_with(kFolder) && path != "/dibs") return std::nullopt;
  const bool reads = request.method == "GET" || request.method == "HEAD";
  const bool codes = path == kCodesPath;
  const bool session_path = path == kSessionPath;
  std::string_view name = path == "/dibs" ? "" : path.substr(kFolder.size());
  if (name.empty()) name = kIndex;
  const bool own = reads && (name == kIndex || name.starts_with(kNamedByContent));
  // Backups have paths of their own below this folder.
  if (!own && !codes && !session_path) return std::nullopt;
  if (!is_loopback(request.peer.address)) {
    const std::string_view port = port_of(request.headers.get("Host"));
    return said(403, cat("the page is for clients on the server's own machine that ask at a "
                         "loopback address; from another one: ssh -L ",
                         port, ":127.0.0.1:", port, " MACHINE (docs/page.md)\n"));
  }
  if (codes) {
    // A session that could begin the next one would never end.
    if (!PageSessions::is_session_token(token_of(request))) return std::nullopt;
    return status_response(
        Error::forbidden("a session of the page makes no codes: use `dibs open`"));
  }
  if (session_path) {
    net::Response response = session(request);
    response.headers.set("Cache-Control", "no-store");
    return response;
  }
  if (path == "/dibs") {
    net::Response response = said(308, "");
    response.headers.set("Location", std::string(kFolder));
    return response;
  }
  return file(request, name);
}

net::Response Page::file(const net::Request& request, std::string_view name) const {
  if (assets_.empty()) {
    return said(404,
                "this dibs was built without the page: it needs npm and its packages when it "
                "is built; `make page release` builds both\n");
  }
  const PageAsset* found = nullptr;
  for (const PageAsset& asset : assets_) {
    if (asset.name == name) found = &asset;
  }
  if (found == nullptr) return said(404, "404 page not found\n");
  net::Response response;
  harden(response);
  response.headers.set("ETag", std::string(found->etag));
  response.headers.set("Vary", "Accept-Encoding");
  response.headers.set("Cache-Control", name.starts_with(kNamedByContent)
                                            ? "public, max-age=31536000, immutable"
                                            : "no-cache");
  if (request.headers.get("If-None-Match") == found->etag) {
    response.status = 304;
    return response;
  }
  response.headers.set("Content-Type", std::string(found->type));
  if (net::accepts_gzip(request.headers.get("Accept-Encoding"))) {
    response.headers.set("Content-Encoding", "gzip");
    response.body = std::string(found->bytes);
    return response;
  }
  auto plain = net::gunzip(found->bytes, kLongestFile);
  if (!plain.ok()) return status_response(Error::internal("the page cannot be unpacked"));
  response.body = std::move(plain).value();
  return response;
}

net::Response Page::session(const net::Request& request) {
  if (request.method == "DELETE") {
    const std::string token = token_of(request);
    if (!PageSessions::is_session_token(token)) return status_response(unauthorized_error());
    sessions_.end(token);
    return json_response(200, json::Value::object({{"ended", true}}));
  }
  if (request.method != "POST") return status_response(method_not_allowed_error());
  const auto body = json::parse(request.body);
  if (!body.ok() || !(*body)["code"].is_string()) {
    return status_response(Error::bad_request("code: wanted, as JSON: {\"code\": \"...\"}"));
  }
  const auto issued = sessions_.exchange((*body)["code"].as_string());
  if (!issued.ok()) return status_response(issued.error());
  return json_response(201, issued_value("token", *issued));
}

void Page::stand_in(net::Request& request, const auth::RequestHeaderOptions& front_proxies) {
  if (!PageSessions::is_session_token(token_of(request))) return;
  auth::clear_front_proxy_headers(request.headers, front_proxies);
  sessions_.stand_in(request);
}

Result<Response> Page::make_code(const Context& context) {
  if (context.request.method != "POST") return method_not_allowed_error();
  if (impersonates(context.request)) {
    return Error::bad_request(
        "a code is for whoever asks for it: ask without impersonating somebody");
  }
  // Who reads the audit log must not be quicker than the browser.
  if (context.audit) context.audit->leave_out_bodies();
  DIBS_TRY(const PageSessions::Issued issued, sessions_.make_code(context.request, context.user));
  net::Response response = json_response(201, issued_value("code", issued));
  response.headers.set("Cache-Control", "no-store");
  return Response(std::move(response));
}

}  // namespace dibs::server
