#pragma once
// One stream of an Http2Session: a request that comes (http2_input.cc), and then its answer that
// goes (http2_session.cc).

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/time.h"
#include "net/http2_session.h"
#include "net/server_connection.h"

namespace dibs::net {

struct Http2Session::Stream {
  enum class State : char { receiving, handling, answering };

  Stream(std::int32_t number, std::int64_t now) : id(number), since(now) {}

  const std::int32_t id;
  const std::int64_t since;
  State state = State::receiving;
  Request request;
  std::size_t header_bytes = 0;
  std::size_t held_head = 0;  // of header_bytes, what is in the request
  bool headers_too_large = false;
  bool to_head = false;
  bool patient = false;
  bool refused = false;  // answered before it was whole
  bool input_ended = false;
  bool deferred = false;
  std::int64_t deadline = 0;  // 0: none
  // The answer: a body, or pieces that come.
  std::string body = {};
  std::size_t at = 0;  // of the body, or of the first piece
  std::shared_ptr<StreamCore> core = {};
  std::deque<SharedBytes> pieces = {};
  std::size_t sent = 0;
  std::size_t sent_at_deadline = 0;
  std::function<void()> gone = {};

  /// Something waits that the client has not let out.
  bool is_waiting() const {
    return state == State::answering && !deferred && (core != nullptr || at < body.size());
  }
};

inline std::int64_t milliseconds(Duration span) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(span).count();
}

inline std::string_view view(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace dibs::net
