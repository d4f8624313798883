#include "net/server_connection.h"

#include <algorithm>
#include <charconv>

#include "base/strings.h"

namespace dibs::net {
namespace {

// What a slow reader must take per write_timeout.
constexpr std::size_t kLeastProgress = 16 * 1024;
// Bytes read and dropped after a refused request, so that the client sees the answer, not a reset.
constexpr std::size_t kLingerBytes = 16 * 1024 * 1024;
constexpr Duration kLingerTime = std::chrono::seconds(3);
// Pipelined requests served before other connections of the thread get their turn.
constexpr int kTurns = 64;
// Milliseconds after which a connection that ends counts as idle: until then the next request of a
// busy client may be on its way, and gets an answer instead of a broken connection.
constexpr std::int64_t kQuiet = 200;

Time wall_now() {
  return {std::chrono::duration_cast<std::chrono::nanoseconds>(
              std::chrono::system_clock::now().time_since_epoch())
              .count()};
}

}  // namespace

void append_value(std::string& out, std::string_view value) {
  if (value.find_first_of("\r\n") == std::string_view::npos) {
    out.append(value);
    return;
  }
  for (const char c : value) out.push_back(c == '\r' || c == '\n' ? ' ' : c);
}

Connection::Connection(ServerWorker& worker, std::unique_ptr<Channel> channel, bool tls,
                       std::string address, std::string host)
    : worker_(worker),
      options_(worker.shared.options),
      loop_(worker.loop),
      max_queued_(options_.max_queued),
      channel_(std::move(channel)),
      parser_({.max_header_bytes = options_.max_header_bytes, .max_body = options_.max_body}),
      host_(std::move(host)),
      state_(tls ? State::handshake : State::reading) {
  peer_.address = std::move(address);
}

Connection::~Connection() = default;

void Connection::begin() {
  set_deadline(options_.header_timeout);
  waiting_since_ = loop_->now();
  if (!loop_->add(channel_->fd(), this)) return close();
  advance();
}

std::int64_t Connection::waited(std::int64_t now) const {
  // A handshake and a request take a moment.
  constexpr std::int64_t kMoment = 2000;
  if (state_ == State::http2) return http2_->idle(now);
  if (state_ != State::handshake && state_ != State::reading) return -1;
  const bool idle = state_ == State::reading && !begun_;
  const std::int64_t span = now - waiting_since_;
  return idle || span > kMoment ? span : -1;
}

void Connection::set_deadline(Duration span) {
  deadline_ = loop_->now() + std::chrono::duration_cast<std::chrono::milliseconds>(span).count();
}

void Connection::on_ready(EventLoop::Ready ready) {
  if (state_ == State::closed || state_ == State::upgraded) return;
  if (ready.broken) return close();
  if (ready.in) channel_->set_readable();
  if (ready.peer_closed) {
    peer_closed_ = true;
    channel_->set_peer_closed();
    // Nothing more can be asked on this connection: a stream has lost its reader. A plain answer in
    // the making is still sent, the client may have closed its side only.
    if (state_ == State::streaming) return close();
    if (state_ == State::handling) tell_gone();
  }
  advance();
}

void Connection::on_gone(std::int32_t stream, std::function<void()> gone) {
  if (http2_) return http2_->on_gone(stream, std::move(gone));
  if (state_ == State::handling && !peer_closed_) {
    gone_ = std::move(gone);
  } else if (state_ == State::handling || state_ == State::closed) {
    gone();
  }
}

void Connection::tell_gone() {
  if (const auto gone = std::exchange(gone_, nullptr)) gone();
}

void Connection::on_tick(std::int64_t now) {
  if (state_ == State::upgraded) {
    const auto duplex = duplex_;
    return duplex->on_tick(now);
  }
  if (state_ == State::http2) {
    http2_->tick(now);
    advance();
  }
  if (state_ == State::closed || deadline_ == 0 || now < deadline_) return;
  const std::size_t waiting = channel_->output() + (body_.size() - body_at_);
  const bool sending =
      state_ == State::writing || state_ == State::streaming || state_ == State::http2;
  // What waits says nothing: more of it comes as some of it leaves.
  if (sending && waiting > 0 && channel_->taken() - progress_ >= kLeastProgress) {
    progress_ = channel_->taken();
    set_deadline(patient_ ? options_.patient_write_timeout : options_.write_timeout);
    return;
  }
  if (sending) ++worker_.shared.slow_clients;
  ++worker_.shared.timeouts;
  close();
}

void Connection::drain() {
  if (state_ == State::http2) {
    http2_->retire(loop_->now());
    http2_->tick(loop_->now());
    return advance();
  }
  if (loop_->now() - waiting_since_ < kQuiet) return;
  if (state_ == State::handshake) return close();
  if (state_ == State::reading && !begun_ && input_.empty()) {
    channel_->write_end();
    channel_->flush();
    close();
  }
}

bool Connection::is_busy() const {
  switch (state_) {
    case State::reading:
      return begun_ || !input_.empty();
    case State::http2:
      return http2_->streams() > 0;
    case State::handling:
    case State::writing:
    case State::streaming:
    case State::upgraded:
      return true;
    case State::handshake:
    case State::lingering:
    case State::closed:
      break;
  }
  return false;
}

void Connection::close() {
  if (state_ == State::closed) return;
  const auto self = shared_from_this();
  state_ = State::closed;
  deadline_ = 0;
  if (channel_ != nullptr) loop_->remove(channel_->fd());
  channel_.reset();
  input_ = std::string();
  body_ = std::string();
  loop_->retire(self);
  worker_.remove(*this);
  close_stream();
  if (http2_) http2_->close();
  tell_gone();
  if (const auto gone = std::move(duplex_)) {
    if (gone->too_slow()) ++worker_.shared.slow_clients;
    if (gone->timed_out()) ++worker_.shared.timeouts;
    gone->close();
  }
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
    case State::http2:
      return step_http2();
    case State::lingering:
      return step_lingering();
    case State::handling:
    case State::upgraded:
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
        progress_ = channel_->taken();
        set_deadline(patient_ ? options_.patient_write_timeout : options_.write_timeout);
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
    if (certificate.front_proxy) front_proxy_ = certificate.common_name;
    if (certificate.verified) {
      peer_.common_name = certificate.common_name;
      peer_.organizations = certificate.organizations;
      peer_.uid = certificate.uid;
      peer_.credential_id = certificate.credential_id;
    }
  }
  if (channel_->speaks_http2()) {
    state_ = State::http2;
    peer_.http2 = true;
    deadline_ = 0;
    http2_ = std::make_unique<Http2Session>(options_, *this, loop_->now());
    return true;
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
  sign(request);
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

void Connection::sign(Request& request) const {
  request.peer = peer_;
  if (peer_.certificate && !certificate_current()) {
    request.peer.certificate = false;
    request.peer.certificate_invalid = true;
  }
  if (front_proxy_ && certificate_current()) {
    request.headers.add(std::string(kFrontProxyField), *front_proxy_);
  }
}

void Connection::dispatch() {
  state_ = State::handling;
  deadline_ = 0;
  ++worker_.shared.requests;
  Request request = std::move(parser_.request());
  if (is_websocket_upgrade(request) && request.headers.get("Sec-WebSocket-Version") == "13") {
    websocket_key_ = request.headers.get("Sec-WebSocket-Key");
  }
  patient_ = options_.patient && options_.patient(request);
  try {
    worker_.shared.handler(std::move(request), make_exchange(shared_from_this(), 0));
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
  gone_ = nullptr;
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
  patient_ = false;
  close_stream();
  websocket_key_.clear();
  if (!keep_alive_) {
    if (linger_) return begin_linger();
    channel_->write_end();
    channel_->flush();
    return close();
  }
  parser_.reset();
  state_ = State::reading;
  begun_ = false;
  head_checked_ = false;
  waiting_since_ = loop_->now();
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

}  // namespace dibs::net
