#pragma once
// A container's log on its way to a client, to its end or as long as the container runs.
//
// Nothing waits in a thread: reading goes on when the file changed, the container ended or the
// client has taken what was sent. A log that is rotated while it is followed is read to its end,
// then the new file from its beginning.

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "net/http.h"
#include "node/streams/file_watch.h"
#include "node/streams/log_line.h"
#include "runtime/runtime.h"

namespace dibs::node {

class LogStream : public std::enable_shared_from_this<LogStream> {
 public:
  LogStream(runtime::Runtime& runtime, FileWatch& watch, std::string path, LogOptions options);
  ~LogStream();

  /// Errors when the file cannot be read; nothing was sent then.
  Result<> open();
  /// Begins to send. The stream is finished at the end.
  void start(std::shared_ptr<net::BodyStream> client);
  /// The container does not run any more (or never did): what is there is all there will be.
  void container_ended();
  bool done() const { return done_; }

 private:
  void wake();
  void pump();
  /// False when there is nothing to read now.
  bool read_some();
  bool reopen();
  void finish();

  runtime::Runtime& runtime_;
  FileWatch& watch_;
  std::string path_;
  LogOptions options_;
  LogFormat format_;
  FileWatch::Subscription subscription_;
  std::shared_ptr<net::BodyStream> client_;
  std::atomic<int> state_ = 2;  // 0 idle, 1 pumping, 2 to look again; 2 before start(), too
  std::atomic<bool> ended_ = false;
  std::atomic<bool> done_ = false;
  std::atomic<bool> gone_ = false;
  // Of the one pump.
  int fd_ = -1;
  std::int64_t offset_ = 0;
  std::string held_;  // a line without its end
};

}  // namespace dibs::node
