#include "server/watching.h"

#include <algorithm>
#include <thread>

#include "base/strings.h"
#include "server/list_options.h"
#include "server/presenting.h"
#include "server/selection.h"
#include "server/status.h"
#include "server/warnings.h"
#include "server/watch_stream.h"

namespace dibs::server {

Watches::Watches(runtime::Runtime& runtime, store::Store& store, Duration least)
    : runtime_(runtime),
      least_seconds_(std::chrono::duration_cast<std::chrono::seconds>(least).count()),
      store_(store),
      most_starters_(std::max(1U, std::thread::hardware_concurrency() / 2)) {}

Watches::~Watches() { close(); }

void Watches::open(std::shared_ptr<Context> context, std::shared_ptr<calls::Exchange> exchange) {
  auto options = ListOptions::parse(context->target, true);
  if (!options.ok()) return exchange->respond(status_response(options.error()));
  auto selection = Selection::parse(context->target, *context->resource);
  if (!selection.ok()) return exchange->respond(status_response(selection.error()));
  if (context->info.legacy_watch && !context->info.name.empty())
    selection->require_name(context->info.name);

  auto stream = std::make_shared<WatchStream>(*this, context, std::move(options).value(),
                                              std::move(selection).value());
  {
    MutexLock lock(mutex_);
    if (closed_) {
      exchange->respond(status_response(try_again_error("the server is shutting down")));
      return;
    }
    streams_.insert(stream);
  }
  net::Response head;
  const bool protobuf = context->answer.media == Media::protobuf;
  head.headers.add("Content-Type", protobuf ? cat(kProtobuf, ";stream=watch") : "application/json");
  head.headers.add("Cache-Control", "no-cache, private");
  add_warnings(context->warnings, head.headers);
  if (auto events = exchange->stream_events(head)) return stream->start(events, events);
  stream->start(exchange->stream(std::move(head)), nullptr);
}

void Watches::ready(std::weak_ptr<WatchStream> weak) {
  const auto stream = weak.lock();
  if (stream == nullptr) return;
  if (stream->calls_out()) {
    if (stream->take_turn()) runtime_.executor.post([stream] { stream->run_alone(); });
    return;
  }
  const bool starting = stream->is_starting();
  {
    MutexLock lock(mutex_);
    if (starting) {
      starting_.push_back(std::move(weak));
      if (starters_ == most_starters_) return;
      ++starters_;
    } else {
      ready_.push_back(std::move(weak));
      if (serving_) return;
      serving_ = true;
    }
  }
  runtime_.executor.post([this, starting] { starting ? serve_starting() : serve_ready(); });
}

void Watches::serve_ready() {
  for (;;) {
    std::vector<std::weak_ptr<WatchStream>> batch;
    {
      MutexLock lock(mutex_);
      if (ready_.empty()) {
        serving_ = false;
        return;
      }
      batch.swap(ready_);
    }
    for (auto& weak : batch) {
      if (auto stream = weak.lock()) stream->pump();
    }
  }
}

void Watches::serve_starting() {
  for (;;) {
    std::shared_ptr<WatchStream> stream;
    {
      MutexLock lock(mutex_);
      if (starting_.empty()) {
        --starters_;
        return;
      }
      stream = starting_.front().lock();
      starting_.pop_front();
    }
    if (stream == nullptr) continue;
    if (stream->waits_for_state()) {
      // All of them asked before it is read, so for none of them it is too old.
      const auto alike = alike_to(*stream);
      const auto state = stream->read_state();
      stream->adopt(state);
      for (const auto& one : alike) one->adopt(state);
    }
    stream->send_initial();
  }
}

std::vector<std::shared_ptr<WatchStream>> Watches::alike_to(const WatchStream& stream) {
  std::vector<std::shared_ptr<WatchStream>> out;
  MutexLock lock(mutex_);
  for (const auto& weak : starting_) {
    auto other = weak.lock();
    if (other && other->begins_with() == stream.begins_with()) out.push_back(std::move(other));
  }
  return out;
}

std::optional<std::vector<std::shared_ptr<WatchStream>>> Watches::begin_reading(
    const WatchStream& stream) {
  std::vector<std::shared_ptr<WatchStream>> out;
  MutexLock lock(mutex_);
  if (!reading_.insert(stream.begins_with()).second) return std::nullopt;
  for (const auto& other : streams_) {
    if (other.get() == &stream || !other->calls_out() || !other->is_starting()) continue;
    if (other->begins_with() == stream.begins_with()) out.push_back(other);
  }
  return out;
}

void Watches::end_reading(const WatchStream& stream) {
  MutexLock lock(mutex_);
  reading_.erase(stream.begins_with());
}

void Watches::forget(const std::shared_ptr<WatchStream>& stream) {
  MutexLock lock(mutex_);
  streams_.erase(stream);
}

void Watches::end(const std::string& prefix) {
  std::vector<std::shared_ptr<WatchStream>> streams;
  {
    MutexLock lock(mutex_);
    for (const auto& stream : streams_) {
      if (stream->is_under(prefix)) streams.push_back(stream);
    }
  }
  for (const auto& stream : streams) stream->end();
}

void Watches::close() {
  std::unordered_set<std::shared_ptr<WatchStream>> streams;
  {
    MutexLock lock(mutex_);
    closed_ = true;
    streams = streams_;
  }
  for (const auto& stream : streams) stream->stop(true);
}

std::size_t Watches::count() const {
  MutexLock lock(mutex_);
  return streams_.size();
}

}  // namespace dibs::server
