// What a client sends: frames become requests, whole ones are dispatched, and whoever sends too
// much for what it costs him is turned away.
#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "net/http2_stream.h"

namespace dibs::net {
namespace {

constexpr std::uint32_t kStreamWindow = 256 * 1024;
constexpr std::int32_t kConnectionWindow = 1024 * 1024;
/// Of bodies that are not whole yet, on one connection.
constexpr std::size_t kMostHeld = 16 * 1024 * 1024;
/// Frames that cost a client nothing: so many at once, and so many a second.
constexpr double kBurst = 1000;
constexpr double kPerSecond = 200;
/// Of one field, beside its name and value, as the protocol counts.
constexpr std::size_t kFieldOverhead = 32;
/// So many of the largest heads are held for requests that are not whole, on one connection. A head
/// costs its sender almost nothing, as each byte can mean a field that was sent before.
constexpr std::size_t kMostHeads = 4;

}  // namespace

struct Http2Session::Callbacks {
  static Http2Session& self(void* user) { return *static_cast<Http2Session*>(user); }

  // The end of a malformed head is not told as a frame: it is over when another frame begins, or
  // when the library has turned it away whole.
  static int begin_frame(nghttp2_session*, const nghttp2_frame_hd* head, void* user) {
    if (head->type != NGHTTP2_CONTINUATION) self(user).in_headers_ = false;
    return 0;
  }

  static int invalid_frame(nghttp2_session*, const nghttp2_frame* frame, int, void* user) {
    if (frame->hd.type == NGHTTP2_HEADERS && (frame->hd.flags & NGHTTP2_FLAG_END_HEADERS) != 0) {
      self(user).in_headers_ = false;
    }
    return 0;
  }

  static int begin_headers(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    Http2Session& me = self(user);
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
    me.in_headers_ = true;
    me.header_input_ = 0;
    me.headers_since_ = me.now_;
    // Who resets what is being worked on must not get more of it done at once than others.
    if (me.streams_.size() + me.orphans_ >= 2UL * me.options_.max_streams) {
      me.reset(frame->hd.stream_id, NGHTTP2_REFUSED_STREAM);
      return 0;
    }
    me.streams_.emplace(frame->hd.stream_id,
                        std::make_unique<Stream>(frame->hd.stream_id, me.now_));
    return 0;
  }

  static int header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                    std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
                    std::uint8_t, void* user) {
    Http2Session& me = self(user);
    Stream* stream = me.find(frame->hd.stream_id);
    // Trailers say nothing to us.
    if (stream == nullptr || frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
    const std::string_view key = view(name, name_size);
    if (key == ":method") stream->to_head = view(value, value_size) == "HEAD";
    const std::size_t size = name_size + value_size + kFieldOverhead;
    stream->header_bytes += size;
    if (stream->header_bytes > me.options_.max_header_bytes) {
      // It will be refused, for which nothing of it is needed.
      stream->headers_too_large = true;
      me.take_request(*stream);
      return stream->header_bytes > 4 * me.options_.max_header_bytes
                 ? NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE
                 : 0;
    }
    if (me.held_heads_ + size > kMostHeads * me.options_.max_header_bytes) {
      // Nothing of it was done: the client may send it again.
      const std::int32_t id = stream->id;
      me.forget(id);
      me.reset(id, NGHTTP2_REFUSED_STREAM);
      return 0;
    }
    stream->held_head += size;
    me.held_heads_ += size;
    std::string text(view(value, value_size));
    if (key == ":method") {
      stream->request.method = std::move(text);
    } else if (key == ":path") {
      stream->request.target = std::move(text);
    } else if (key == ":authority") {
      stream->request.headers.set("Host", std::move(text));
    } else if (!key.starts_with(':')) {
      if (key == "host" && stream->request.headers.has("Host")) return 0;
      stream->request.headers.add(std::string(key), std::move(text));
    }
    return 0;
  }

  static int frame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    Http2Session& me = self(user);
    switch (frame->hd.type) {
      case NGHTTP2_HEADERS:
      case NGHTTP2_DATA: {
        if (frame->hd.type == NGHTTP2_HEADERS) me.in_headers_ = false;
        Stream* stream = me.find(frame->hd.stream_id);
        if (frame->hd.type == NGHTTP2_DATA && frame->hd.length == 0 && !me.charge()) {
          return NGHTTP2_ERR_CALLBACK_FAILURE;
        }
        if (stream == nullptr) return 0;
        if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
          me.whole_.push_back(frame->hd.stream_id);  // looked at once its head is here
        }
        if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
          stream->input_ended = true;
          me.whole_.push_back(frame->hd.stream_id);
        }
        return 0;
      }
      case NGHTTP2_RST_STREAM:
      case NGHTTP2_PING:
      case NGHTTP2_SETTINGS:
      case NGHTTP2_PRIORITY:
        return me.charge() ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
      default:
        return 0;
    }
  }

  static int data(nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* bytes,
                  std::size_t size, void* user) {
    Http2Session& me = self(user);
    Stream* stream = me.find(id);
    if (stream == nullptr || stream->state != Stream::State::receiving) return 0;
    stream->request.body.append(view(bytes, size));
    me.held_bytes_ += size;
    if (stream->request.body.size() > me.options_.max_body) {
      me.whole_.push_back(id);
    } else if (me.held_bytes_ > kMostHeld) {
      // Nothing of it was done: the client may send it again.
      me.reset(id, NGHTTP2_REFUSED_STREAM);
    }
    return 0;
  }

  static int closed(nghttp2_session*, std::int32_t id, std::uint32_t, void* user) {
    self(user).forget(id);
    return 0;
  }
};

Http2Session::Http2Session(const ServerOptions& options, Owner& owner, std::int64_t now)
    : options_(options),
      owner_(owner),
      now_(now),
      idle_since_(now),
      budget_(kBurst),
      budget_at_(now) {
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_session_callbacks_new(&callbacks);
  nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, Callbacks::begin_frame);
  nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, Callbacks::invalid_frame);
  nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, Callbacks::begin_headers);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, Callbacks::header);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, Callbacks::frame);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, Callbacks::data);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, Callbacks::closed);
  nghttp2_option* limits = nullptr;
  nghttp2_option_new(&limits);
  nghttp2_option_set_no_closed_streams(limits, 1);
  nghttp2_option_set_max_outbound_ack(limits, 100);
  nghttp2_session_server_new2(&session_, callbacks, this, limits);
  nghttp2_option_del(limits);
  nghttp2_session_callbacks_del(callbacks);
  const nghttp2_settings_entry settings[] = {
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, options.max_streams},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kStreamWindow},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE,
       static_cast<std::uint32_t>(options.max_header_bytes)}};
  nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings, std::size(settings));
  nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, kConnectionWindow);
}

bool Http2Session::charge() {
  budget_ = std::min(kBurst, budget_ + static_cast<double>(now_ - budget_at_) * kPerSecond / 1000);
  budget_at_ = now_;
  if (budget_ < 1) return false;
  budget_ -= 1;
  return true;
}

void Http2Session::leave(std::uint32_t code) {
  broken_ = true;
  nghttp2_session_terminate_session(session_, code);
}

bool Http2Session::receive(std::string_view bytes, std::int64_t now) {
  now_ = now;
  if (broken_) return false;
  if (in_headers_) header_input_ += bytes.size();
  const auto taken = nghttp2_session_mem_recv(
      session_, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  if (taken < 0 || (in_headers_ && header_input_ > 2 * options_.max_header_bytes)) {
    owner_.count_bad_request();
    leave(taken == NGHTTP2_ERR_CALLBACK_FAILURE || taken >= 0 ? NGHTTP2_ENHANCE_YOUR_CALM
                                                              : NGHTTP2_PROTOCOL_ERROR);
    return false;
  }
  for (const std::int32_t id : std::exchange(whole_, {})) {
    if (Stream* stream = find(id)) dispatch(*stream);
  }
  for (const auto& gone : std::exchange(gone_, {})) gone();
  return true;
}

void Http2Session::dispatch(Stream& stream) {
  if (stream.state != Stream::State::receiving) return;
  Request& request = stream.request;
  if (stream.headers_too_large) {
    return refuse(stream, 431, "431 Request Header Fields Too Large");
  }
  if (!request.target.starts_with('/') && request.target != "*") {
    return refuse(stream, 400, "400 Bad Request");
  }
  if (!request.headers.has("Host")) {
    return refuse(stream, 400, "400 Bad Request: missing required Host header");
  }
  std::size_t said = 0;
  for (const char c : request.headers.get("Content-Length")) {
    said = std::min<std::size_t>(said * 10 + static_cast<std::size_t>(c - '0'), SIZE_MAX / 20);
  }
  if (std::max(said, request.body.size()) > options_.max_body) {
    if (!options_.body_too_large) return refuse(stream, 413, "413 Request Entity Too Large");
    stream.state = Stream::State::handling;
    stream.refused = true;
    return respond(stream.id, options_.body_too_large(take_request(stream)));
  }
  if (!stream.input_ended) {
    if (stream.deadline == 0) stream.deadline = now_ + milliseconds(options_.body_timeout);
    return;
  }
  stream.state = Stream::State::handling;
  stream.deadline = 0;
  stream.patient = options_.patient && options_.patient(request);
  ++dispatched_;
  if (options_.goaway_every > 0 && dispatched_ % options_.goaway_every == 0) retire(now_);
  owner_.dispatch(stream.id, take_request(stream));
}

Request Http2Session::take_request(Stream& stream) {
  held_heads_ -= std::exchange(stream.held_head, 0);
  held_bytes_ -= stream.request.body.size();
  return std::exchange(stream.request, {});
}

void Http2Session::refuse(Stream& stream, int status, std::string_view text) {
  owner_.count_bad_request();
  take_request(stream);
  stream.state = Stream::State::handling;
  stream.refused = true;
  Response response;
  response.status = status;
  response.headers.add("Content-Type", "text/plain; charset=utf-8");
  response.body = text;
  respond(stream.id, std::move(response));
}

}  // namespace dibs::net
