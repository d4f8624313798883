// Requests for what other servers serve: passed on in the name of their sender, and what may come
// back.
#include <optional>
#include <utility>

#include "base/strings.h"
#include "server/aggregator.h"
#include "server/audit.h"
#include "server/auth/user.h"
#include "server/node_client.h"
#include "server/status.h"

namespace dibs::server {
namespace {

/// As a header can carry it.
std::string escaped_key(std::string_view key) {
  constexpr std::string_view kMarks = "!#$&'*+-.^_`|~";
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : key) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       kMarks.find(c) != std::string_view::npos;
    if (plain) {
      out.push_back(c);
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out.push_back('%');
    out.push_back(kDigits[byte >> 4]);
    out.push_back(kDigits[byte & 15]);
  }
  return out;
}

net::Response text(int status, std::string_view words) {
  return text_response(status, cat(words, "\n"));
}

bool asks_to_upgrade(const net::Request& request) {
  return net::has_token(request.headers.get("Connection"), "upgrade");
}

/// What the client is told in place of an answer that must not reach him; nothing where it may. A
/// client that follows a redirect would show its credentials to whomever the extension names, and
/// behind a change of protocols that he did not ask for requests of others would be hidden.
std::optional<net::Response> not_permitted(const net::Request& request, const net::Response& head) {
  if (head.status == 101) {
    const std::string_view wanted =
        asks_to_upgrade(request) ? request.headers.get("Upgrade") : std::string_view();
    const std::string_view given = head.headers.get("Upgrade");
    if (!wanted.empty() && equals_ignoring_case(wanted, given)) return std::nullopt;
    return text(503, cat("backend tried to switch protocol ", quoted(given), " when ",
                         quoted(wanted), " was requested"));
  }
  if (asks_to_upgrade(request) && head.status < 400)
    return text(503, cat("invalid upgrade response: status code ", head.status));
  if (head.status / 100 == 3 && !head.headers.get("Location").empty()) {
    return text_response(502,
                         "the backend attempted to redirect this request, which is not permitted");
  }
  return std::nullopt;
}

}  // namespace

net::Request in_name_of(const auth::UserInfo& user, const net::Request& request) {
  net::Request out = passed_on(request, request.target);
  net::Headers headers;
  for (const auto& [name, value] : out.headers.fields()) {
    if (!to_lower(name).starts_with("x-remote-")) headers.add(name, value);
  }
  headers.add("X-Remote-User", user.name);
  if (!user.uid.empty()) headers.add("X-Remote-Uid", user.uid);
  for (const std::string& group : user.groups) headers.add("X-Remote-Group", group);
  for (const auto& [key, values] : user.extra) {
    for (const std::string& value : values) {
      headers.add(cat("X-Remote-Extra-", escaped_key(key)), value);
    }
  }
  out.headers = std::move(headers);
  return out;
}

void Aggregator::pass_on(const std::shared_ptr<Context>& context,
                         const std::shared_ptr<calls::Exchange>& exchange,
                         const Extension& extension, Over over) {
  const auto refuse = [exchange, over](net::Response refusal) {
    over(refusal);
    exchange->respond(std::move(refusal));
  };
  context->request.write_body();
  const ExtensionPlace place = extension.places[runtime_.random.below(extension.places.size())];
  net::Request request = in_name_of(context->user, context->request);
  request.headers.remove("Accept-Encoding");
  if (!asks_to_upgrade(context->request)) request.headers.remove("Connection");
  // Both servers tell of it under one name.
  if (context->audit) request.headers.set("Audit-Id", context->audit->id());
  transport_->open(place, request, *exchange,
                   [context, exchange, refuse, over](Result<net::StreamAnswer> answer) {
                     if (!answer.ok()) {
                       return refuse(text(
                           503, cat("error trying to reach service: ", answer.error().message())));
                     }
                     if (auto refusal = not_permitted(context->request, answer->head)) {
                       if (answer->upgraded != nullptr) answer->upgraded->close();
                       return refuse(std::move(*refusal));
                     }
                     net::Response head = std::move(answer->head);
                     over(head);
                     if (answer->upgraded != nullptr) {
                       return exchange->upgrade_to(
                           std::move(head),
                           [server = answer->upgraded](std::shared_ptr<net::ByteStream> client) {
                             if (client == nullptr) return server->close();
                             net::splice(std::move(client), server);
                           });
                     }
                     head.headers.remove("Connection");
                     relay(std::move(answer->body), exchange->stream(std::move(head)));
                   });
}

}  // namespace dibs::server
