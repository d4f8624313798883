#pragma once
// A byte channel over a connected non-blocking socket, plain or TLS, that never blocks.
//
// Reads come straight from the socket into the caller's memory. Writes collect in an output buffer
// (encrypted there for TLS) until flush(), so that a response of head and body, or many events of a
// watch, leave in one system call. The caller bounds what it puts into the buffer.
//
// One thread at a time. Idle channels hold no buffers.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "net/tls.h"

namespace dibs::net {

enum class Io : std::uint8_t { ok, again, eof, error };

struct PeerCertificate {
  bool presented = false;
  bool verified = false;
  bool front_proxy = false;  // by the CA of front proxies
  std::string common_name;
  std::vector<std::string> organizations;
  std::string uid;
  std::string credential_id;
  Time not_before;
  Time not_after;
};

class Channel {
 public:
  /// Both take the descriptor over.
  static std::unique_ptr<Channel> plain(int fd);
  static std::unique_ptr<Channel> tls_server(int fd, std::shared_ptr<TlsContext> context);
  /// `host` is what the server's certificate must be for.
  static std::unique_ptr<Channel> tls_client(int fd, std::shared_ptr<TlsContext> context,
                                             const std::string& host);
  virtual ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// `again`: flush, then wait until readable. A plain channel is done at once.
  virtual Io handshake() { return Io::ok; }
  virtual Io read(char* data, std::size_t size, std::size_t& got) = 0;
  /// False when the channel is broken.
  virtual bool write(std::string_view bytes) = 0;
  /// Says goodbye in the output buffer, where the protocol has a word for it.
  virtual void write_end() {}
  /// Received bytes wait inside, so read() may give some without the socket being readable.
  virtual bool holds_input() const { return false; }
  virtual PeerCertificate peer_certificate() const { return {}; }
  /// What was agreed on in the handshake.
  virtual bool speaks_http2() const { return false; }
  /// Why handshake() or read() failed, for people.
  virtual std::string error_text() const;
  /// The peer speaks plain HTTP to a TLS port.
  virtual bool got_plain_http() const { return false; }

  /// Sends what is in the output buffer; `again`: the socket is full.
  Io flush();
  std::size_t output() const { return out_.size() - sent_; }
  /// Bytes that the socket has taken, ever.
  std::uint64_t taken() const { return taken_; }
  /// Puts bytes out beside TLS.
  void write_raw(std::string_view bytes) { out_.append(bytes); }

  /// True until the socket was seen empty; set again by whoever learns of its readiness.
  bool readable() const { return readable_; }
  void set_readable() { readable_ = true; }
  /// The peer sends no more: every read must reach the end, however short it comes out.
  void set_peer_closed() { peer_closed_ = readable_ = true; }

  int fd() const { return fd_; }
  void shutdown_write();
  /// Breaks both directions off; the one call that another thread may make.
  void shutdown_both();
  /// Reads and drops up to `limit` bytes beneath TLS.
  Io discard(std::size_t limit, std::size_t& got);

 protected:
  explicit Channel(int fd) : fd_(fd) {}
  /// recv() keeping `readable_`; negative with errno as recv().
  std::ptrdiff_t receive(char* data, std::size_t size);

  int fd_;
  int error_ = 0;
  bool readable_ = true;
  bool peer_closed_ = false;
  std::string out_;
  std::size_t sent_ = 0;
  std::uint64_t taken_ = 0;
};

}  // namespace dibs::net
