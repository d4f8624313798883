// What handlers hold of a connection: exchange and body stream. Each method may come from
// any thread and goes to the connection's io thread.

#include <utility>

#include "base/mutex.h"
#include "net/server_connection.h"

namespace dibs::net {
namespace {

/// A piece that takes the io thread so long to send that others come first.
constexpr std::size_t kLarge = std::size_t{64} * 1024;

class ServerStream final : public BodyStream {
 public:
  ServerStream(std::shared_ptr<Connection> connection, std::int32_t stream,
               std::shared_ptr<StreamCore> core)
      : connection_(std::move(connection)), stream_(stream), core_(std::move(core)) {}

  ~ServerStream() override {
    std::function<void()> dropped;
    {
      const MutexLock lock(core_->mutex);
      if (core_->finished || core_->closed) return;
      dropped.swap(core_->on_closed);
    }
    connection_->loop().post(
        [connection = connection_, stream = stream_] { connection->abort_stream(stream, false); });
  }

  bool write(SharedBytes piece) override {
    bool wake = false;
    const bool large = piece->size() >= kLarge;
    {
      const MutexLock lock(core_->mutex);
      if (core_->closed || core_->finished) return false;
      if (core_->queued + piece->size() > connection_->max_queued()) {
        core_->closed = true;
      } else {
        core_->queued += piece->size();
        core_->queue.push_back(std::move(piece));
        wake = !std::exchange(core_->scheduled, true);
        if (!wake) return true;
      }
    }
    if (wake) {
      auto pump = [connection = connection_, stream = stream_] { connection->pump_stream(stream); };
      if (large) {
        connection_->loop().post_bulk(std::move(pump));
      } else {
        connection_->loop().post(std::move(pump));
      }
      return true;
    }
    connection_->loop().post(
        [connection = connection_, stream = stream_] { connection->abort_stream(stream, true); });
    return false;
  }

  std::size_t queued() const override {
    const MutexLock lock(core_->mutex);
    return core_->queued;
  }

  void on_drained(std::function<void()> drained) override {
    {
      const MutexLock lock(core_->mutex);
      if (core_->closed || core_->finished) return;
      core_->drained.swap(drained);  // the old one goes after the lock: it may hold this stream
      if (core_->queued > 0) return;
    }
    connection_->loop().post([core = core_] {
      std::function<void()> call;
      {
        const MutexLock lock(core->mutex);
        if (core->queued == 0) call = core->drained;
      }
      if (call) call();
    });
  }

  void on_closed(std::function<void()> closed) override {
    {
      const MutexLock lock(core_->mutex);
      if (core_->finished) return;
      if (!core_->closed) {
        core_->on_closed = std::move(closed);
        return;
      }
    }
    if (!connection_->loop().post(closed)) closed();
  }

  void finish() override {
    {
      const MutexLock lock(core_->mutex);
      if (core_->closed || std::exchange(core_->finished, true)) return;
      core_->scheduled = true;
    }
    connection_->loop().post(
        [connection = connection_, stream = stream_] { connection->pump_stream(stream); });
  }

 private:
  std::shared_ptr<Connection> connection_;
  const std::int32_t stream_;
  std::shared_ptr<StreamCore> core_;
};

class ServerExchange final : public Exchange {
 public:
  ServerExchange(std::shared_ptr<Connection> connection, std::int32_t stream)
      : connection_(std::move(connection)), stream_(stream) {}

  ~ServerExchange() override {
    if (connection_ == nullptr) return;
    Response response;
    response.status = 500;
    response.headers.add("Content-Type", "text/plain; charset=utf-8");
    response.body = "Internal Server Error\n";
    respond(std::move(response));
  }

  void respond(Response response) override {
    const auto connection = std::move(connection_);
    if (connection == nullptr) return;
    if (connection->loop().on_this_thread())
      return connection->respond(stream_, std::move(response));
    connection->loop().post(
        [connection, stream = stream_, response = std::move(response)]() mutable {
          connection->respond(stream, std::move(response));
        });
  }

  std::shared_ptr<BodyStream> stream(Response head) override {
    const auto connection = std::move(connection_);
    auto core = std::make_shared<StreamCore>();
    auto stream = std::make_shared<ServerStream>(connection, stream_, core);
    if (connection->loop().on_this_thread()) {
      connection->begin_stream(stream_, std::move(head), std::move(core));
      return stream;
    }
    const bool posted =
        connection->loop().post([connection, id = stream_, core, head = std::move(head)]() mutable {
          connection->begin_stream(id, std::move(head), std::move(core));
        });
    if (!posted) {
      const MutexLock lock(core->mutex);
      core->closed = true;
    }
    return stream;
  }

  void upgrade(std::string protocol,
               std::function<void(std::shared_ptr<WebSocket>)> ready) override {
    const auto connection = std::move(connection_);
    if (connection->loop().on_this_thread()) {
      return connection->upgrade(stream_, std::move(protocol), std::move(ready));
    }
    const bool posted =
        connection->loop().post([connection, stream = stream_, protocol = std::move(protocol),
                                 ready] { connection->upgrade(stream, protocol, ready); });
    if (!posted) ready(nullptr);
  }

  void upgrade_to(Response head, UpgradeReady ready) override {
    const auto connection = std::move(connection_);
    if (connection->loop().on_this_thread()) {
      return connection->upgrade_to(stream_, std::move(head), ready);
    }
    const bool posted =
        connection->loop().post([connection, stream = stream_, head = std::move(head), ready] {
          connection->upgrade_to(stream, head, ready);
        });
    if (!posted) ready(nullptr);
  }

  void on_gone(std::function<void()> gone) override {
    if (connection_ == nullptr) return;
    if (connection_->loop().on_this_thread()) return connection_->on_gone(stream_, std::move(gone));
    connection_->loop().post(
        [connection = connection_, stream = stream_, gone] { connection->on_gone(stream, gone); });
  }

 private:
  std::shared_ptr<Connection> connection_;  // null once answered
  const std::int32_t stream_;
};

}  // namespace

std::unique_ptr<Exchange> make_exchange(std::shared_ptr<Connection> connection,
                                        std::int32_t stream) {
  return std::make_unique<ServerExchange>(std::move(connection), stream);
}

}  // namespace dibs::net
