#include <fcntl.h>
#include <gtest/gtest.h>
#include <nghttp2/nghttp2.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "net/server_connection.h"

namespace dibs::net {
namespace {

/// A plain socket whose ends have agreed on HTTP/2.
class AgreedChannel final : public Channel {
 public:
  explicit AgreedChannel(int fd) : Channel(fd) {}
  Io read(char* data, std::size_t size, std::size_t& got) override {
    const auto count = receive(data, size);
    got = count > 0 ? static_cast<std::size_t>(count) : 0;
    if (count > 0) return Io::ok;
    if (count == 0) return Io::eof;
    return errno == EAGAIN || errno == EWOULDBLOCK ? Io::again : Io::error;
  }
  bool write(std::string_view bytes) override {
    out_.append(bytes);
    return true;
  }
  bool speaks_http2() const override { return true; }
};

/// A connection whose loop does not run: a test says when its socket is ready and how late it is.
class Http2Connection : public testing::Test {
 protected:
  Http2Connection() : worker(shared) {
    shared.handler = [this](Request, std::unique_ptr<Exchange> exchange) {
      exchanges.push_back(std::move(exchange));
    };
    shared.open = 1;
    worker.count = 1;
    {
      const MutexLock lock(shared.mutex);
      shared.per_address["host"] = 1;
    }
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    fd = ends[1];
    connection = std::make_shared<Connection>(worker, std::make_unique<AgreedChannel>(ends[0]),
                                              true, "address", "host");
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
        callbacks, [](nghttp2_session*, std::uint8_t, std::int32_t, const std::uint8_t*,
                      std::size_t size, void* user) {
          *static_cast<std::size_t*>(user) += size;
          return 0;
        });
    nghttp2_session_client_new(&client, callbacks, &read);
    nghttp2_session_callbacks_del(callbacks);
  }
  ~Http2Connection() override {
    connection->close();
    worker.loop->close();
    nghttp2_session_del(client);
    ::close(fd);
  }

  void begin(std::int32_t window) {
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, static_cast<std::uint32_t>(window)}};
    nghttp2_submit_settings(client, 0, settings, 1);
    nghttp2_session_set_local_window_size(client, 0, 0, window);
    worker.add(connection);
  }

  std::int32_t ask() {
    std::pair<std::string, std::string> fields[] = {
        {":method", "GET"}, {":scheme", "https"}, {":authority", "h"}, {":path", "/"}};
    std::vector<nghttp2_nv> list;
    for (auto& [name, value] : fields) {
      list.push_back({reinterpret_cast<std::uint8_t*>(name.data()),
                      reinterpret_cast<std::uint8_t*>(value.data()), name.size(), value.size(), 0});
    }
    const auto id =
        nghttp2_submit_request(client, nullptr, list.data(), list.size(), nullptr, nullptr);
    send();
    return id;
  }

  /// What the client has to say.
  void send() {
    const std::uint8_t* data = nullptr;
    for (;;) {
      const auto size = nghttp2_session_mem_send(client, &data);
      if (size <= 0) break;
      EXPECT_EQ(::write(fd, data, static_cast<std::size_t>(size)), size);
    }
    connection->on_ready({.in = true});
  }

  /// The client reads so much of what waits.
  void take(std::size_t most) {
    std::vector<std::uint8_t> bytes(most);
    const auto got = ::read(fd, bytes.data(), bytes.size());
    ASSERT_GT(got, 0);
    ASSERT_EQ(nghttp2_session_mem_recv(client, bytes.data(), static_cast<std::size_t>(got)), got);
    connection->on_ready({.out = true});
  }

  static Response large(std::size_t size) {
    Response response;
    response.body = std::string(size, 'x');
    return response;
  }

  ServerShared shared;
  ServerWorker worker;
  std::vector<std::unique_ptr<Exchange>> exchanges;
  std::shared_ptr<Connection> connection;
  nghttp2_session* client = nullptr;
  int fd = -1;
  std::size_t read = 0;
};

TEST_F(Http2Connection, keeps_a_client_that_is_slow_but_reads) {
  begin(1 << 30);
  connection->respond(ask(), large(20'000'000));
  std::int64_t now = worker.loop->now();
  for (int i = 0; i < 10; ++i) {
    for (int part = 0; part < 4; ++part) take(64 * 1024);
    now += 61'000;
    connection->on_tick(now);
    ASSERT_EQ(shared.open, 1U);
  }
  EXPECT_EQ(shared.slow_clients, 0U);

  connection->on_tick(now + 61'000);
  EXPECT_EQ(shared.open, 0U);
  EXPECT_EQ(shared.slow_clients, 1U);
}

TEST_F(Http2Connection, reads_from_a_client_that_is_slow_to_read) {
  begin(1 << 30);
  int room = 0;
  socklen_t size = sizeof room;
  ASSERT_EQ(::getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, &size), 0);
  // More than the socket takes, and less than would hold up everything.
  connection->respond(ask(), large(static_cast<std::size_t>(room) + kSlice / 2));
  ask();
  EXPECT_EQ(exchanges.size(), 2U);

  // Who takes nothing at all is not read from for ever.
  connection->respond(3, large(10'000'000));
  ask();
  EXPECT_EQ(exchanges.size(), 2U);
  for (int i = 0; i < 400 && exchanges.size() == 2; ++i) take(64 * 1024);
  EXPECT_EQ(exchanges.size(), 3U);
  EXPECT_LT(read, 10'000'000U);
}

}  // namespace
}  // namespace dibs::net
