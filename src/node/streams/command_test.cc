// Exec and attach from end to end, over every protocol.
#include "node/streams/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/mutex.h"
#include "net/spdy_connection.h"
#include "net/websocket_stream.h"
#include "node/streams/test_node.h"

namespace dibs::node {
namespace {

using ::testing::HasSubstr;

/// What came on each channel.
struct Channels {
  Mutex mutex;
  CondVar changed;
  std::map<std::string, std::string> text;
  bool closed = false;

  void add(const std::string& channel, std::string_view bytes) {
    MutexLock lock(mutex);
    text[channel].append(bytes);
    changed.notify_all();
  }
  void end() {
    MutexLock lock(mutex);
    closed = true;
    changed.notify_all();
  }
  bool wait_closed() {
    MutexLock lock(mutex);
    return changed.wait_for(lock, kWait, [&] { return closed; });
  }
  bool wait_for(const std::string& channel, const std::string& part) {
    MutexLock lock(mutex);
    return changed.wait_for(lock, kWait,
                            [&] { return text[channel].find(part) != std::string::npos; });
  }
};

constexpr const char* kSuccess = R"({"metadata":{},"status":"Success"})";
constexpr const char* kExit7 =
    R"({"metadata":{},"status":"Failure","message":"command terminated with non-zero exit code: )"
    R"(exit status 7","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode",)"
    R"("message":"7"}]}})";

class CommandTest : public TestNode {
 protected:
  /// A client by WebSocket.
  struct Socket {
    std::shared_ptr<net::ByteStream> stream;
    std::shared_ptr<net::WebSocket> socket;
    std::shared_ptr<Channels> got = std::make_shared<Channels>();
    bool base64 = false;

    void send(int channel, std::string_view bytes) const {
      if (base64) {
        socket->send_text(cat(channel, base64_encode(bytes)));
      } else {
        socket->send_binary(cat(static_cast<char>(channel), bytes));
      }
    }
  };

  Socket connect(const std::string& target, const std::string& protocol) {
    Socket out;
    out.base64 = protocol.find("base64") != std::string::npos;
    auto answer = open(websocket(target, protocol), &admin_);
    EXPECT_TRUE(answer.ok());
    if (!answer.ok() || answer->upgraded == nullptr) {
      ADD_FAILURE() << "no upgrade: " << answer->head.status;
      return out;
    }
    EXPECT_EQ(answer->head.headers.get("Sec-WebSocket-Protocol"), protocol);
    out.stream = answer->upgraded;
    out.socket = net::make_websocket(answer->upgraded, net::WsEnd::client, 1 << 20);
    out.socket->start(
        [got = out.got, base64 = out.base64](std::string message, bool) {
          std::string bytes = message.substr(1);
          int channel = message[0];
          if (base64) {
            channel -= '0';
            std::string decoded;
            EXPECT_TRUE(base64_decode(bytes, decoded));
            bytes = decoded;
          }
          got->add(std::to_string(channel), bytes);
        },
        [got = out.got] { got->end(); });
    return out;
  }

  /// A client by SPDY.
  struct Spdy {
    std::shared_ptr<net::SpdyConnection> connection;
    std::shared_ptr<Channels> got = std::make_shared<Channels>();
    std::map<std::string, std::uint32_t> streams;
  };

  Spdy connect_spdy(const std::string& target, const std::vector<std::string>& protocols,
                    const std::vector<std::string>& types) {
    Spdy out;
    auto answer = open(spdy(target, protocols), &admin_);
    EXPECT_TRUE(answer.ok());
    if (!answer.ok() || answer->upgraded == nullptr) {
      ADD_FAILURE() << "no upgrade: " << answer->head.status;
      return out;
    }
    if (!protocols.empty()) {
      EXPECT_EQ(answer->head.headers.get("X-Stream-Protocol-Version"), protocols.front());
    }
    out.connection = net::SpdyConnection::make(answer->upgraded, net::SpdyConnection::End::client);
    auto names = std::make_shared<std::map<std::uint32_t, std::string>>();
    net::SpdyConnection::Handlers handlers;
    handlers.data = [got = out.got, names](std::uint32_t stream, std::string_view bytes) {
      got->add((*names)[stream], bytes);
    };
    handlers.closed = [got = out.got] { got->end(); };
    // Ids are given in order, so the names are known before the first answer.
    for (std::size_t i = 0; i < types.size(); ++i) {
      (*names)[static_cast<std::uint32_t>(2 * i + 1)] = types[i];
    }
    out.connection->start(std::move(handlers));
    for (const std::string& type : types) {
      out.streams[type] = out.connection->open({{"streamtype", type}});
    }
    return out;
  }

  static std::string exec(const std::vector<std::string>& command, const std::string& options) {
    std::string out = cat("/exec/n/p/c?", options);
    for (const std::string& word : command) append(out, "&command=", percent_encode(word));
    return out;
  }
};

TEST_F(CommandTest, runs_over_every_websocket_protocol) {
  for (const char* protocol : {"v5.channel.k8s.io", "v4.channel.k8s.io", "v4.base64.channel.k8s.io",
                               "channel.k8s.io", "base64.channel.k8s.io", ""}) {
    SCOPED_TRACE(protocol);
    const Socket client =
        connect(exec({"sh", "-c", "echo out; echo err >&2; exit 7"}, "output=1&error=1"), protocol);
    ASSERT_NE(client.socket, nullptr);
    ASSERT_TRUE(client.got->wait_closed());
    EXPECT_EQ(client.got->text["1"], "out\n");
    EXPECT_EQ(client.got->text["2"], "err\n");
    EXPECT_EQ(
        client.got->text["3"],
        protocol[0] == 'v' ? kExit7 : "command terminated with non-zero exit code: exit status 7");
  }
}

TEST_F(CommandTest, gives_input_and_its_end) {
  const Socket client = connect(exec({"wc", "-l"}, "input=1&output=1"), "v5.channel.k8s.io");
  client.send(0, "one\n");
  client.send(0, "two\n");
  client.send(255, std::string_view("\0", 1));
  ASSERT_TRUE(client.got->wait_closed());
  EXPECT_EQ(std::string(trim(client.got->text["1"])), "2");
  EXPECT_EQ(client.got->text["3"], kSuccess);
}

TEST_F(CommandTest, has_a_terminal_of_the_clients_size) {
  const Socket client = connect(exec({"sh", "-c", "read go; stty size; tty >/dev/null && echo tty"},
                                     "input=1&output=1&tty=1"),
                                "v5.channel.k8s.io");
  client.send(4, R"({"Width":91,"Height":37})");
  client.send(0, "go\n");
  ASSERT_TRUE(client.got->wait_closed());
  EXPECT_THAT(client.got->text["1"], HasSubstr("37 91"));
  EXPECT_THAT(client.got->text["1"], HasSubstr("tty"));
  EXPECT_EQ(client.got->text["3"], kSuccess);
}

TEST_F(CommandTest, tells_why_a_command_cannot_start) {
  const Socket client = connect(exec({"/no/such"}, "output=1"), "v5.channel.k8s.io");
  ASSERT_TRUE(client.got->wait_closed());
  EXPECT_THAT(client.got->text["3"],
              HasSubstr(R"("message":"Internal error occurred: Internal error occurred: error )"
                        R"(executing command in container: exec: \"/no/such\": )"));
  const Socket older = connect(exec({"/no/such"}, "output=1"), "v4.channel.k8s.io");
  ASSERT_TRUE(older.got->wait_closed());
  EXPECT_THAT(older.got->text["3"],
              HasSubstr(R"("message":"Internal error occurred: error executing command in )"));
}

TEST_F(CommandTest, moves_much_both_ways) {
  const Socket client = connect(exec({"cat"}, "input=1&output=1"), "v5.channel.k8s.io");
  std::string sent;
  for (int i = 0; i < 400; ++i) {
    const std::string piece(10'000, static_cast<char>('a' + i % 26));
    sent += piece;
    client.send(0, piece);
  }
  client.send(255, std::string_view("\0", 1));
  ASSERT_TRUE(client.got->wait_closed());
  EXPECT_EQ(client.got->text["1"].size(), sent.size());
  EXPECT_TRUE(client.got->text["1"] == sent);
}

TEST_F(CommandTest, ends_the_process_when_its_client_goes) {
  {
    const Socket client =
        connect(exec({"sh", "-c", "echo up; sleep 1000"}, "output=1"), "v5.channel.k8s.io");
    ASSERT_TRUE(client.got->wait_for("1", "up"));
    EXPECT_EQ(containers_.running(), 1);
  }
  EXPECT_TRUE(containers_.wait_for_none_running(kWait));
}

TEST_F(CommandTest, ends_a_process_that_does_not_read_when_its_client_goes) {
  {
    const Socket client =
        connect(exec({"sh", "-c", "echo up; sleep 1000"}, "input=1&output=1"), "v5.channel.k8s.io");
    ASSERT_TRUE(client.got->wait_for("1", "up"));
    // More than the process and the queue before it take, no more than the sockets hold.
    for (int i = 0; i < 150; ++i) client.send(0, std::string(10'000, 'x'));
    client.stream->expire(Duration::zero());
  }
  EXPECT_TRUE(containers_.wait_for_none_running(kWait));
}

TEST_F(CommandTest, runs_over_spdy) {
  for (const char* protocol :
       {"v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io"}) {
    SCOPED_TRACE(protocol);
    Spdy client =
        connect_spdy(exec({"sh", "-c", "cat; echo err >&2; exit 7"}, "input=1&output=1&error=1"),
                     {protocol}, {"error", "stdin", "stdout", "stderr"});
    ASSERT_NE(client.connection, nullptr);
    client.connection->write(client.streams["stdin"], "hello");
    client.connection->finish(client.streams["stdin"]);
    ASSERT_TRUE(client.got->wait_closed());
    EXPECT_EQ(client.got->text["stdout"], "hello");
    EXPECT_EQ(client.got->text["stderr"], "err\n");
    const bool json = protocol[0] == 'v' && protocol[1] >= '4';
    EXPECT_EQ(client.got->text["error"],
              json ? kExit7 : "command terminated with non-zero exit code: exit status 7");
  }
}

TEST_F(CommandTest, resizes_over_spdy) {
  Spdy client = connect_spdy(exec({"sh", "-c", "read go; stty size"}, "input=1&output=1&tty=1"),
                             {"v4.channel.k8s.io"}, {"error", "stdin", "stdout", "resize"});
  // In pieces, two in one.
  client.connection->write(client.streams["resize"], R"({"Width":1,"Hei)");
  client.connection->write(client.streams["resize"], "ght\":1}\n{\"Width\":80,\"Height\":24}\n");
  client.connection->write(client.streams["stdin"], "go\n");
  ASSERT_TRUE(client.got->wait_closed());
  EXPECT_THAT(client.got->text["stdout"], HasSubstr("24 80"));
}

TEST_F(CommandTest, refuses_protocols_it_does_not_know) {
  auto answer = open(spdy(exec({"true"}, "output=1"), {"v5.channel.k8s.io"}), &admin_);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->head.status, 403);
  answer = open(websocket(exec({"true"}, "output=1"), "v9.channel.k8s.io"), &admin_);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->head.status, 400);
}

TEST_F(CommandTest, attaches) {
  const Socket client = connect("/attach/n/p/c?input=1&output=1", "v5.channel.k8s.io");
  client.send(0, "x\ny\n");
  client.send(255, std::string_view("\0", 1));
  ASSERT_TRUE(client.got->wait_closed());
  EXPECT_EQ(client.got->text["1"], "got x\ngot y\nover\n");
  EXPECT_EQ(client.got->text["3"], kSuccess);
}

TEST(CommandStatus, says_how_it_went) {
  CommandTarget exec;
  EXPECT_EQ(json::write(command_status(exec, 0, false)), kSuccess);
  EXPECT_EQ(json::write(command_status(exec, 7, true)), kExit7);
  CommandTarget attach;
  attach.attach = true;
  EXPECT_EQ(json::write(command_status(attach, 3, false)), kSuccess);
  EXPECT_EQ(json::write(command_status(attach, Error::internal("gone"), false)),
            R"({"metadata":{},"status":"Failure","message":"Internal error occurred: error )"
            R"(attaching to container: gone","reason":"InternalError","details":{"causes":)"
            R"([{"message":"error attaching to container: gone"}]},"code":500})");
}

TEST(WebSocketProtocols, are_chosen_best_first) {
  std::string chosen;
  EXPECT_TRUE(choose_websocket_protocol("v4.channel.k8s.io, v5.channel.k8s.io", chosen));
  EXPECT_EQ(chosen, "v5.channel.k8s.io");
  EXPECT_TRUE(choose_websocket_protocol("base64.channel.k8s.io", chosen));
  EXPECT_EQ(chosen, "base64.channel.k8s.io");
  EXPECT_TRUE(choose_websocket_protocol("", chosen));
  EXPECT_EQ(chosen, "");
  EXPECT_FALSE(choose_websocket_protocol("chat", chosen));
}

}  // namespace
}  // namespace dibs::node
