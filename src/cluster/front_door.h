#pragma once
// The port of a cluster: HTTPS, in front of an API server that may not be there yet.
//
// The first objects of a server name its port, so the port is open before there is a server; until
// admit(), requests get a 503 with a time to try again.

#include <atomic>
#include <memory>
#include <string>

#include "base/result.h"
#include "net/http_server.h"
#include "server/api_server.h"

namespace dibs::cluster {

class FrontDoor {
 public:
  /// What the API makes of slow readers and of bodies that are too long is filled in here.
  static Result<std::unique_ptr<FrontDoor>> open(net::ServerOptions options);

  /// HOST:PORT that clients on this machine reach.
  const std::string& address() const { return address_; }
  /// The same by an address of the machine; "": as above.
  std::string address_at(const std::string& host) const;
  /// From now on requests go to `server`, which must outlive the door.
  void admit(server::ApiServer& server);
  /// For connections that begin later.
  Result<> set_tls(const net::TlsServerOptions& tls) { return http_->set_tls(tls); }
  /// Lets clients go: every answer is the last of its connection.
  void retire() { http_->retire(); }
  /// Lets answers under way be finished, and closes.
  void drain();

 private:
  FrontDoor() = default;

  std::atomic<server::ApiServer*> server_{nullptr};
  std::string address_;
  std::unique_ptr<net::HttpServer> http_;  // ends first: it calls the above
};

}  // namespace dibs::cluster
