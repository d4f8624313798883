#pragma once
// Many byte streams over one: SPDY/3.1 on an upgraded connection, either end.
//
// Thread-safe. Handlers run on an io thread, one at a time, and must not block; they come in the
// order of the frames. Ids are odd for the client's streams. Dropping the connection ends it.

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "net/http.h"
#include "net/spdy_frame.h"

namespace dibs::net {

class SpdyConnection {
 public:
  enum class End : std::uint8_t { client, server };
  struct Handlers {
    /// The peer opened a stream; reply() accepts it, reset() refuses.
    std::function<void(std::uint32_t stream, const SpdyHeaders& headers)> opened = {};
    /// The peer accepted a stream of ours.
    std::function<void(std::uint32_t stream)> replied = {};
    std::function<void(std::uint32_t stream, std::string_view bytes)> data = {};
    /// No more data will come on the stream.
    std::function<void(std::uint32_t stream, bool reset)> finished = {};
    /// Once; nothing comes after it.
    std::function<void()> closed = {};
  };

  static std::shared_ptr<SpdyConnection> make(std::shared_ptr<ByteStream> stream, End end);
  ~SpdyConnection();

  void start(Handlers handlers);
  std::uint32_t open(const SpdyHeaders& headers);
  void reply(std::uint32_t stream);
  /// What comes on a stream that was finished or reset already is dropped.
  void write(std::uint32_t stream, std::string_view bytes);
  void finish(std::uint32_t stream);
  void reset(std::uint32_t stream, std::uint32_t status);
  /// Says so to the peer, after what was written.
  void close();

  std::size_t queued() const;
  void on_drained(std::function<void()> drained);
  void hold(bool held);

 private:
  SpdyConnection(std::shared_ptr<ByteStream> stream, End end);
  struct Core;
  std::shared_ptr<Core> core_;
};

}  // namespace dibs::net
