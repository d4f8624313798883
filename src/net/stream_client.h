#pragma once
// Requests whose answer is a stream: an upgraded connection, or a body that comes as it is made.
// All of it, from the first packet on, happens on the client's one io thread: neither a server that
// never answers nor a thousand quiet streams cost a thread. Names, unlike addresses, are looked up
// by threads of their own (lookups.h).

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "net/http.h"
#include "net/reach.h"
#include "net/tls.h"

namespace dibs::net {

/// A response's body. Dropping it breaks the request off.
class BodySource {
 public:
  virtual ~BodySource() = default;
  /// `data` gets the pieces on an io thread and must not block there; `ended` is called once, with
  /// false when the body broke off.
  virtual void start(std::function<void(std::string piece)> data,
                     std::function<void(bool whole)> ended) = 0;
  /// While held, nothing is read.
  virtual void hold(bool held) = 0;
  /// Breaks it off after that time, unless it has ended.
  virtual void expire(Duration span) = 0;
};

struct StreamAnswer {
  Response head = {};                              // without its body
  std::shared_ptr<ByteStream> upgraded = nullptr;  // of a 101
  std::shared_ptr<BodySource> body = nullptr;      // of everything else
};

/// A request that can be given up. From any thread; dropping it gives nothing up.
class StreamRequest {
 public:
  virtual ~StreamRequest() = default;
  /// Begins. `opened` is called once, on the io thread, and must not block there. Errors:
  /// unavailable, timeout, worded as by Go's dialler and without the URL; bad_request for an
  /// address out of reach.
  virtual void start(std::function<void(Result<StreamAnswer>)> opened) = 0;
  /// Unless it is answered, it fails now.
  virtual void cancel() = 0;
};

class StreamClient {
 public:
  StreamClient();
  /// Breaks off what is open.
  ~StreamClient();
  StreamClient(const StreamClient&) = delete;
  StreamClient& operator=(const StreamClient&) = delete;

  /// Breaks off what is open and opens nothing more.
  void close();

  /// `url` as in ClientOptions; `tls` is for https only. `timeout` is for dialling and the head.
  std::shared_ptr<StreamRequest> request(const std::string& url, std::shared_ptr<TlsContext> tls,
                                         const Request& request, Duration timeout,
                                         Reach reach = Reach::anywhere);
  /// The same, dialled at another host and port than the URL's.
  std::shared_ptr<StreamRequest> request_at(const std::string& host, std::uint16_t port,
                                            const std::string& url, std::shared_ptr<TlsContext> tls,
                                            const Request& request, Duration timeout, Reach reach);

 private:
  struct Impl;
  class Pending;
  std::unique_ptr<Impl> impl_;
};

/// Gives the whole body, up to `limit` bytes, to `done`; for answers that were not meant to be
/// streams. One that takes longer than `timeout` is broken off. Errors: unavailable.
void read_whole(std::shared_ptr<BodySource> body, std::size_t limit, Duration timeout,
                std::function<void(Result<std::string>)> done);

/// Joins two streams until either ends; a side that is slow holds up the other. What the server has
/// said still reaches the client, however slowly; a client that is gone is not waited for.
void splice(std::shared_ptr<ByteStream> client, std::shared_ptr<ByteStream> server);

}  // namespace dibs::net
