#include "server/node_client.h"

#include <algorithm>

#include "base/strings.h"
#include "server/authentication.h"
#include "server/status.h"

namespace dibs::server {
namespace {

/// The offer without the token that browsers put there.
std::string without_token(std::string_view offer) {
  std::vector<std::string> kept;
  for (std::string_view one : split(offer, ',')) {
    if (!trim(one).starts_with(kTokenProtocol)) kept.emplace_back(trim(one));
  }
  return join(kept, ", ");
}

/// The place does not want to be upgraded: the client gets its words.
void pass_refusal(net::StreamAnswer answer, const std::shared_ptr<net::Exchange>& exchange) {
  answer.head.headers.remove("Connection");
  net::read_whole(std::move(answer.body), kMaxNodeError, kNodeTimeout,
                  [exchange, head = std::move(answer.head)](Result<std::string> text) {
                    net::Response refusal = head;
                    if (text.ok()) refusal.body = std::move(text).value();
                    exchange->respond(std::move(refusal));
                  });
}

}  // namespace

Result<std::unique_ptr<NodeClient>> NodeClient::open(const Options& options) {
  std::unique_ptr<NodeClient> out(new NodeClient(options.node_ca_pem));
  DIBS_CHECK(
      out->set_certificate(options.node_client_certificate_pem, options.node_client_key_pem));
  net::TlsClientOptions other;
  other.insecure = true;
  DIBS_TRY(out->other_tls_, net::TlsContext::client(other));
  out->own_nodes_ = options.own_nodes;
  out->own_nodes_host_ = options.own_nodes_host;
  return out;
}

std::string NodeClient::own_host(std::string_view node) const {
  const bool own = std::find(own_nodes_.begin(), own_nodes_.end(), node) != own_nodes_.end();
  return own ? own_nodes_host_ : std::string();
}

Result<> NodeClient::set_certificate(const std::string& certificate_pem,
                                     const std::string& key_pem) {
  net::TlsClientOptions options;
  options.certificate_pem = certificate_pem;
  options.key_pem = key_pem;
  options.ca_pem = ca_pem_;
  // Nodes sign their own certificates unless somebody cares: as upstream, they are then taken as
  // they come.
  options.insecure = ca_pem_.empty();
  DIBS_TRY(auto checked, net::TlsContext::client(options));
  options.insecure = true;
  DIBS_TRY(auto unchecked, net::TlsContext::client(options));
  const MutexLock lock(mutex_);
  tls_ = std::move(checked);
  unchecked_tls_ = std::move(unchecked);
  return success();
}

std::shared_ptr<net::TlsContext> NodeClient::context_for(const StreamPlace& place) {
  if (!place.to_node) return other_tls_;
  const MutexLock lock(mutex_);
  return place.unchecked ? unchecked_tls_ : tls_;
}

void NodeClient::open(const StreamPlace& place, const net::Request& request, net::Exchange& client,
                      std::function<void(Result<net::StreamAnswer>)> opened) {
  const auto sent =
      client_.request(place.url, context_for(place), request, kNodeTimeout, place.reach);
  client.on_gone([sent] { sent->cancel(); });
  sent->start(std::move(opened));
}

void NodeClient::fetch(const std::string& url, const std::string& target, Duration timeout,
                       std::size_t limit, std::function<void(Result<std::string>)> done) {
  net::Request request;
  request.method = "GET";
  request.target = target;
  StreamPlace place;
  place.url = url;
  const auto sent = client_.request(url, context_for(place), request, timeout, place.reach);
  sent->start([timeout, limit, done = std::move(done)](Result<net::StreamAnswer> answer) {
    if (!answer.ok()) return done(answer.error());
    const int status = answer->head.status;
    net::read_whole(std::move(answer->body), limit, timeout,
                    [status, done](Result<std::string> text) {
                      if (!text.ok() || status == 200) return done(std::move(text));
                      done(Error::unavailable(cat("the node answered ", status)));
                    });
  });
}

Result<std::string> NodeClient::url_of(const json::Value& node) const {
  const json::Value& addresses = node["status"]["addresses"];
  std::string address = own_host(node["metadata"]["name"].as_string());
  // Addresses before names: a node's name is rarely known to the resolver.
  for (std::string_view type :
       {"InternalIP", "ExternalIP", "InternalDNS", "ExternalDNS", "Hostname"}) {
    for (const json::Value& candidate : addresses.items()) {
      if (address.empty() && candidate["type"].as_string() == type)
        address = candidate["address"].str();
    }
  }
  if (address.empty()) return Error::plain("no preferred addresses found; known addresses: []");
  if (address.find(':') != std::string::npos) address = cat("[", address, "]");
  const std::int64_t port = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"].as_int();
  return cat("https://", address, ":", port > 0 ? port : 10250);
}

net::Request passed_on(const net::Request& request, const std::string& target) {
  net::Request out;
  out.method = request.method;
  out.target = target;
  out.body = request.body;
  for (const auto& [name, value] : request.headers.fields()) {
    if (equals_ignoring_case(name, "Authorization") || equals_ignoring_case(name, "Host") ||
        to_lower(name).starts_with("impersonate-")) {
      continue;
    }
    std::string sent = value;
    if (equals_ignoring_case(name, "Sec-WebSocket-Protocol")) {
      sent = without_token(value);
      if (sent.empty()) continue;
    }
    out.headers.add(name, std::move(sent));
  }
  const std::string& address = request.peer.address;
  if (auto colon = address.rfind(':'); colon != std::string::npos) {
    out.headers.set("X-Forwarded-For", address.substr(0, colon));
  }
  return out;
}

void join_upgrade(NodeClient& nodes, const net::Request& request, const StreamPlace& place,
                  const std::shared_ptr<net::Exchange>& exchange) {
  if (!net::has_token(request.headers.get("Connection"), "upgrade")) {
    return exchange->respond(status_response(Error::bad_request("Upgrade request required")));
  }
  nodes.open(
      place, passed_on(request, place.target), *exchange,
      [exchange](Result<net::StreamAnswer> answer) {
        if (!answer.ok()) {
          const Error& error = answer.error();
          return exchange->respond(
              status_response(error.code() == Code::bad_request
                                  ? error
                                  : Error::plain(cat("error dialing backend: ", error.message()))));
        }
        if (answer->upgraded == nullptr) {
          return pass_refusal(std::move(answer).value(), exchange);
        }
        exchange->upgrade_to(std::move(answer->head),
                             [node = answer->upgraded](std::shared_ptr<net::ByteStream> client) {
                               if (client == nullptr) return node->close();
                               net::splice(std::move(client), node);
                             });
      });
}

void relay(std::shared_ptr<net::BodySource> body, std::shared_ptr<net::BodyStream> client) {
  client->on_drained([body] { body->hold(false); });
  // Dropping the source ends the request to the node.
  client->on_closed([body]() mutable { body = nullptr; });
  const std::weak_ptr<net::BodySource> source = body;
  body->start(
      [source, client](std::string piece) {
        const auto alive = source.lock();
        if (!client->write(share(std::move(piece))) || alive == nullptr) return;
        if (client->queued() <= kMaxQueued) return;
        alive->hold(true);
        // It may have drained meanwhile, with nobody left to tell.
        if (client->queued() == 0) alive->hold(false);
      },
      [client](bool whole) {
        // Without a proper end the connection breaks off, as the source's did.
        if (whole) client->finish();
      });
}

}  // namespace dibs::server
