#include "net/spdy_connection.h"

#include <set>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace dibs::net {
namespace {

// A peer that opens streams without end would hold memory without end.
constexpr std::size_t kMaxStreams = 4096;

}  // namespace

struct SpdyConnection::Core : std::enable_shared_from_this<Core> {
  Core(std::shared_ptr<ByteStream> stream, End end)
      : stream(std::move(stream)), parity(end == End::client ? 1 : 0), next(parity == 1 ? 1 : 2) {}

  /// Makes a frame and queues it, in that order for all threads. Not looked into: clang does not
  /// see that the mutex that `make` wants is the one held here.
  template <typename Make>
  void send(Make make) DIBS_NO_THREAD_SAFETY_ANALYSIS {
    const MutexLock lock(mutex);
    if (closed) return;
    std::string frame = make(*this);
    if (!frame.empty()) stream->write(std::move(frame));
  }

  bool is_own(std::uint32_t id) const { return id % 2 == parity; }

  bool admit(std::uint32_t id) {
    const MutexLock lock(mutex);
    if (is_own(id) || id <= last_peer || receiving.size() >= kMaxStreams) return false;
    last_peer = id;
    receiving.insert(id);
    sending.insert(id);
    return true;
  }

  bool receives(std::uint32_t id) {
    const MutexLock lock(mutex);
    return receiving.contains(id);
  }

  bool end_receiving(std::uint32_t id, bool sending_too) {
    const MutexLock lock(mutex);
    if (sending_too) sending.erase(id);
    return receiving.erase(id) > 0;
  }

  void take(std::string_view bytes) {
    if (over) return;
    std::vector<SpdyFrame> frames;
    const auto fed = codec_in.feed(bytes, frames);
    for (SpdyFrame& frame : frames) take_frame(frame);
    if (fed.ok()) return;
    over = true;
    stream->close();
  }

  void take_frame(SpdyFrame& frame) {
    const std::uint32_t id = frame.stream;
    switch (frame.type) {
      case SpdyType::syn_stream:
        if (!admit(id)) {
          return send([&](Core&) { return SpdyCodec::rst_stream(id, kSpdyProtocolError); });
        }
        if (handlers.opened) handlers.opened(id, frame.headers);
        break;
      case SpdyType::syn_reply:
        if (receives(id) && handlers.replied) handlers.replied(id);
        break;
      case SpdyType::data:
        if (!receives(id)) return;
        if (!frame.data.empty() && handlers.data) handlers.data(id, frame.data);
        break;
      case SpdyType::headers:
        break;
      case SpdyType::rst_stream:
        if (end_receiving(id, true) && handlers.finished) handlers.finished(id, true);
        return;
      case SpdyType::ping:
        if (!is_own(id)) send([&](Core&) { return SpdyCodec::ping(id); });
        return;
      default:
        return;
    }
    if (frame.fin && end_receiving(id, false) && handlers.finished) handlers.finished(id, false);
  }

  std::shared_ptr<ByteStream> stream;
  Handlers handlers;
  SpdyCodec codec_in;  // on the io thread only, as the next
  bool over = false;
  const std::uint32_t parity;  // of our own streams' ids

  Mutex mutex;
  SpdyCodec codec_out DIBS_GUARDED_BY(mutex);
  std::set<std::uint32_t> receiving DIBS_GUARDED_BY(mutex);  // streams whose peer has not finished
  std::set<std::uint32_t> sending DIBS_GUARDED_BY(mutex);    // streams that we have not finished
  std::uint32_t last_peer DIBS_GUARDED_BY(mutex) = 0;
  std::uint32_t next DIBS_GUARDED_BY(mutex);
  bool closed DIBS_GUARDED_BY(mutex) = false;
};

SpdyConnection::SpdyConnection(std::shared_ptr<ByteStream> stream, End end)
    : core_(std::make_shared<Core>(std::move(stream), end)) {}

SpdyConnection::~SpdyConnection() { close(); }

std::shared_ptr<SpdyConnection> SpdyConnection::make(std::shared_ptr<ByteStream> stream, End end) {
  return std::shared_ptr<SpdyConnection>(new SpdyConnection(std::move(stream), end));
}

void SpdyConnection::start(Handlers handlers) {
  core_->handlers = std::move(handlers);
  core_->stream->start([core = core_](std::string_view bytes) { core->take(bytes); },
                       [core = core_] {
                         core->over = true;
                         {
                           const MutexLock lock(core->mutex);
                           core->closed = true;
                         }
                         // Handlers often hold the connection; dropping them ends that circle.
                         const Handlers last = std::exchange(core->handlers, Handlers());
                         if (last.closed) last.closed();
                       });
}

std::uint32_t SpdyConnection::open(const SpdyHeaders& headers) {
  std::uint32_t id = 0;
  core_->send([&](Core& core) DIBS_REQUIRES(core.mutex) {
    id = core.next;
    core.next += 2;
    core.sending.insert(id);
    core.receiving.insert(id);
    return core.codec_out.syn_stream(id, headers, false);
  });
  return id;
}

void SpdyConnection::reply(std::uint32_t stream) {
  core_->send([&](Core& core) DIBS_REQUIRES(core.mutex) {
    return core.codec_out.syn_reply(stream, {}, false);
  });
}

void SpdyConnection::write(std::uint32_t stream, std::string_view bytes) {
  core_->send([&](Core& core) DIBS_REQUIRES(core.mutex) {
    if (bytes.empty() || !core.sending.contains(stream)) return std::string();
    return SpdyCodec::data(stream, bytes, false);
  });
}

void SpdyConnection::finish(std::uint32_t stream) {
  core_->send([&](Core& core) DIBS_REQUIRES(core.mutex) {
    if (core.sending.erase(stream) == 0) return std::string();
    return SpdyCodec::data(stream, "", true);
  });
}

void SpdyConnection::reset(std::uint32_t stream, std::uint32_t status) {
  core_->send([&](Core& core) DIBS_REQUIRES(core.mutex) {
    core.sending.erase(stream);
    core.receiving.erase(stream);
    return SpdyCodec::rst_stream(stream, status);
  });
}

void SpdyConnection::close() {
  core_->send([&](Core& core) DIBS_REQUIRES(core.mutex) {
    core.closed = true;
    return SpdyCodec::goaway(core.last_peer);
  });
  core_->stream->close();
}

std::size_t SpdyConnection::queued() const { return core_->stream->queued(); }
void SpdyConnection::on_drained(std::function<void()> drained) {
  core_->stream->on_drained(std::move(drained));
}
void SpdyConnection::hold(bool held) { core_->stream->hold(held); }

}  // namespace dibs::net
