#include "node/streams/port_forward.h"

#include <charconv>
#include <map>

#include "base/mutex.h"
#include "base/strings.h"
#include "node/streams/port_connection.h"

namespace dibs::node {
namespace {

bool read_port(std::string_view text, int& port) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port > 0 && port < 65536;
}

/// Streams that belong together: data and error of one connection.
struct StreamPair {
  std::uint32_t data = 0;
  std::uint32_t error = 0;
  int port = 0;
};

class SpdyForward : public std::enable_shared_from_this<SpdyForward> {
 public:
  SpdyForward(StreamHost host, std::string sandbox, std::shared_ptr<net::SpdyConnection> connection)
      : host_(std::move(host)), sandbox_(std::move(sandbox)), connection_(std::move(connection)) {}

  void begin() {
    const auto self = shared_from_this();
    connection_->on_drained([weak = weak_from_this()] {
      if (const auto alive = weak.lock()) alive->drained();
    });
    net::SpdyConnection::Handlers handlers;
    handlers.opened = [self](std::uint32_t stream, const net::SpdyHeaders& headers) {
      self->opened(stream, headers);
    };
    handlers.data = [self](std::uint32_t stream, std::string_view bytes) {
      if (const auto one = self->find(stream)) one->write(bytes);
    };
    handlers.finished = [self](std::uint32_t stream, bool reset) {
      const auto one = self->find(stream);
      if (one == nullptr) return;
      if (reset) {
        one->abandon();
      } else {
        one->close_write();
      }
    };
    handlers.closed = [self] { self->closed(); };
    connection_->start(std::move(handlers));
  }

 private:
  std::shared_ptr<PortConnection> find(std::uint32_t data_stream) {
    const MutexLock lock(mutex_);
    const auto found = open_.find(data_stream);
    return found == open_.end() ? nullptr : found->second;
  }

  std::vector<std::shared_ptr<PortConnection>> all() {
    const MutexLock lock(mutex_);
    std::vector<std::shared_ptr<PortConnection>> out;
    for (const auto& [stream, one] : open_) out.push_back(one);
    return out;
  }

  void drained() {
    for (const auto& one : all()) one->drained();
  }

  void closed() {
    const auto ending = all();
    {
      const MutexLock lock(mutex_);
      open_.clear();
    }
    for (const auto& one : ending) one->abandon();
  }

  void opened(std::uint32_t stream, const net::SpdyHeaders& headers) {
    const std::string_view type = net::spdy_header(headers, "streamtype");
    int port = 0;
    if (!read_port(net::spdy_header(headers, "port"), port) ||
        (type != "data" && type != "error")) {
      return connection_->reset(stream, net::kSpdyRefused);
    }
    connection_->reply(stream);
    // Clients of before request ids open the error stream first and the data stream right after.
    std::string id(net::spdy_header(headers, "requestid"));
    if (id.empty()) id = cat("#", type == "error" ? stream : stream - 2);
    StreamPair& pair = pairs_[id];
    (type == "data" ? pair.data : pair.error) = stream;
    pair.port = port;
    if (pair.data == 0 || pair.error == 0) return;
    join(pair);
    pairs_.erase(id);
  }

  void join(const StreamPair& pair) {
    PortConnection::Client client;
    const auto self = shared_from_this();
    client.data = [self, pair](std::string_view bytes) {
      self->connection_->write(pair.data, bytes);
    };
    client.ended = [self, pair](const std::string& error) {
      if (!error.empty()) self->connection_->write(pair.error, error);
      self->connection_->finish(pair.error);
      self->connection_->finish(pair.data);
      const MutexLock lock(self->mutex_);
      self->open_.erase(pair.data);
    };
    client.queued = [self] { return self->connection_->queued(); };
    client.hold = [self](bool held) { self->connection_->hold(held); };
    const auto one =
        std::make_shared<PortConnection>(host_, sandbox_, pair.port, std::move(client));
    {
      const MutexLock lock(mutex_);
      open_[pair.data] = one;
    }
    one->begin();
  }

  StreamHost host_;
  std::string sandbox_;
  std::shared_ptr<net::SpdyConnection> connection_;
  std::map<std::string, StreamPair> pairs_;  // half open, by request id; on the io thread only
  Mutex mutex_;
  std::map<std::uint32_t, std::shared_ptr<PortConnection>> open_ DIBS_GUARDED_BY(mutex_);
};

class WebSocketForward : public std::enable_shared_from_this<WebSocketForward> {
 public:
  WebSocketForward(std::shared_ptr<net::WebSocket> socket, bool base64)
      : socket_(std::move(socket)), base64_(base64) {}

  void begin(const StreamHost& host, const std::string& sandbox, const std::vector<int>& ports) {
    const auto self = shared_from_this();
    socket_->on_drained([weak = weak_from_this()] {
      const auto alive = weak.lock();
      if (alive == nullptr) return;
      for (const auto& one : alive->ports_) one->drained();
    });
    for (std::size_t i = 0; i < ports.size(); ++i) {
      std::string name;
      name.push_back(static_cast<char>(ports[i]));
      name.push_back(static_cast<char>(ports[i] >> 8));
      send(2 * i, name);
      send(2 * i + 1, name);
      // The socket's callbacks keep this alive; the connections must not.
      PortConnection::Client client;
      const auto weak = weak_from_this();
      client.data = [weak, i](std::string_view bytes) {
        if (const auto alive = weak.lock()) alive->send(2 * i, bytes);
      };
      client.ended = [weak, i](const std::string& error) {
        const auto alive = weak.lock();
        if (alive == nullptr) return;
        if (!error.empty()) alive->send(2 * i + 1, error);
        if (--alive->left_ == 0) alive->socket_->close(1000, "");
      };
      client.queued = [weak] {
        const auto alive = weak.lock();
        return alive == nullptr ? 0 : alive->socket_->queued();
      };
      client.hold = [weak](bool held) {
        if (const auto alive = weak.lock()) alive->socket_->hold(held);
      };
      ports_.push_back(
          std::make_shared<PortConnection>(host, sandbox, ports[i], std::move(client)));
    }
    left_ = ports_.size();
    socket_->start([self](std::string message, bool) { self->take(message); },
                   [self] {
                     for (const auto& one : self->ports_) one->abandon();
                   });
    for (const auto& one : ports_) one->begin();
  }

 private:
  void send(std::size_t channel, std::string_view bytes) {
    if (base64_) {
      return socket_->send_text(cat(static_cast<char>('0' + channel), base64_encode(bytes)));
    }
    socket_->send_binary(cat(static_cast<char>(channel), bytes));
  }

  void take(const std::string& message) {
    if (message.empty()) return;
    std::size_t channel = static_cast<unsigned char>(message[0]);
    std::string bytes = message.substr(1);
    if (base64_) {
      channel -= '0';
      std::string decoded;
      if (!base64_decode(bytes, decoded)) return;
      bytes = std::move(decoded);
    }
    if (channel % 2 != 0 || channel / 2 >= ports_.size()) return;
    ports_[channel / 2]->write(bytes);
  }

  std::shared_ptr<net::WebSocket> socket_;
  bool base64_;
  std::vector<std::shared_ptr<PortConnection>> ports_;  // unchanged once begun
  std::atomic<std::size_t> left_ = 0;
};

}  // namespace

void forward_ports(const StreamHost& host, std::string sandbox,
                   std::shared_ptr<net::SpdyConnection> connection) {
  std::make_shared<SpdyForward>(host, std::move(sandbox), std::move(connection))->begin();
}

void forward_ports(const StreamHost& host, std::string sandbox,
                   std::shared_ptr<net::WebSocket> socket, bool base64,
                   const std::vector<int>& ports) {
  std::make_shared<WebSocketForward>(std::move(socket), base64)->begin(host, sandbox, ports);
}

}  // namespace dibs::node
