#pragma once
// The page that shows a cluster in a browser (web/, docs/page.md): its files, and how a browser is
// let in.
//
//   GET    /dibs/…        the files, for everybody: nothing of the cluster is in them
//   POST   /dibs/codes    a one-time code for the sender, who must be somebody (`dibs open`)
//   POST   /dibs/session  {"code": …}: a token for a code
//   DELETE /dibs/session  ends the session of the token
//
// All of it is for clients on this machine alone; others see it through a tunnel. What the page
// shows it asks of the API like any other client, as the user whose code it was.
//
// Thread-safe.

#include <optional>
#include <span>
#include <string_view>

#include "net/http.h"
#include "runtime/runtime.h"
#include "server/auth/request_header.h"
#include "server/context.h"
#include "server/page_assets.h"
#include "server/page_sessions.h"

namespace dibs::server {

class Page {
 public:
  static constexpr std::string_view kCodesPath = "/dibs/codes";
  static constexpr std::string_view kSessionPath = "/dibs/session";

  Page(runtime::Runtime& runtime, std::span<const PageAsset> assets)
      : sessions_(runtime), assets_(assets) {}

  /// What needs no sender: files, and the exchange of codes. Nothing: the request is not about
  /// these.
  std::optional<net::Response> answer(const net::Request& request, const net::Target& target);
  /// Makes the request that of the session it shows the token of.
  void stand_in(net::Request& request, const auth::RequestHeaderOptions& front_proxies);
  /// Whether the path asks for a code, which whoever is somebody may: it gives no right.
  static bool asks_for_code(const RequestInfo& info) {
    return !info.is_resource && info.path == kCodesPath;
  }
  /// Of a request that asks for a code.
  Result<Response> make_code(const Context& context);

 private:
  net::Response file(const net::Request& request, std::string_view name) const;
  net::Response session(const net::Request& request);

  PageSessions sessions_;
  std::span<const PageAsset> assets_;
};

}  // namespace dibs::server
