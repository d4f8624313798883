// Exec and attach over SPDY: each channel is a stream that the client opens and names.
#include <algorithm>
#include <mutex>

#include "base/strings.h"
#include "json/parse.h"
#include "node/streams/command_wire.h"

namespace dibs::node {
namespace {

constexpr Duration kCreationTime = std::chrono::seconds(30);
// A terminal's size is a few bytes of JSON.
constexpr std::size_t kMaxResize = 1024;

class SpdyWire final : public CommandWire, public std::enable_shared_from_this<SpdyWire> {
 public:
  SpdyWire(runtime::Runtime& runtime, std::shared_ptr<net::SpdyConnection> connection,
           std::string_view protocol, CommandStreams streams)
      : runtime_(runtime),
        connection_(std::move(connection)),
        streams_(streams),
        version_(protocol.starts_with("v") ? protocol[1] - '0' : 1) {}

  ~SpdyWire() override { runtime_.timers.cancel(timer_); }

  void start(Events events) override {
    events_ = std::move(events);
    timer_ = runtime_.timers.after(kCreationTime, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self != nullptr && !self->complete()) self->connection_->close();
    });
    net::SpdyConnection::Handlers handlers;
    const auto self = shared_from_this();
    handlers.opened = [self](std::uint32_t stream, const net::SpdyHeaders& headers) {
      self->opened(stream, headers);
    };
    handlers.data = [self](std::uint32_t stream, std::string_view bytes) {
      self->take(stream, bytes);
    };
    handlers.finished = [self](std::uint32_t stream, bool) {
      if (stream == self->in_ && self->in_ != 0) self->events_.input_closed();
    };
    handlers.closed = [self] {
      const Events last = std::exchange(self->events_, Events());
      last.gone();
    };
    connection_->start(std::move(handlers));
  }

  void out(std::string_view bytes) override { write(out_, bytes); }
  void err(std::string_view bytes) override { write(err_, bytes); }

  void finish(const json::Value& status) override {
    if (version_ >= 4) {
      write(outcome_, json::write(status));
    } else if (status["status"].as_string() != "Success") {
      write(outcome_, status["message"].as_string());
    }
    for (const auto* stream : {&out_, &err_, &outcome_}) {
      if (*stream != 0) connection_->finish(*stream);
    }
    connection_->close();
  }

  std::size_t queued() const override { return connection_->queued(); }
  void on_drained(std::function<void()> drained) override {
    connection_->on_drained(std::move(drained));
  }
  void hold(bool held) override { connection_->hold(held); }

 private:
  void write(std::uint32_t stream, std::string_view bytes) {
    if (stream != 0) connection_->write(stream, bytes);
  }

  bool complete() const {
    const bool sized = !streams_.tty || version_ < 3 || resize_ != 0;
    return outcome_ != 0 && (!streams_.in || in_ != 0) && (!streams_.out || out_ != 0) &&
           (!streams_.err || err_ != 0) && sized;
  }

  void opened(std::uint32_t stream, const net::SpdyHeaders& headers) {
    const std::string_view type = net::spdy_header(headers, "streamtype");
    std::atomic<std::uint32_t>* place = type == "stdin"    ? &in_
                                        : type == "stdout" ? &out_
                                        : type == "stderr" ? &err_
                                        : type == "error"  ? &outcome_
                                        : type == "resize" ? &resize_
                                                           : nullptr;
    if (place == nullptr || *place != 0 || complete()) {
      return connection_->reset(stream, net::kSpdyRefused);
    }
    *place = stream;
    connection_->reply(stream);
    if (complete()) events_.ready();
  }

  void take(std::uint32_t stream, std::string_view bytes) {
    if (stream == in_) return events_.input(bytes);
    if (stream != resize_) return;
    sizes_.append(bytes);
    while (true) {
      const auto end = sizes_.find('}');
      if (end == std::string::npos) break;
      const auto size = json::parse(std::string_view(sizes_).substr(0, end + 1));
      sizes_.erase(0, end + 1);
      if (!size.ok()) continue;
      events_.resize({static_cast<unsigned>((*size)["Width"].as_int()),
                      static_cast<unsigned>((*size)["Height"].as_int())});
    }
    if (sizes_.size() > kMaxResize) sizes_.clear();
  }

  runtime::Runtime& runtime_;
  std::shared_ptr<net::SpdyConnection> connection_;
  CommandStreams streams_;
  int version_;
  runtime::TimerId timer_ = 0;
  Events events_;      // on the io thread only, as the next
  std::string sizes_;  // what came on the resize stream and is no whole object yet
  // Stream ids; 0 until the client opens them.
  std::atomic<std::uint32_t> in_ = 0, out_ = 0, err_ = 0, outcome_ = 0, resize_ = 0;
};

}  // namespace

Result<std::string> choose_spdy_protocol(const net::Request& request,
                                         const std::vector<std::string>& known) {
  std::vector<std::string> offered;
  for (const std::string_view line : request.headers.all("X-Stream-Protocol-Version")) {
    for (const std::string_view one : split(line, ',')) {
      if (!trim(one).empty()) offered.emplace_back(trim(one));
    }
  }
  if (offered.empty()) return std::string();
  for (const std::string& candidate : known) {
    if (std::find(offered.begin(), offered.end(), candidate) != offered.end()) return candidate;
  }
  return Error::forbidden(cat("unable to upgrade: unable to negotiate protocol: client supports [",
                              join(offered, " "), "], server accepts [", join(known, " "), "]"));
}

std::shared_ptr<CommandWire> make_spdy_wire(runtime::Runtime& runtime,
                                            std::shared_ptr<net::SpdyConnection> connection,
                                            std::string_view protocol, CommandStreams streams) {
  return std::make_shared<SpdyWire>(runtime, std::move(connection), protocol, streams);
}

}  // namespace dibs::node
