#include "net/http2_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nghttp2/nghttp2.h>

#include <map>

#include "base/strings.h"
#include "net/server_connection.h"

namespace dibs::net {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A client, a server, and the bytes between them.
class Http2 : public testing::Test, public Http2Session::Owner {
 protected:
  struct Answer {
    std::string status;
    std::map<std::string, std::string> headers;
    std::string body;
    bool closed = false;
    std::uint32_t code = 0;
  };

  Http2() {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(
        callbacks, [](nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                      std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
                      std::uint8_t, void* user) {
          Answer& answer = me(user).answers[frame->hd.stream_id];
          const std::string key(reinterpret_cast<const char*>(name), name_size);
          const std::string text(reinterpret_cast<const char*>(value), value_size);
          if (key == ":status") answer.status = text;
          answer.headers[key] = text;
          return 0;
        });
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
        callbacks, [](nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* data,
                      std::size_t size, void* user) {
          me(user).answers[id].body.append(reinterpret_cast<const char*>(data), size);
          return 0;
        });
    nghttp2_session_callbacks_set_on_stream_close_callback(
        callbacks, [](nghttp2_session*, std::int32_t id, std::uint32_t code, void* user) {
          me(user).answers[id].closed = true;
          me(user).answers[id].code = code;
          return 0;
        });
    nghttp2_session_callbacks_set_on_frame_recv_callback(
        callbacks, [](nghttp2_session*, const nghttp2_frame* frame, void* user) {
          if (frame->hd.type == NGHTTP2_GOAWAY) {
            me(user).goaways.push_back(frame->goaway.error_code);
            me(user).last_taken = frame->goaway.last_stream_id;
          }
          return 0;
        });
    nghttp2_option* option = nullptr;
    nghttp2_option_new(&option);
    nghttp2_option_set_no_auto_window_update(option, 1);
    nghttp2_session_client_new2(&client, callbacks, this, option);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(client, 0, nullptr, 0);
  }
  ~Http2() override { nghttp2_session_del(client); }

  static Http2& me(void* user) { return *static_cast<Http2*>(user); }

  void dispatch(std::int32_t stream, Request request) override {
    requests.emplace_back(stream, std::move(request));
  }
  std::string date() override { return "now"; }
  void count_bad_request() override { ++bad; }
  void count_slow_client() override { ++slow; }

  Http2Session& server() {
    if (!session) session = std::make_unique<Http2Session>(options, *this, now);
    return *session;
  }

  /// Lets bytes flow both ways until nobody has more to say.
  void run() {
    for (int i = 0; i < 1000; ++i) {
      std::string out;
      for (;;) {
        const std::uint8_t* data = nullptr;
        const auto size = nghttp2_session_mem_send(client, &data);
        if (size <= 0) break;
        out.append(reinterpret_cast<const char*>(data), static_cast<std::size_t>(size));
      }
      if (!out.empty()) server().receive(out, now);
      std::string back;
      server().produce(back, 64 * 1024);
      server().tell_drained();
      nghttp2_session_mem_recv(client, reinterpret_cast<const std::uint8_t*>(back.data()),
                               back.size());
      if (out.empty() && back.empty()) return;
    }
    FAIL() << "they never end";
  }

  std::int32_t ask(const std::string& method, const std::string& path, std::string body = {},
                   std::vector<std::pair<std::string, std::string>> more = {}) {
    std::vector<std::pair<std::string, std::string>> fields = {
        {":method", method}, {":scheme", "https"}, {":authority", "h"}, {":path", path}};
    fields.insert(fields.end(), more.begin(), more.end());
    std::vector<nghttp2_nv> list;
    for (auto& [name, value] : fields) {
      list.push_back({reinterpret_cast<std::uint8_t*>(name.data()),
                      reinterpret_cast<std::uint8_t*>(value.data()), name.size(), value.size(), 0});
    }
    bodies.push_back(std::make_unique<std::string>(std::move(body)));
    nghttp2_data_provider provider{};
    provider.source.ptr = bodies.back().get();
    provider.read_callback = [](nghttp2_session*, std::int32_t, std::uint8_t* data,
                                std::size_t size, std::uint32_t* flags, nghttp2_data_source* source,
                                void*) -> ssize_t {
      auto& rest = *static_cast<std::string*>(source->ptr);
      const std::size_t part = std::min(size, rest.size());
      std::copy_n(rest.data(), part, data);
      rest.erase(0, part);
      if (rest.empty()) *flags |= NGHTTP2_DATA_FLAG_EOF;
      return static_cast<ssize_t>(part);
    };
    return nghttp2_submit_request(client, nullptr, list.data(), list.size(),
                                  bodies.back()->empty() ? nullptr : &provider, nullptr);
  }

  /// A request whose body is still to come.
  std::int32_t begin(const std::string& path,
                     std::vector<std::pair<std::string, std::string>> more = {}) {
    std::vector<std::pair<std::string, std::string>> fields = {
        {":method", "POST"}, {":scheme", "https"}, {":authority", "h"}, {":path", path}};
    fields.insert(fields.end(), more.begin(), more.end());
    std::vector<nghttp2_nv> list;
    for (auto& [name, value] : fields) {
      list.push_back({reinterpret_cast<std::uint8_t*>(name.data()),
                      reinterpret_cast<std::uint8_t*>(value.data()), name.size(), value.size(), 0});
    }
    return nghttp2_submit_headers(client, NGHTTP2_FLAG_NONE, -1, nullptr, list.data(), list.size(),
                                  nullptr);
  }

  /// The client has read so much of the stream.
  void take(std::int32_t stream, std::size_t size) {
    nghttp2_session_consume(client, stream, size);
    run();
  }

  static Response text(int status, std::string body) {
    Response response;
    response.status = status;
    response.headers.add("Content-Type", "text/plain");
    response.body = std::move(body);
    return response;
  }

  static void put(StreamCore& core, const SharedBytes& piece) {
    const MutexLock lock(core.mutex);
    core.queue.push_back(piece);
    core.queued += piece->size();
    core.scheduled = true;
  }

  ServerOptions options;
  std::int64_t now = 1000;
  std::unique_ptr<Http2Session> session;
  nghttp2_session* client = nullptr;
  std::vector<std::pair<std::int32_t, Request>> requests;
  std::map<std::int32_t, Answer> answers;
  std::vector<std::uint32_t> goaways;
  std::int32_t last_taken = 0;
  std::vector<std::unique_ptr<std::string>> bodies;
  int bad = 0;
  int slow = 0;
};

TEST_F(Http2, answers_requests_in_any_order) {
  const auto one = ask("GET", "/one?a=b", "", {{"accept", "x"}});
  const auto two = ask("POST", "/two", "a body");
  run();
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(requests[0].second.method, "GET");
  EXPECT_EQ(requests[0].second.target, "/one?a=b");
  EXPECT_EQ(requests[0].second.headers.get("Host"), "h");
  EXPECT_EQ(requests[0].second.headers.get("Accept"), "x");
  EXPECT_EQ(requests[1].second.body, "a body");

  server().respond(two, text(201, "second"));
  run();
  EXPECT_TRUE(answers[two].closed);
  EXPECT_FALSE(answers[one].closed);
  Response response = text(200, std::string(200'000, 'x'));
  response.headers.add("Connection", "keep-alive");
  response.headers.add("X-Lines", "a\r\nb");
  server().respond(one, std::move(response));
  run();
  take(one, 65535);
  take(one, 65535);
  take(one, 65535);

  EXPECT_EQ(answers[two].status, "201");
  EXPECT_EQ(answers[two].body, "second");
  EXPECT_EQ(answers[two].headers["content-length"], "6");
  EXPECT_EQ(answers[two].headers["date"], "now");
  EXPECT_EQ(answers[one].body.size(), 200'000U);
  EXPECT_EQ(answers[one].headers.count("connection"), 0U);
  EXPECT_EQ(answers[one].headers["x-lines"], "a  b");
}

TEST_F(Http2, sends_no_body_to_a_head) {
  const auto id = ask("HEAD", "/");
  run();
  server().respond(id, text(200, "four"));
  run();
  EXPECT_EQ(answers[id].headers["content-length"], "4");
  EXPECT_EQ(answers[id].body, "");
  EXPECT_TRUE(answers[id].closed);
}

TEST_F(Http2, holds_up_no_other_stream_for_a_slow_one) {
  const auto slow_one = ask("GET", "/slow");
  const auto quick = ask("GET", "/quick");
  run();
  const auto piece = share(std::string(100'000, 'x'));
  auto core = std::make_shared<StreamCore>();
  auto other = std::make_shared<StreamCore>();
  put(*core, piece);
  put(*other, share("event\n"));
  server().begin_stream(slow_one, text(200, ""), core);
  server().begin_stream(quick, text(200, ""), other);
  run();
  // The window of a stream is 64 KiB until its reader says more; the rest is not copied anywhere.
  EXPECT_LE(answers[slow_one].body.size(), 65535U);
  EXPECT_EQ(piece.use_count(), 2);
  nghttp2_session_consume(client, quick, 6);
  for (int i = 0; i < 3; ++i) {
    put(*other, share("more\n"));
    server().pump_stream(quick);
    // The connection's window is the slow one's too: it is given back for what was read.
    nghttp2_session_consume_connection(client, 65535);
    run();
  }
  EXPECT_EQ(answers[quick].body, "event\nmore\nmore\nmore\n");

  // In the end the slow one is cut off, alone.
  now += 61'000;
  server().tick(now);
  now += 61'000;
  server().tick(now);
  run();
  EXPECT_TRUE(answers[slow_one].closed);
  EXPECT_FALSE(answers[quick].closed);
  EXPECT_EQ(slow, 1);
}

TEST_F(Http2, tells_a_stream_when_it_is_empty_finished_or_gone) {
  const auto id = ask("GET", "/");
  run();
  auto core = std::make_shared<StreamCore>();
  int drained = 0;
  int closed = 0;
  {
    const MutexLock lock(core->mutex);
    core->drained = [&] { ++drained; };
    core->on_closed = [&] { ++closed; };
  }
  put(*core, share("a"));
  server().begin_stream(id, text(200, ""), core);
  run();
  EXPECT_EQ(drained, 1);
  put(*core, share("b"));
  server().pump_stream(id);
  run();
  EXPECT_EQ(drained, 2);
  EXPECT_EQ(answers[id].body, "ab");
  nghttp2_submit_rst_stream(client, 0, id, NGHTTP2_CANCEL);
  run();
  EXPECT_EQ(closed, 1);
  EXPECT_EQ(server().streams(), 0U);

  const auto next = ask("GET", "/");
  run();
  core = std::make_shared<StreamCore>();
  put(*core, share("whole"));
  server().begin_stream(next, text(200, ""), core);
  {
    const MutexLock lock(core->mutex);
    core->finished = true;
  }
  run();
  EXPECT_EQ(answers[next].body, "whole");
  EXPECT_TRUE(answers[next].closed);
  EXPECT_EQ(answers[next].code, 0U);
}

TEST_F(Http2, lets_a_stream_go_that_begins_after_its_client_left) {
  const auto id = ask("GET", "/");
  run();
  nghttp2_submit_rst_stream(client, 0, id, NGHTTP2_CANCEL);
  run();
  // As who sends in pieces: what is called when all was sent holds the stream.
  auto core = std::make_shared<StreamCore>();
  const std::weak_ptr<StreamCore> watched = core;
  int closed = 0;
  {
    const MutexLock lock(core->mutex);
    core->drained = [core] {};
    core->on_closed = [core, &closed] { ++closed; };
  }
  put(*core, share("never sent"));
  server().begin_stream(id, text(200, ""), std::move(core));
  EXPECT_EQ(closed, 1);
  EXPECT_TRUE(watched.expired());
}

TEST_F(Http2, tells_who_works_that_nobody_waits) {
  const auto id = ask("GET", "/");
  run();
  int gone = 0;
  server().on_gone(id, [&] { ++gone; });
  nghttp2_submit_rst_stream(client, 0, id, NGHTTP2_CANCEL);
  run();
  EXPECT_EQ(gone, 1);
  server().respond(id, text(200, "late"));
  run();
}

TEST_F(Http2, refuses_what_is_too_large) {
  options.max_body = 1000;
  options.max_header_bytes = 2000;
  const auto body = ask("POST", "/", std::string(5000, 'x'));
  const auto said = ask("POST", "/", std::string(1001, 'x'), {{"content-length", "1001"}});
  const auto head = ask("GET", "/", "", {{"x", std::string(3000, 'y')}});
  run();
  EXPECT_EQ(answers[body].status, "413");
  EXPECT_EQ(answers[said].status, "413");
  EXPECT_EQ(answers[head].status, "431");
  EXPECT_TRUE(requests.empty());
  const auto good = ask("GET", "/");
  run();
  EXPECT_EQ(requests.size(), 1U);
  server().respond(good, text(200, "fine"));
  run();
  EXPECT_EQ(answers[good].body, "fine");
}

TEST_F(Http2, takes_bodies_after_many_that_were_refused) {
  options.max_body = 1'000'000;
  for (int i = 0; i < 20; ++i) {
    if (i == 10) options.body_too_large = [](const Request&) { return text(413, "large"); };
    const auto id = ask("POST", "/", std::string(1'100'000, 'x'));
    run();
    ASSERT_EQ(answers[id].status, "413");
    nghttp2_submit_rst_stream(client, 0, id, NGHTTP2_CANCEL);
    run();
  }
  ask("POST", "/", std::string(900'000, 'x'));
  run();
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_EQ(requests[0].second.body.size(), 900'000U);
}

TEST_F(Http2, bounds_the_heads_of_requests_that_are_not_whole) {
  options.max_header_bytes = 2000;
  std::vector<std::int32_t> begun;
  for (int i = 0; i < 50; ++i) begun.push_back(begin("/", {{"x", std::string(1500, 'y')}}));
  run();
  // Four of the largest are held, whoever they belong to.
  std::vector<std::int32_t> held;
  for (const auto id : begun) {
    if (!answers[id].closed) {
      held.push_back(id);
    } else {
      EXPECT_EQ(answers[id].code, static_cast<std::uint32_t>(NGHTTP2_REFUSED_STREAM));
    }
  }
  EXPECT_GE(held.size(), 3U);
  EXPECT_LE(held.size(), 5U);
  EXPECT_EQ(server().streams(), held.size());

  // What is gone, refused or worked on counts no more.
  for (const auto id : held) nghttp2_submit_rst_stream(client, 0, id, NGHTTP2_CANCEL);
  run();
  for (int i = 0; i < 20; ++i) {
    ask("GET", "/", "", {{"x", std::string(1500, 'y')}});
    run();
    const auto large = ask("HEAD", "/", "", {{"x", std::string(3000, 'y')}});
    run();
    EXPECT_EQ(answers[large].status, "431");
    EXPECT_TRUE(answers[large].closed);
  }
  EXPECT_EQ(requests.size(), 20U);
}

TEST_F(Http2, waits_for_requests_that_do_not_become_whole) {
  begin("/");
  run();
  EXPECT_EQ(server().idle(now + 1000), -1);
  EXPECT_EQ(server().idle(now + 3000), 3000);
  ask("GET", "/");
  run();
  EXPECT_EQ(server().idle(now + 3000), -1);
}

TEST_F(Http2, refuses_pseudo_fields_of_its_own) {
  const auto id = ask("GET", "/", "", {{":front-proxy", "x"}});
  run();
  EXPECT_TRUE(requests.empty());
  EXPECT_TRUE(answers[id].closed);
}

TEST_F(Http2, goes_on_after_a_malformed_head) {
  const auto watch = ask("GET", "/watch");
  run();
  ask("GET", "/", "", {{":front-proxy", "x"}});
  run();
  // Nothing more is awaited of it.
  now += 40'000;
  server().tick(now);
  run();
  EXPECT_TRUE(goaways.empty());
  ask("GET", "no path");
  ask("POST", "/", std::string(600'000, 'x'));
  run();
  EXPECT_TRUE(goaways.empty());
  EXPECT_FALSE(answers[watch].closed);
  EXPECT_EQ(requests.size(), 2U);
}

TEST_F(Http2, ends_with_who_only_resets) {
  for (int i = 0; i < 3000 && goaways.empty(); ++i) {
    const auto id = ask("GET", "/");
    run();
    if (id < 0) break;
    nghttp2_submit_rst_stream(client, 0, id, NGHTTP2_CANCEL);
    run();
  }
  // Nobody has answered any of them: not more are worked on than twice the streams.
  EXPECT_LE(requests.size(), 2UL * options.max_streams);
  EXPECT_THAT(goaways, ElementsAre(NGHTTP2_ENHANCE_YOUR_CALM));
  EXPECT_TRUE(server().is_over());
}

TEST_F(Http2, ends_with_who_only_pings) {
  for (int i = 0; i < 3000 && goaways.empty(); ++i) {
    nghttp2_submit_ping(client, 0, nullptr);
    run();
  }
  EXPECT_THAT(goaways, ElementsAre(NGHTTP2_ENHANCE_YOUR_CALM));
}

TEST_F(Http2, ends_with_who_never_ends_a_head) {
  run();
  const auto frame = [](std::uint8_t type, std::uint8_t flags, std::string_view payload) {
    std::string out(9, '\0');
    out[1] = static_cast<char>(payload.size() >> 8);
    out[2] = static_cast<char>(payload.size() & 0xff);
    out[3] = static_cast<char>(type);
    out[4] = static_cast<char>(flags);
    out[8] = 1;
    return out.append(payload);
  };
  bool lives = server().receive(frame(NGHTTP2_HEADERS, 0, "\x82"), now);
  int sent = 0;
  for (; lives && sent < 200'000; ++sent)
    lives = server().receive(frame(NGHTTP2_CONTINUATION, 0, ""), now);
  EXPECT_FALSE(lives);
  EXPECT_LT(sent, 100'000);

  session = nullptr;
}

TEST_F(Http2, lets_a_body_wait_for_so_long) {
  run();
  const auto id = ask("POST", "/", std::string(400'000, 'x'));
  // The whole does not fit its window, and the client sends no more than the first part.
  std::string out;
  const std::uint8_t* data = nullptr;
  for (int i = 0; i < 3; ++i) {
    const auto size = nghttp2_session_mem_send(client, &data);
    out.append(reinterpret_cast<const char*>(data), static_cast<std::size_t>(size));
  }
  server().receive(out, now);
  now += 61'000;
  server().tick(now);
  std::string back;
  server().produce(back, 64 * 1024);
  nghttp2_session_mem_recv(client, reinterpret_cast<const std::uint8_t*>(back.data()), back.size());
  EXPECT_TRUE(answers[id].closed);
  EXPECT_TRUE(requests.empty());
}

TEST_F(Http2, lets_a_client_go_after_its_answers) {
  const auto id = ask("GET", "/");
  run();
  server().retire(now);
  run();
  EXPECT_EQ(last_taken, (1U << 31) - 1);
  // What was on its way still counts.
  const auto late = ask("GET", "/late");
  if (late > 0) run();
  now += 300;
  server().tick(now);
  run();
  EXPECT_FALSE(server().is_over());
  server().respond(id, text(200, "last"));
  run();
  EXPECT_EQ(answers[id].body, "last");
  EXPECT_TRUE(server().is_over());
  EXPECT_THAT(goaways, ElementsAre(NGHTTP2_NO_ERROR, NGHTTP2_NO_ERROR));
}

TEST_F(Http2, lets_an_idle_client_go) {
  run();
  EXPECT_EQ(server().idle(now + 5), 5);
  now += 121'000;
  server().tick(now);
  run();
  now += 1000;
  server().tick(now);
  run();
  EXPECT_TRUE(server().is_over());
}

TEST_F(Http2, sends_some_clients_to_another_server) {
  options.goaway_every = 3;
  for (int i = 0; i < 3; ++i) {
    const auto id = ask("GET", "/");
    run();
    server().respond(id, text(200, ""));
    run();
    EXPECT_EQ(goaways.size(), i == 2 ? 1U : 0U);
  }
}

}  // namespace
}  // namespace dibs::net
