#pragma once
// How the server reaches the servers of APIServices.
//
// Handed in (Options::extensions), so that tests answer themselves. The server's own shows its
// front proxy's certificate, and dials one of the addresses behind a Service.
//
// Thread-safe.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "net/http.h"
#include "net/reach.h"
#include "net/stream_client.h"

namespace dibs::server {

struct ExtensionPlace {
  std::string name = {};  // that its certificate has: "api.wardle.svc"
  std::string host = {};  // where it is dialled
  std::uint16_t port = 0;
  net::Reach reach = net::Reach::anywhere;
  std::string ca_pem = {};  // "": what the machine trusts
  bool unchecked = false;   // whatever certificate it shows

  bool operator==(const ExtensionPlace&) const = default;
};

class ExtensionTransport {
 public:
  virtual ~ExtensionTransport() = default;
  /// The whole answer, every HTTP status is a success. Blocks its thread. Errors: unavailable,
  /// timeout, too_large, in the words of Go's client, the URL included; invalid for a CA that is
  /// none.
  virtual Result<net::Response> send(const ExtensionPlace& place, const net::Request& request,
                                     Duration timeout) = 0;
  /// The answer as it comes. `opened` is called once, on an io thread, and must not block there.
  /// A client that hangs up breaks it off. Errors: as of net::StreamRequest.
  virtual void open(const ExtensionPlace& place, const net::Request& request, net::Exchange& client,
                    std::function<void(Result<net::StreamAnswer>)> opened) = 0;
  /// What is shown from now on.
  virtual void set_certificate(std::string certificate_pem, std::string key_pem) = 0;
  /// Breaks off every stream.
  virtual void close() = 0;
};

std::shared_ptr<ExtensionTransport> make_extension_transport(std::string certificate_pem,
                                                             std::string key_pem);

}  // namespace dibs::server
