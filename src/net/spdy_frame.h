#pragma once
// SPDY/3.1 framing without I/O, as far as Kubernetes streams use it: many byte streams in one
// connection, each opened with headers. Header blocks are compressed with one context per
// direction, so a codec belongs to one connection and its frames must leave in the order they were
// made. Nobody in Kubernetes uses the flow control of 3.1: windows are neither kept nor told.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace dibs::net {

using SpdyHeaders = std::vector<std::pair<std::string, std::string>>;

/// The first value of that name, without case; "" when absent.
std::string_view spdy_header(const SpdyHeaders& headers, std::string_view name);

enum class SpdyType : std::uint16_t {
  data = 0,
  syn_stream = 1,
  syn_reply = 2,
  rst_stream = 3,
  settings = 4,
  ping = 6,
  goaway = 7,
  headers = 8,
  window_update = 9,
};

struct SpdyFrame {
  SpdyType type = SpdyType::data;
  std::uint32_t stream = 0;  // of a ping: its id; of a goaway: the last good stream
  bool fin = false;
  std::uint32_t status = 0;  // of rst_stream and goaway
  SpdyHeaders headers = {};
  std::string data = {};  // a long frame comes in several pieces
};

inline constexpr std::uint32_t kSpdyProtocolError = 1;
inline constexpr std::uint32_t kSpdyRefused = 3;
inline constexpr std::uint32_t kSpdyCancel = 5;

/// One end's codec for one connection.
class SpdyCodec {
 public:
  SpdyCodec();
  ~SpdyCodec();
  SpdyCodec(const SpdyCodec&) = delete;
  SpdyCodec& operator=(const SpdyCodec&) = delete;

  /// Errors: bad_request; the connection cannot go on then.
  Result<> feed(std::string_view bytes, std::vector<SpdyFrame>& frames);

  std::string syn_stream(std::uint32_t stream, const SpdyHeaders& headers, bool fin);
  std::string syn_reply(std::uint32_t stream, const SpdyHeaders& headers, bool fin);
  static std::string data(std::uint32_t stream, std::string_view bytes, bool fin);
  static std::string rst_stream(std::uint32_t stream, std::uint32_t status);
  static std::string ping(std::uint32_t id);
  static std::string goaway(std::uint32_t last_stream);

 private:
  struct Impl;
  Result<> take_control(std::vector<SpdyFrame>& frames);
  std::unique_ptr<Impl> impl_;
};

}  // namespace dibs::net
