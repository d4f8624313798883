#include "server/pieces.h"

#include <atomic>

#include "base/log.h"

namespace dibs::server {
namespace {

class Sender : public std::enable_shared_from_this<Sender> {
 public:
  Sender(runtime::Executor& executor, std::shared_ptr<net::BodyStream> stream,
         std::shared_ptr<Pieces> pieces, std::shared_ptr<const void> kept)
      : executor_(executor),
        stream_(std::move(stream)),
        kept_(std::move(kept)),
        pieces_(std::move(pieces)) {}

  void start() {
    stream_->on_closed([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->let_go();
    });
    stream_->on_drained([self = shared_from_this()] { self->go_on(); });
  }

 private:
  void go_on() {
    if (gone_ || busy_.exchange(true)) return;
    executor_.post([self = shared_from_this()] { self->send_one(); });
  }

  void send_one() {
    if (gone_) return;
    std::string piece;
    const auto more = pieces_->next(piece);
    if (!more.ok()) {
      log::error("an answer was broken off", {{"error", more.error()}});
      return let_go();
    }
    if (!stream_->write(share(std::move(piece)))) return let_go();
    if (!*more) {
      let_go();
      return stream_->finish();
    }
    busy_ = false;
    // It may have drained meanwhile, with nobody left to tell.
    if (stream_->queued() == 0) go_on();
  }

  /// The stream holds this no longer: unless it is finished it breaks off, as nobody holds it then.
  void let_go() {
    gone_ = true;
    stream_->on_drained(nullptr);
  }

  runtime::Executor& executor_;
  std::shared_ptr<net::BodyStream> stream_;
  std::shared_ptr<const void> kept_;
  const std::shared_ptr<Pieces> pieces_;  // by one thread at a time: who made busy_ true
  std::atomic<bool> busy_{false};
  std::atomic<bool> gone_{false};
};

}  // namespace

void send_pieces(runtime::Executor& executor, std::shared_ptr<net::BodyStream> stream,
                 std::shared_ptr<Pieces> pieces, std::shared_ptr<const void> kept) {
  std::make_shared<Sender>(executor, std::move(stream), std::move(pieces), std::move(kept))
      ->start();
}

}  // namespace dibs::server
