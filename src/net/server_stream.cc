// What a connection does beyond one answer to one request: bodies in pieces, and upgrades.
#include <charconv>

#include "base/mutex.h"
#include "base/strings.h"
#include "net/server_connection.h"
#include "net/websocket.h"
#include "net/websocket_stream.h"

namespace dibs::net {

void Connection::close_stream() {
  if (stream_ == nullptr) return;
  const auto core = std::move(stream_);
  // Callbacks often hold the stream; taking them out ends that circle, and letting them go after
  // the lock lets the stream go with them.
  std::function<void()> closed;
  std::function<void()> drained;
  std::deque<SharedBytes> queue;
  bool finished = false;
  {
    const MutexLock lock(core->mutex);
    core->closed = true;
    finished = core->finished;
    closed.swap(core->on_closed);
    drained.swap(core->drained);
    queue.swap(core->queue);
  }
  if (closed && !finished) closed();
}

void Connection::begin_stream(std::int32_t stream, Response head,
                              std::shared_ptr<StreamCore> core) {
  if (http2_) {
    http2_->begin_stream(stream, std::move(head), std::move(core));
    return advance();
  }
  stream_ = std::move(core);
  if (state_ != State::handling) return close_stream();
  chunked_ = http_1_1_ && !to_head_ && !has_no_body(head.status);
  // Without chunks only the end of the connection ends the body.
  if (!http_1_1_) keep_alive_ = false;
  std::string& out = worker_.assembly;
  out.clear();
  append_head(out, head.status, head.headers, chunked_, nullptr);
  state_ = State::streaming;
  gone_ = nullptr;
  deadline_ = 0;
  in_flight_ = 0;
  if (!channel_->write(out)) return close();
  if (peer_closed_) return close();
  advance();
}

void Connection::pump_stream(std::int32_t stream) {
  if (state_ == State::http2) {
    http2_->pump_stream(stream);
    return advance();
  }
  if (state_ == State::streaming) advance();
}

void Connection::abort_stream(std::int32_t stream, bool too_slow) {
  if (state_ == State::http2) {
    http2_->abort_stream(stream, too_slow);
    return advance();
  }
  if (state_ == State::closed || stream_ == nullptr) return;
  if (too_slow) ++worker_.shared.slow_clients;
  close();
}

bool Connection::step_stream() {
  if (!flush()) return false;
  if (channel_->output() > 0) return false;
  deadline_ = 0;

  const auto core = stream_;
  std::deque<SharedBytes> pieces;
  std::size_t size = 0;
  bool finished = false;
  std::function<void()> drained;
  {
    const MutexLock lock(core->mutex);
    core->queued -= in_flight_;
    const bool had_output = in_flight_ > 0;
    in_flight_ = 0;
    if (core->queue.size() == 1 || core->queued <= kSlice) {
      pieces.swap(core->queue);
      size = core->queued;
    } else {
      while (!core->queue.empty() && size < kSlice) {
        size += core->queue.front()->size();
        pieces.push_back(std::move(core->queue.front()));
        core->queue.pop_front();
      }
    }
    if (pieces.empty()) {
      core->scheduled = false;
      finished = core->finished;
      if (!finished && had_output) drained = core->drained;
    }
  }
  if (pieces.empty()) {
    if (finished) {
      if (chunked_ && !channel_->write("0\r\n\r\n")) {
        close();
        return false;
      }
      state_ = State::writing;
      return true;
    }
    if (drained) drained();
    // The callback may have written more.
    const MutexLock lock(core->mutex);
    return state_ == State::streaming && !core->queue.empty();
  }

  in_flight_ = size;
  if (to_head_) return true;
  std::string& out = worker_.assembly;
  out.clear();
  if (chunked_ && size > 0) {
    char number[24];
    const auto end = std::to_chars(number, number + sizeof number, size, 16).ptr;
    out.append(number, static_cast<std::size_t>(end - number));
    out.append("\r\n");
  }
  bool good = true;
  for (const auto& piece : pieces) {
    // Small pieces share a TLS record; a large one is not copied for it.
    if (out.size() + piece->size() > kGathered) {
      good = good && channel_->write(out);
      out.clear();
    }
    if (piece->size() > kGathered / 2) {
      good = good && channel_->write(out) && channel_->write(*piece);
      out.clear();
    } else {
      out.append(*piece);
    }
  }
  if (chunked_ && size > 0) out.append("\r\n");
  if (!good || !channel_->write(out)) {
    close();
    return false;
  }
  return true;
}

void Connection::upgrade(std::int32_t stream, std::string protocol,
                         std::function<void(std::shared_ptr<WebSocket>)> ready) {
  if (http2_) {
    refuse_upgrade(stream);
    return ready(nullptr);
  }
  if (state_ != State::handling) return ready(nullptr);
  if (websocket_key_.empty()) {
    Response response;
    response.status = 400;
    response.headers.add("Content-Type", "text/plain; charset=utf-8");
    response.body = "Bad Request: not a WebSocket handshake\n";
    respond(std::move(response));
    return ready(nullptr);
  }
  Response head;
  head.status = 101;
  head.headers.add("Upgrade", "websocket");
  head.headers.add("Connection", "Upgrade");
  head.headers.add("Sec-WebSocket-Accept", ws_accept(websocket_key_));
  if (!protocol.empty()) head.headers.add("Sec-WebSocket-Protocol", std::move(protocol));
  upgrade_to(stream, std::move(head), [&](std::shared_ptr<ByteStream> stream) {
    if (stream == nullptr) return ready(nullptr);
    ready(make_websocket(std::move(stream), WsEnd::server, options_.max_websocket_message));
  });
}

void Connection::refuse_upgrade(std::int32_t stream) {
  Response response;
  response.status = 400;
  response.headers.add("Content-Type", "text/plain; charset=utf-8");
  response.body = "Bad Request: upgrades need HTTP/1.1\n";
  respond(stream, std::move(response));
}

void Connection::upgrade_to(std::int32_t stream, Response head, const UpgradeReady& ready) {
  if (http2_) {
    refuse_upgrade(stream);
    return ready(nullptr);
  }
  if (state_ != State::handling) return ready(nullptr);
  std::string text = cat("HTTP/1.1 ", head.status, ' ', reason_phrase(head.status), "\r\n");
  for (const auto& [name, value] : head.headers.fields()) {
    append_value(text, name);
    text.append(": ");
    append_value(text, value);
    text.append("\r\n");
  }
  text.append("\r\n");
  const auto self = shared_from_this();
  state_ = State::upgraded;
  gone_ = nullptr;
  deadline_ = 0;
  input_fresh_ = false;
  loop_->remove(channel_->fd());
  const auto duplex = std::make_shared<Duplex>(
      loop_, std::move(channel_), std::exchange(input_, std::string()), worker_.scratch,
      Duplex::Limits{.max_queued = max_queued_,
                     .write_timeout = options_.patient_write_timeout,
                     .client = true});
  duplex_ = duplex;
  duplex->begin(text, [self] { self->close(); });
  ready(state_ == State::upgraded ? make_byte_stream(duplex) : nullptr);
}

}  // namespace dibs::net
