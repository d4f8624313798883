#include "net/http2_session.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstring>

#include "base/mutex.h"
#include "base/strings.h"
#include "net/server_connection.h"

namespace dibs::net {
namespace {

constexpr std::uint32_t kStreamWindow = 256 * 1024;
constexpr std::int32_t kConnectionWindow = 1024 * 1024;
/// Of bodies that are not whole yet, on one connection.
constexpr std::size_t kMostHeld = 16 * 1024 * 1024;
/// Frames that cost a client nothing: so many at once, and so many a second.
constexpr double kBurst = 1000;
constexpr double kPerSecond = 200;
/// Between the word that the server leaves and the last request that it takes.
constexpr std::int64_t kLastOrders = 200;
/// What a slow reader must take in each span.
constexpr std::size_t kLeastProgress = 16 * 1024;
/// Of one field, beside its name and value, as the protocol counts.
constexpr std::size_t kFieldOverhead = 32;
/// So many of the largest heads are held for requests that are not whole, on one connection. A head
/// costs its sender almost nothing, as each byte can mean a field that was sent before.
constexpr std::size_t kMostHeads = 4;
/// Frames that wait to be sent, beside bodies, before no more is read.
constexpr std::size_t kMostFrames = 1000;
/// Milliseconds that a request may take to come before its connection counts as one that waits.
constexpr std::int64_t kMoment = 2000;

std::int64_t milliseconds(Duration span) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(span).count();
}

/// Fields that are HTTP/1.1's own.
bool is_of_connection(std::string_view lower) {
  return lower == "connection" || lower == "transfer-encoding" || lower == "keep-alive" ||
         lower == "upgrade" || lower == "proxy-connection" || lower == "content-length";
}

std::string_view view(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// What a body's end takes out of its core. Callbacks often hold the stream, and it the core: they
/// are called, and go, after the lock.
struct Ended {
  explicit Ended(StreamCore& core) {
    const MutexLock lock(core.mutex);
    core.closed = true;
    closed.swap(core.on_closed);
    if (core.finished) closed.swap(unheard);
    drained.swap(core.drained);
    queue.swap(core.queue);
  }

  std::function<void()> closed;  // to be called
  std::function<void()> unheard;
  std::function<void()> drained;
  std::deque<SharedBytes> queue;
};

}  // namespace

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

  static long read(nghttp2_session*, std::int32_t id, std::uint8_t* data, std::size_t size,
                   std::uint32_t* flags, nghttp2_data_source*, void* user) {
    Stream* stream = self(user).find(id);
    if (stream == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    return self(user).read_body(*stream, data, size, flags);
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

Http2Session::~Http2Session() { nghttp2_session_del(session_); }

Http2Session::Stream* Http2Session::find(std::int32_t id) {
  const auto found = streams_.find(id);
  return found == streams_.end() ? nullptr : found->second.get();
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

void Http2Session::submit(Stream& stream, Response& response, bool has_body) {
  std::vector<std::pair<std::string, std::string>> fields;
  fields.reserve(response.headers.fields().size() + 3);
  fields.emplace_back(":status", std::to_string(response.status));
  bool has_date = false;
  bool leaves = false;
  for (const auto& [name, value] : response.headers.fields()) {
    std::string lower = to_lower(name);
    if (lower == "connection" && has_token(value, "close")) leaves = true;
    if (is_of_connection(lower)) continue;
    has_date = has_date || lower == "date";
    std::string clean;
    append_value(clean, trim(value));
    fields.emplace_back(std::move(lower), std::move(clean));
  }
  if (!has_date) fields.emplace_back("date", owner_.date());
  if (stream.core == nullptr && !has_no_body(response.status)) {
    fields.emplace_back("content-length", std::to_string(response.body.size()));
  }
  std::vector<nghttp2_nv> list;
  list.reserve(fields.size());
  for (auto& [name, value] : fields) {
    list.push_back({reinterpret_cast<std::uint8_t*>(name.data()),
                    reinterpret_cast<std::uint8_t*>(value.data()), name.size(), value.size(),
                    NGHTTP2_NV_FLAG_NONE});
  }
  nghttp2_data_provider provider{};
  provider.read_callback = Callbacks::read;
  stream.state = Stream::State::answering;
  stream.gone = nullptr;
  stream.deadline = 0;
  if (nghttp2_submit_response(session_, stream.id, list.data(), list.size(),
                              has_body ? &provider : nullptr) != 0) {
    reset(stream.id, NGHTTP2_INTERNAL_ERROR);
  }
  if (leaves) retire(now_);
}

void Http2Session::respond(std::int32_t id, Response response) {
  Stream* stream = find(id);
  if (stream == nullptr) {
    if (orphans_ > 0) --orphans_;
    return;
  }
  if (stream->state != Stream::State::handling) return;
  const bool has_body = !stream->to_head && !has_no_body(response.status) && !response.body.empty();
  submit(*stream, response, has_body);
  if (has_body) stream->body = std::move(response.body);
}

void Http2Session::begin_stream(std::int32_t id, Response head, std::shared_ptr<StreamCore> core) {
  Stream* stream = find(id);
  if (stream == nullptr || stream->state != Stream::State::handling) {
    if (stream == nullptr && orphans_ > 0) --orphans_;
    const Ended ended(*core);
    if (ended.closed) ended.closed();
    return;
  }
  stream->core = std::move(core);
  submit(*stream, head, !stream->to_head && !has_no_body(head.status));
}

long Http2Session::read_body(Stream& stream, std::uint8_t* data, std::size_t size,
                             std::uint32_t* flags) {
  std::size_t written = 0;
  if (stream.core == nullptr) {
    written = std::min(size, stream.body.size() - stream.at);
    std::memcpy(data, stream.body.data() + stream.at, written);
    stream.at += written;
    if (stream.at == stream.body.size()) *flags |= NGHTTP2_DATA_FLAG_EOF;
  } else {
    bool finished = false;
    while (written < size) {
      if (stream.pieces.empty()) {
        const MutexLock lock(stream.core->mutex);
        stream.core->queue.swap(stream.pieces);
        if (stream.pieces.empty()) {
          finished = stream.core->finished;
          if (written == 0 && !finished) {
            stream.core->scheduled = false;
            stream.deferred = true;
            if (stream.sent > 0 && stream.core->drained) drained_.push_back(stream.core->drained);
          }
          break;
        }
      }
      const std::string& piece = *stream.pieces.front();
      const std::size_t part = std::min(size - written, piece.size() - stream.at);
      std::memcpy(data + written, piece.data() + stream.at, part);
      written += part;
      stream.at += part;
      if (stream.at == piece.size()) {
        stream.at = 0;
        stream.pieces.pop_front();
      }
    }
    if (written > 0) {
      const MutexLock lock(stream.core->mutex);
      stream.core->queued -= written;
    }
    if (finished) *flags |= NGHTTP2_DATA_FLAG_EOF;
  }
  stream.sent += written;
  if (stream.deferred) return NGHTTP2_ERR_DEFERRED;
  return static_cast<long>(written);
}

void Http2Session::pump_stream(std::int32_t id) {
  Stream* stream = find(id);
  if (stream == nullptr || !stream->deferred) return;
  stream->deferred = false;
  stream->deadline = 0;
  nghttp2_session_resume_data(session_, id);
}

void Http2Session::abort_stream(std::int32_t id, bool too_slow) {
  Stream* stream = find(id);
  if (stream == nullptr || stream->core == nullptr) return;
  if (too_slow) owner_.count_slow_client();
  reset(id, too_slow ? NGHTTP2_ENHANCE_YOUR_CALM : NGHTTP2_INTERNAL_ERROR);
}

void Http2Session::on_gone(std::int32_t id, std::function<void()> gone) {
  Stream* stream = find(id);
  if (stream == nullptr) return gone();
  if (stream->state == Stream::State::handling) stream->gone = std::move(gone);
}

void Http2Session::reset(std::int32_t id, std::uint32_t code) {
  nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, code);
}

void Http2Session::forget(std::int32_t id) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  const std::unique_ptr<Stream> stream = std::move(found->second);
  streams_.erase(found);
  if (streams_.empty()) idle_since_ = now_;
  take_request(*stream);
  if (stream->state == Stream::State::handling) {
    ++orphans_;
    if (stream->gone) gone_.push_back(std::move(stream->gone));
  }
  if (stream->core == nullptr) return;
  // Callbacks are called, and go, out of nghttp2.
  Ended ended(*stream->core);
  if (ended.closed) gone_.push_back(std::move(ended.closed));
  if (ended.drained) gone_.push_back([drained = std::move(ended.drained)] {});
}

void Http2Session::produce(std::string& out, std::size_t most) {
  while (out.size() < most) {
    const std::uint8_t* data = nullptr;
    const auto size = nghttp2_session_mem_send(session_, &data);
    if (size < 0) {
      broken_ = true;
      break;
    }
    if (size == 0) break;
    out.append(view(data, static_cast<std::size_t>(size)));
  }
  for (const auto& gone : std::exchange(gone_, {})) gone();
}

void Http2Session::tell_drained() {
  for (const auto& drained : std::exchange(drained_, {})) drained();
}

bool Http2Session::takes_input() const {
  return nghttp2_session_get_outbound_queue_size(session_) < kMostFrames;
}

bool Http2Session::is_over() const {
  if (nghttp2_session_want_write(session_) != 0) return false;
  if (broken_ || nghttp2_session_want_read(session_) == 0) return true;
  return goaway_ == Goaway::sent && streams_.empty();
}

std::int64_t Http2Session::idle(std::int64_t now) const {
  if (streams_.empty() && !in_headers_) return now - idle_since_;
  std::int64_t oldest = in_headers_ ? headers_since_ : now;
  for (const auto& [id, stream] : streams_) {
    if (stream->state != Stream::State::receiving) return -1;
    oldest = std::min(oldest, stream->since);
  }
  return now - oldest > kMoment ? now - oldest : -1;
}

void Http2Session::tick(std::int64_t now) {
  now_ = now;
  if (goaway_ == Goaway::announced && now - announced_ >= kLastOrders) {
    goaway_ = Goaway::sent;
    nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE,
                          nghttp2_session_get_last_proc_stream_id(session_), NGHTTP2_NO_ERROR,
                          nullptr, 0);
  }
  if (in_headers_ && now - headers_since_ > milliseconds(options_.header_timeout)) {
    return leave(NGHTTP2_ENHANCE_YOUR_CALM);
  }
  if (streams_.empty()) {
    if (goaway_ == Goaway::none && now - idle_since_ > milliseconds(options_.idle_timeout)) {
      retire(now);
    }
    return;
  }
  for (const auto& [id, stream] : streams_) {
    if (stream->state == Stream::State::receiving) {
      if (stream->deadline != 0 && now >= stream->deadline) reset(id, NGHTTP2_CANCEL);
      continue;
    }
    if (!stream->is_waiting()) {
      stream->deadline = 0;
      // Who was refused has had time to hear of it, and nobody reads the rest.
      if (stream->refused && !stream->input_ended) reset(id, NGHTTP2_NO_ERROR);
      continue;
    }
    const Duration span = stream->patient ? options_.patient_write_timeout : options_.write_timeout;
    if (stream->deadline == 0 || stream->sent >= stream->sent_at_deadline + kLeastProgress) {
      stream->deadline = now + milliseconds(span);
      stream->sent_at_deadline = stream->sent;
    } else if (now >= stream->deadline) {
      owner_.count_slow_client();
      reset(id, NGHTTP2_ENHANCE_YOUR_CALM);
    }
  }
}

void Http2Session::retire(std::int64_t now) {
  if (goaway_ != Goaway::none) return;
  goaway_ = Goaway::announced;
  announced_ = now;
  nghttp2_submit_shutdown_notice(session_);
}

void Http2Session::close() {
  broken_ = true;
  std::vector<std::int32_t> all;
  for (const auto& [id, stream] : streams_) all.push_back(id);
  for (const std::int32_t id : all) forget(id);
  for (const auto& gone : std::exchange(gone_, {})) gone();
  drained_.clear();
}

}  // namespace dibs::net
