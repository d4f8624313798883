#include "net/server_connection.h"

#include <algorithm>
#include <charconv>

#include "base/strings.h"

namespace dibs::net {
namespace {

// A body up to this goes out together with its head in one write; a longer one in slices, so that a
// large list is not held a second time in encrypted form.
constexpr std::size_t kGathered = 64 * 1024;
constexpr std::size_t kSlice = 256 * 1024;
// What a slow reader must take per write_timeout.
constexpr std::size_t kLeastProgress = 16 * 1024;
// Bytes read and dropped after a refused request, so that the client sees the answer, not a reset.
constexpr std::size_t kLingerBytes = 16 * 1024 * 1024;
constexpr Duration kLingerTime = std::chrono::seconds(3);
constexpr Duration kCloseTime = std::chrono::seconds(5);
// Pipelined requests served before other connections of the thread get their turn.
constexpr int kTurns = 64;

Time wall_now() {
  return {std::chrono::duration_cast<std::chrono::nanoseconds>(
              std::chrono::system_clock::now().time_since_epoch())
              .count()};
}

bool has_no_body(int status) { return status / 100 == 1 || status == 204 || status == 304; }

// A line break in a value would let whoever chose the value write headers of his own.
void append_value(std::string& out, std::string_view value) {
  if (value.find_first_of("\r\n") == std::string_view::npos) {
    out.append(value);
    return;
  }
  for (const char c : value) out.push_back(c == '\r' || c == '\n' ? ' ' : c);
}

}  // namespace

struct Connection::Upgraded {
  explicit Upgraded(std::size_t max_message) : reader(true, max_message) {}
  WsReader reader;
  std::shared_ptr<SocketCore> core = std::make_shared<SocketCore>();
  std::function<void(std::string, bool)> message;
  std::function<void()> closed;
  bool started = false;
  bool close_sent = false;
  bool finished = false;  // both closes have gone by, or the peer broke the rules
};

Connection::Connection(ServerWorker& worker, std::unique_ptr<Channel> channel, bool tls,
                       std::string address)
    : worker_(worker),
      options_(worker.shared.options),
      loop_(worker.loop),
      max_queued_(options_.max_queued),
      channel_(std::move(channel)),
      parser_({.max_header_bytes = options_.max_header_bytes, .max_body = options_.max_body}),
      state_(tls ? State::handshake : State::reading) {
  peer_.address = std::move(address);
}

Connection::~Connection() = default;

void Connection::begin() {
  set_deadline(options_.header_timeout);
  if (!loop_->add(channel_->fd(), this)) return close();
  advance();
}

void Connection::set_deadline(Duration span) {
  deadline_ = loop_->now() + std::chrono::duration_cast<std::chrono::milliseconds>(span).count();
}

void Connection::on_ready(EventLoop::Ready ready) {
  if (state_ == State::closed) return;
  if (ready.broken) return close();
  if (ready.in) channel_->set_readable();
  if (ready.peer_closed) {
    peer_closed_ = true;
    channel_->set_peer_closed();
    // Nothing more can be asked on this connection: a stream has lost its reader. A plain answer in
    // the making is still sent, the client may have closed its side only.
    if (state_ == State::streaming) return close();
  }
  advance();
}

void Connection::on_tick(std::int64_t now) {
  if (state_ == State::closed || deadline_ == 0 || now < deadline_) return;
  const std::size_t waiting = channel_->output() + (body_.size() - body_at_);
  const bool sending = state_ == State::writing || state_ == State::streaming ||
                       (state_ == State::websocket && channel_->output() > 0);
  if (sending && waiting > 0 && waiting + kLeastProgress <= progress_) {
    progress_ = waiting;
    set_deadline(options_.write_timeout);
    return;
  }
  if (sending) ++worker_.shared.slow_clients;
  ++worker_.shared.timeouts;
  close();
}

void Connection::drain() {
  if (state_ == State::handshake) return close();
  if (state_ == State::reading && !begun_ && input_.empty()) {
    channel_->write_end();
    channel_->flush();
    close();
  }
}

void Connection::close() {
  if (state_ == State::closed) return;
  const auto self = shared_from_this();
  state_ = State::closed;
  deadline_ = 0;
  loop_->remove(channel_->fd());
  channel_.reset();
  input_ = std::string();
  body_ = std::string();
  loop_->retire(self);
  worker_.remove(*this);
  close_stream();
  if (upgraded_ != nullptr) {
    auto gone = std::move(upgraded_);
    {
      std::lock_guard lock(gone->core->mutex);
      gone->core->drained = nullptr;
    }
    if (gone->closed) gone->closed();
  }
}

void Connection::close_stream() {
  if (stream_ == nullptr) return;
  const auto core = std::move(stream_);
  std::function<void()> closed;
  std::function<void()> drained;
  std::deque<SharedBytes> queue;
  {
    std::lock_guard lock(core->mutex);
    core->closed = true;
    if (!core->finished) closed = std::move(core->on_closed);
    // Callbacks often hold the stream; dropping them here ends that circle.
    core->on_closed = nullptr;
    drained = std::move(core->drained);
    core->drained = nullptr;
    queue.swap(core->queue);
  }
  if (closed) closed();
}

void Connection::advance() {
  // A response from inside the handler comes back here: the loop below goes on with it.
  if (advancing_) return;
  const auto self = shared_from_this();
  advancing_ = true;
  int turns = kTurns;
  while (state_ != State::closed && step()) {
    if (--turns == 0) {
      loop_->post([self] { self->advance(); });
      break;
    }
  }
  advancing_ = false;
}

bool Connection::step() {
  switch (state_) {
    case State::handshake:
      return step_handshake();
    case State::reading:
      return step_reading();
    case State::writing:
      return step_writing();
    case State::streaming:
      return step_stream();
    case State::websocket:
      return step_websocket();
    case State::lingering:
      return step_lingering();
    case State::handling:
    case State::closed:
      return false;
  }
  return false;
}

bool Connection::flush() {
  switch (channel_->flush()) {
    case Io::ok:
      return true;
    case Io::again:
      if (deadline_ == 0) {
        progress_ = channel_->output() + (body_.size() - body_at_);
        set_deadline(options_.write_timeout);
      }
      return true;
    default:
      close();
      return false;
  }
}

bool Connection::step_handshake() {
  const Io io = channel_->handshake();
  if (io == Io::error && channel_->got_plain_http()) {
    channel_->write_raw(
        "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n");
    channel_->flush();
    ++worker_.shared.bad_requests;
    channel_->shutdown_write();
    state_ = State::lingering;
    set_deadline(kLingerTime);
    return true;
  }
  // The alert that says why is worth sending, the outcome does not matter any more.
  if (channel_->flush() == Io::error || io == Io::error || io == Io::eof) {
    close();
    return false;
  }
  if (io == Io::again) return false;
  const PeerCertificate certificate = channel_->peer_certificate();
  if (certificate.presented) {
    peer_.certificate = certificate.verified;
    peer_.certificate_invalid = !certificate.verified;
    certificate_from_ = certificate.not_before;
    certificate_to_ = certificate.not_after;
    if (certificate.verified) {
      peer_.common_name = certificate.common_name;
      peer_.organizations = certificate.organizations;
    }
  }
  state_ = State::reading;
  return true;
}

// Connections and resumed sessions outlive certificates.
bool Connection::certificate_current() const {
  const Time now = wall_now();
  return certificate_from_ <= now && now <= certificate_to_;
}

bool Connection::step_reading() {
  if (input_fresh_) {
    input_fresh_ = false;
    return parse(input_, true);
  }
  if (!channel_->readable() && !channel_->holds_input()) return false;
  std::size_t got = 0;
  switch (channel_->read(worker_.scratch.data(), worker_.scratch.size(), got)) {
    case Io::ok:
      break;
    case Io::again:
      return false;
    default:
      close();
      return false;
  }
  const std::string_view bytes(worker_.scratch.data(), got);
  if (input_.empty()) return parse(bytes, false);
  input_.append(bytes);
  return parse(input_, true);
}

bool Connection::parse(std::string_view bytes, bool from_input) {
  std::size_t at = 0;
  if (!begun_) {
    // Some clients end a body with a line break that no length counts.
    while (at < bytes.size() && (bytes[at] == '\r' || bytes[at] == '\n')) ++at;
    if (at < bytes.size()) {
      begun_ = true;
      set_deadline(options_.header_timeout);
    }
  }
  const auto keep_rest = [&] {
    if (from_input) {
      input_.erase(0, at);
      if (input_.empty()) input_ = std::string();
    } else {
      input_.assign(bytes.substr(at));
    }
  };
  while (at < bytes.size()) {
    std::size_t used = 0;
    const Parsed parsed = parser_.feed(bytes.substr(at), used);
    at += used;
    switch (parsed) {
      case Parsed::need_more:
        keep_rest();
        return true;
      case Parsed::head:
        if (!check_head()) return true;
        continue;
      case Parsed::complete:
        keep_rest();
        input_fresh_ = !input_.empty();
        if (check_head()) dispatch();
        return true;
      case Parsed::malformed:
        refuse(400, "400 Bad Request");
        return true;
      case Parsed::header_too_large:
        refuse(431, "431 Request Header Fields Too Large");
        return true;
      case Parsed::unsupported:
        refuse(501, "501 Not Implemented: unsupported transfer encoding");
        return true;
      case Parsed::body_too_large:
        refuse_body();
        return true;
    }
  }
  keep_rest();
  return true;
}

bool Connection::check_head() {
  if (head_checked_) return true;
  head_checked_ = true;
  Request& request = parser_.request();
  http_1_1_ = parser_.http_1_1();
  keep_alive_ = parser_.keep_alive();
  to_head_ = request.method == "HEAD";
  if (http_1_1_ && !request.headers.has("Host")) {
    refuse(400, "400 Bad Request: missing required Host header");
    return false;
  }
  request.peer = peer_;
  if (peer_.certificate && !certificate_current()) {
    request.peer.certificate = false;
    request.peer.certificate_invalid = true;
  }
  if (parser_.content_length() > options_.max_body) {
    refuse_body();
    return false;
  }
  if (!parser_.has_body()) return true;
  set_deadline(options_.body_timeout);
  if (const auto expect = request.headers.get("Expect"); !expect.empty() && http_1_1_) {
    if (!equals_ignoring_case(expect, "100-continue")) {
      refuse(417, "417 Expectation Failed");
      return false;
    }
    channel_->write("HTTP/1.1 100 Continue\r\n\r\n");
    if (!flush()) return false;
  }
  return true;
}

void Connection::dispatch() {
  state_ = State::handling;
  deadline_ = 0;
  ++worker_.shared.requests;
  Request request = std::move(parser_.request());
  if (is_websocket_upgrade(request) && request.headers.get("Sec-WebSocket-Version") == "13") {
    websocket_key_ = request.headers.get("Sec-WebSocket-Key");
  }
  try {
    worker_.shared.handler(std::move(request), make_exchange(shared_from_this()));
  } catch (...) {
    // The exchange has died unanswered and sent a 500; the thread serves others.
  }
}

void Connection::refuse(int status, std::string_view text) {
  ++worker_.shared.bad_requests;
  Response response;
  response.status = status;
  response.headers.add("Content-Type", "text/plain; charset=utf-8");
  response.body = text;
  keep_alive_ = false;
  linger_ = true;
  state_ = State::handling;
  respond(std::move(response));
}

void Connection::refuse_body() {
  if (!options_.body_too_large) return refuse(413, "413 Request Entity Too Large");
  keep_alive_ = false;
  linger_ = true;
  state_ = State::handling;
  respond(options_.body_too_large(parser_.request()));
}

void Connection::append_head(std::string& out, int status, const Headers& headers, bool chunked,
                             const std::size_t* content_length) {
  char number[24];
  const auto append_number = [&](std::size_t n, int base) {
    const auto end = std::to_chars(number, number + sizeof number, n, base).ptr;
    out.append(number, static_cast<std::size_t>(end - number));
  };
  out.append("HTTP/1.1 ");
  append_number(static_cast<std::size_t>(status), 10);
  out.push_back(' ');
  out.append(reason_phrase(status));
  out.append("\r\n");
  bool has_date = false;
  for (const auto& [name, value] : headers.fields()) {
    // Framing is this server's business.
    if (equals_ignoring_case(name, "Content-Length") ||
        equals_ignoring_case(name, "Transfer-Encoding")) {
      continue;
    }
    if (equals_ignoring_case(name, "Connection")) {
      if (has_token(value, "close")) keep_alive_ = false;
      continue;
    }
    has_date = has_date || equals_ignoring_case(name, "Date");
    append_value(out, name);
    out.append(": ");
    append_value(out, value);
    out.append("\r\n");
  }
  if (!has_date) out.append(worker_.date());
  if (chunked) out.append("Transfer-Encoding: chunked\r\n");
  if (content_length != nullptr) {
    out.append("Content-Length: ");
    append_number(*content_length, 10);
    out.append("\r\n");
  }
  if (worker_.shared.draining) keep_alive_ = false;
  if (!keep_alive_) {
    out.append("Connection: close\r\n");
  } else if (!http_1_1_) {
    out.append("Connection: keep-alive\r\n");
  }
  out.append("\r\n");
}

void Connection::respond(Response response) {
  if (state_ != State::handling) return;
  std::string& out = worker_.assembly;
  out.clear();
  const std::size_t size = response.body.size();
  append_head(out, response.status, response.headers, false,
              has_no_body(response.status) ? nullptr : &size);
  if (to_head_ || has_no_body(response.status)) response.body.clear();
  body_at_ = 0;
  if (response.body.size() <= kGathered) {
    out.append(response.body);
    body_ = std::string();
  } else {
    body_ = std::move(response.body);
  }
  state_ = State::writing;
  deadline_ = 0;
  if (!channel_->write(out)) return close();
  if (out.capacity() > 4 * kGathered) out = std::string();
  advance();
}

bool Connection::step_writing() {
  if (channel_->output() < kSlice && body_at_ < body_.size()) {
    const auto slice = std::string_view(body_).substr(body_at_, kSlice);
    if (!channel_->write(slice)) {
      close();
      return false;
    }
    body_at_ += slice.size();
  }
  if (!flush()) return false;
  if (channel_->output() > 0) return false;
  if (body_at_ < body_.size()) return true;
  finish_response();
  return true;
}

void Connection::finish_response() {
  body_ = std::string();
  body_at_ = 0;
  close_stream();
  websocket_key_.clear();
  if (!keep_alive_ || worker_.shared.draining) {
    if (linger_) return begin_linger();
    channel_->write_end();
    channel_->flush();
    return close();
  }
  parser_.reset();
  state_ = State::reading;
  begun_ = false;
  head_checked_ = false;
  set_deadline(options_.idle_timeout);
}

void Connection::begin_linger() {
  // Some clients give up on an end of the stream while they still send, and never read the answer:
  // so what they send is taken first, up to a bound.
  channel_->flush();
  channel_->set_readable();
  state_ = State::lingering;
  set_deadline(kLingerTime);
  in_flight_ = 0;
}

bool Connection::step_lingering() {
  if (!channel_->readable()) return false;
  std::size_t got = 0;
  const Io io = channel_->discard(kGathered, got);
  in_flight_ += got;
  if (io == Io::eof || io == Io::error || in_flight_ > kLingerBytes) {
    close();
    return false;
  }
  return io == Io::ok;
}

void Connection::begin_stream(Response head, std::shared_ptr<StreamCore> core) {
  stream_ = std::move(core);
  if (state_ != State::handling) return close_stream();
  chunked_ = http_1_1_ && !to_head_ && !has_no_body(head.status);
  // Without chunks only the end of the connection ends the body.
  if (!http_1_1_) keep_alive_ = false;
  std::string& out = worker_.assembly;
  out.clear();
  append_head(out, head.status, head.headers, chunked_, nullptr);
  state_ = State::streaming;
  deadline_ = 0;
  in_flight_ = 0;
  if (!channel_->write(out)) return close();
  if (peer_closed_) return close();
  advance();
}

void Connection::pump_stream() {
  if (state_ == State::streaming) advance();
}

void Connection::abort_stream(bool too_slow) {
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
    std::lock_guard lock(core->mutex);
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
    std::lock_guard lock(core->mutex);
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

void Connection::upgrade(std::string protocol,
                         std::function<void(std::shared_ptr<WebSocket>)> ready) {
  if (state_ != State::handling) return ready(nullptr);
  if (websocket_key_.empty()) {
    Response response;
    response.status = 400;
    response.headers.add("Content-Type", "text/plain; charset=utf-8");
    response.body = "Bad Request: not a WebSocket handshake\n";
    respond(std::move(response));
    return ready(nullptr);
  }
  std::string head =
      cat("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n",
          "Connection: Upgrade\r\nSec-WebSocket-Accept: ", ws_accept(websocket_key_), "\r\n");
  if (!protocol.empty()) {
    head.append("Sec-WebSocket-Protocol: ");
    append_value(head, protocol);
    head.append("\r\n");
  }
  head.append("\r\n");
  state_ = State::websocket;
  deadline_ = 0;
  upgraded_ = std::make_unique<Upgraded>(options_.max_websocket_message);
  auto socket = make_server_websocket(shared_from_this(), upgraded_->core);
  if (!channel_->write(head) || !flush()) {
    upgraded_ = nullptr;
    close();
    return ready(nullptr);
  }
  ready(std::move(socket));
}

void Connection::ws_start(std::function<void(std::string, bool)> message,
                          std::function<void()> closed) {
  if (state_ != State::websocket) {
    if (closed) closed();
    return;
  }
  upgraded_->message = std::move(message);
  upgraded_->closed = std::move(closed);
  upgraded_->started = true;
  advance();
}

void Connection::ws_send(WsOp op, std::string payload) {
  if (state_ != State::websocket || upgraded_->close_sent) return;
  if (!channel_->write(ws_frame(op, payload))) return close();
  if (op == WsOp::close) upgraded_->close_sent = true;
  if (channel_->output() > max_queued_) {
    ++worker_.shared.slow_clients;
    return close();
  }
  advance();
}

void Connection::ws_close(std::uint16_t code, std::string reason) {
  if (state_ != State::websocket || upgraded_->close_sent) return;
  const auto self = shared_from_this();
  // The peer's close must come before the deadline, whether or not it reads on.
  ws_send(WsOp::close, ws_close_payload(code, reason));
  if (state_ == State::websocket) set_deadline(kCloseTime);
}

void Connection::ws_notify_drained() {
  if (state_ != State::websocket || channel_->output() > 0) return;
  std::function<void()> drained;
  {
    std::lock_guard lock(upgraded_->core->mutex);
    drained = upgraded_->core->drained;
  }
  if (drained) drained();
}

void Connection::take_ws_events(std::vector<WsEvent>& events) {
  for (auto& event : events) {
    if (state_ != State::websocket || upgraded_->finished) return;
    switch (event.kind) {
      case WsEvent::Kind::message:
        if (upgraded_->message) {
          // A callback may close the connection and with it the function itself.
          const auto message = upgraded_->message;
          message(std::move(event.data), event.binary);
        }
        break;
      case WsEvent::Kind::ping:
        ws_send(WsOp::pong, std::move(event.data));
        break;
      case WsEvent::Kind::pong:
        break;
      case WsEvent::Kind::close:
        ws_send(WsOp::close, event.code == 1005 ? std::string() : ws_close_payload(event.code, ""));
        if (state_ == State::websocket) upgraded_->finished = true;
        break;
    }
  }
}

bool Connection::step_websocket() {
  const bool had_output = channel_->output() > 0;
  if (!flush()) return false;
  const std::size_t waiting = channel_->output();
  if (waiting == 0) {
    if (!upgraded_->close_sent) deadline_ = 0;
    upgraded_->core->output = 0;
    if (had_output) ws_notify_drained();
    if (state_ != State::websocket) return false;
    if (upgraded_->finished) {
      channel_->write_end();
      channel_->flush();
      close();
      return false;
    }
  } else {
    upgraded_->core->output = waiting;
  }
  if (!upgraded_->started || upgraded_->finished) return false;

  std::string_view bytes;
  std::string held;
  if (input_fresh_) {
    input_fresh_ = false;
    held = std::move(input_);
    input_ = std::string();
    bytes = held;
  } else {
    if (!channel_->readable() && !channel_->holds_input()) return false;
    std::size_t got = 0;
    switch (channel_->read(worker_.scratch.data(), worker_.scratch.size(), got)) {
      case Io::ok:
        break;
      case Io::again:
        return false;
      default:
        close();
        return false;
    }
    bytes = std::string_view(worker_.scratch.data(), got);
  }
  std::vector<WsEvent> events;
  const std::uint16_t fault = upgraded_->reader.feed(bytes, events);
  take_ws_events(events);
  if (state_ != State::websocket) return false;
  if (fault != 0 && !upgraded_->finished) {
    ws_send(WsOp::close, ws_close_payload(fault, ""));
    if (state_ == State::websocket) upgraded_->finished = true;
  }
  return state_ == State::websocket;
}

}  // namespace dibs::net
