#include "net/http2_session.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstring>

#include "base/mutex.h"
#include "base/strings.h"
#include "net/http2_stream.h"

namespace dibs::net {
namespace {

/// Between the word that the server leaves and the last request that it takes.
constexpr std::int64_t kLastOrders = 200;
/// What a slow reader must take in each span.
constexpr std::size_t kLeastProgress = 16 * 1024;
/// Frames that wait to be sent, beside bodies, before no more is read.
constexpr std::size_t kMostFrames = 1000;
/// Milliseconds that a request may take to come before its connection counts as one that waits.
constexpr std::int64_t kMoment = 2000;

/// Fields that are HTTP/1.1's own.
bool is_of_connection(std::string_view lower) {
  return lower == "connection" || lower == "transfer-encoding" || lower == "keep-alive" ||
         lower == "upgrade" || lower == "proxy-connection" || lower == "content-length";
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

Http2Session::~Http2Session() { nghttp2_session_del(session_); }

Http2Session::Stream* Http2Session::find(std::int32_t id) {
  const auto found = streams_.find(id);
  return found == streams_.end() ? nullptr : found->second.get();
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
  provider.read_callback = [](nghttp2_session*, std::int32_t id, std::uint8_t* data,
                              std::size_t size, std::uint32_t* flags, nghttp2_data_source*,
                              void* user) -> long {
    Http2Session& me = *static_cast<Http2Session*>(user);
    Stream* one = me.find(id);
    if (one == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    return me.read_body(*one, data, size, flags);
  };
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
