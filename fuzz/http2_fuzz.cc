// Any bytes as an HTTP/2 connection, with answers to what becomes a request.
#include "fuzz/pieces.h"
#include "fuzz/targets.h"
#include "net/http2_session.h"
#include "net/server_connection.h"

namespace dibs::fuzz {
namespace {

/// Answers at once, in pieces, later or never, as the path says.
class Answers final : public net::Http2Session::Owner {
 public:
  void dispatch(std::int32_t stream, net::Request request) override {
    const std::size_t which = request.target.size() % 4;
    if (which == 3) return;
    if (which == 2) return late.push_back(stream);
    net::Response response;
    response.body.assign(request.body.size() + 100'000 * which, 'x');
    if (which == 0) return session->respond(stream, std::move(response));
    auto core = std::make_shared<net::StreamCore>();
    {
      const MutexLock lock(core->mutex);
      core->queue = {share(std::string(100'000, 'y')), share("z")};
      core->queued = 100'001;
      core->scheduled = true;
      core->finished = request.headers.has("x");
    }
    session->begin_stream(stream, {}, std::move(core));
  }
  std::string date() override { return "now"; }
  void count_bad_request() override {}
  void count_slow_client() override {}

  net::Http2Session* session = nullptr;
  std::vector<std::int32_t> late;
};

}  // namespace

int fuzz_http2(const std::uint8_t* data, std::size_t size) {
  net::ServerOptions options;
  options.max_body = 4096;
  options.max_header_bytes = 4096;
  Answers answers;
  std::int64_t now = 0;
  net::Http2Session session(options, answers, now);
  answers.session = &session;
  // What every client begins with, so that the rest is about frames.
  static constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  session.receive(kPreface, now);
  std::string out;
  in_pieces(data, size, [&](std::string_view piece) {
    const bool lives = session.receive(piece, ++now);
    for (const std::int32_t stream : std::exchange(answers.late, {})) session.respond(stream, {});
    out.clear();
    session.produce(out, 64 * 1024);
    session.tell_drained();
    if (piece.size() % 7 == 0) session.tick(now += 1000);
    return lives;
  });
  session.retire(now);
  session.tick(now + 1000);
  session.produce(out, 64 * 1024);
  session.close();
  return 0;
}

}  // namespace dibs::fuzz

DIBS_FUZZ_ENTRY(dibs::fuzz::fuzz_http2)
