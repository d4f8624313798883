#pragma once
// The load generator's end of a connection: HTTP/1.1 over TLS, as little work per request as
// possible, so that the server is what is measured.
//
// A request is bytes made beforehand. Of an answer only the status and the length are looked at;
// bodies are counted, not kept, unless asked for. One thread.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace dibs::bench {

/// Prints the text and ends the program: a benchmark that goes on after a fault measures something
/// else.
[[noreturn]] void die(std::string_view text);

double seconds_now();

/// Where the server is and who we are there, from the kubeconfig that it writes.
struct Access {
  std::uint16_t port = 0;
  std::string certificate_pem;
  std::string key_pem;
};
Access read_kubeconfig(const std::string& path);

class TlsSettings {
 public:
  explicit TlsSettings(const Access& access);
  ~TlsSettings();
  TlsSettings(const TlsSettings&) = delete;
  TlsSettings& operator=(const TlsSettings&) = delete;

  const std::uint16_t port;
  struct Impl;
  Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

enum class Read : char { nothing, partial, complete };

class Connection {
 public:
  /// Connects and shakes hands.
  explicit Connection(const TlsSettings& settings);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int fd() const;
  void send(std::string_view request);
  /// Takes what has come. `complete` when an answer has ended; a stream never does.
  Read receive();
  /// Sends, then waits for the whole answer.
  void exchange(std::string_view request);
  /// Waits until there is something to receive.
  void wait() const;

  int status() const;
  std::size_t body_size() const;
  /// Kept from now on.
  void keep_body();
  const std::string& body() const;
  /// Lines of JSON seen in a stream since it began.
  std::uint64_t events() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The whole request. `body` is JSON.
std::string make_request(std::string_view method, std::string_view target,
                         std::string_view body = {});

}  // namespace dibs::bench
