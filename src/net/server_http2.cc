// A connection that speaks HTTP/2: bytes between the channel and the session.

#include "base/strings.h"
#include "net/server_connection.h"

namespace dibs::net {

void Connection::respond(std::int32_t stream, Response response) {
  if (!http2_) return respond(std::move(response));
  if (worker_.shared.draining) http2_->retire(loop_->now());
  http2_->respond(stream, std::move(response));
  advance();
}

void Connection::dispatch(std::int32_t stream, Request request) {
  ++worker_.shared.requests;
  sign(request);
  // Nothing is upgraded here, whatever an HTTP/1.1 request would ask for.
  request.headers.remove("Upgrade");
  try {
    worker_.shared.handler(std::move(request), make_exchange(shared_from_this(), stream));
  } catch (...) {
    // The exchange has died unanswered and sent a 500; the thread serves others.
  }
}

std::string Connection::date() {
  // "Date: …\r\n"
  constexpr std::string_view kName = "Date: ";
  return std::string(trim(std::string_view(worker_.date()).substr(kName.size())));
}

bool Connection::step_http2() {
  Http2Session& session = *http2_;
  bool moved = false;
  if (channel_->output() < kSlice) {
    std::string& out = worker_.assembly;
    out.clear();
    session.produce(out, kGathered);
    moved = !out.empty();
    if (moved && !channel_->write(out)) {
      close();
      return false;
    }
  }
  if (!flush()) return false;
  if (channel_->output() == 0) deadline_ = 0;
  session.tell_drained();
  if (state_ != State::http2) return false;
  // Who does not take what is sent is not read from either. But who is slow is: what it says of
  // windows and resets, and its other requests, do not wait for a long answer.
  if (channel_->output() >= kSlice) return false;
  if (!moved && channel_->output() == 0 && session.is_over()) {
    channel_->write_end();
    channel_->flush();
    close();
    return false;
  }
  if (!channel_->readable() && !channel_->holds_input()) return moved;
  // An end that came is read when everything has left.
  if (!session.takes_input() || (peer_closed_ && channel_->output() > 0)) return moved;
  std::size_t got = 0;
  switch (channel_->read(worker_.scratch.data(), worker_.scratch.size(), got)) {
    case Io::ok:
      break;
    case Io::again:
      return moved;
    default:
      close();
      return false;
  }
  session.receive({worker_.scratch.data(), got}, loop_->now());
  return state_ == State::http2;
}

}  // namespace dibs::net
