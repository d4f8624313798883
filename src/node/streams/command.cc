#include "node/streams/command.h"

#include <deque>
#include <utility>

#include "base/mutex.h"
#include "base/strings.h"

namespace dibs::node {
namespace {

// Bytes of input that wait for the process, and of output that wait for the client.
constexpr std::size_t kMaxWaiting = 1024 * 1024;

struct InputItem {
  enum class Kind : std::uint8_t { data, close, resize };
  Kind kind = Kind::data;
  std::string data = {};
  TerminalSize size = {};
};

class Command : public std::enable_shared_from_this<Command> {
 public:
  Command(runtime::Runtime& runtime, ContainerRuntime& containers, CommandTarget target,
          std::shared_ptr<CommandWire> wire)
      : runtime_(runtime),
        containers_(containers),
        target_(std::move(target)),
        wire_(std::move(wire)) {}

  void begin() {
    const auto self = shared_from_this();
    wire_->on_drained([weak = weak_from_this()] {
      const auto alive = weak.lock();
      if (alive == nullptr) return;
      // With the lock, so that nobody is between his look and his wait.
      const MutexLock lock(alive->mutex_);
      alive->room_.notify_all();
    });
    CommandWire::Events events;
    events.ready = [self] { self->runtime_.executor.post([self] { self->launch(); }); };
    events.input = [self](std::string_view bytes) {
      self->push({InputItem::Kind::data, std::string(bytes), {}});
    };
    events.input_closed = [self] { self->push({InputItem::Kind::close, {}, {}}); };
    events.resize = [self](TerminalSize size) { self->push({InputItem::Kind::resize, {}, size}); };
    events.gone = [self] { self->abandon(); };
    wire_->start(std::move(events));
  }

 private:
  void launch() {
    const auto self = shared_from_this();
    ProcessOutput output;
    output.out = [self](std::string_view bytes) { self->emit(bytes, false); };
    output.err = [self](std::string_view bytes) { self->emit(bytes, true); };
    output.ended = [self](Result<int> outcome) { self->ended(outcome); };
    auto process = target_.attach
                       ? containers_.attach(target_.container, std::move(output))
                       : containers_.exec(target_.container, target_.exec, std::move(output));
    if (!process.ok()) return ended(process.error());
    std::shared_ptr<ProcessInput> late;
    {
      const MutexLock lock(mutex_);
      if (over_) {
        late = std::move(*process);
      } else {
        process_ = std::move(*process);
      }
    }
    if (late == nullptr) pump_soon();
  }

  void emit(std::string_view bytes, bool to_err) {
    if (to_err) {
      wire_->err(bytes);
    } else {
      wire_->out(bytes);
    }
    if (wire_->queued() <= kMaxWaiting) return;
    MutexLock lock(mutex_);
    room_.wait(lock,
               [this]() DIBS_REQUIRES(mutex_) { return over_ || wire_->queued() <= kMaxWaiting; });
  }

  void push(InputItem item) {
    {
      const MutexLock lock(mutex_);
      if (over_) return;
      waiting_ += item.data.size();
      input_.push_back(std::move(item));
      if (waiting_ > kMaxWaiting && !std::exchange(held_, true)) wire_->hold(true);
    }
    pump_soon();
  }

  void pump_soon() {
    {
      const MutexLock lock(mutex_);
      if (pumping_ || process_ == nullptr || input_.empty()) return;
      pumping_ = true;
    }
    runtime_.executor.post([self = shared_from_this()] { self->pump(); });
  }

  void pump() {
    while (true) {
      InputItem item;
      std::shared_ptr<ProcessInput> process;
      {
        const MutexLock lock(mutex_);
        if (process_ == nullptr || input_.empty()) {
          pumping_ = false;
          return;
        }
        process = process_;
        item = std::move(input_.front());
        input_.pop_front();
        waiting_ -= item.data.size();
        if (held_ && waiting_ < kMaxWaiting / 2) {
          held_ = false;
          wire_->hold(false);
        }
      }
      switch (item.kind) {
        case InputItem::Kind::data:
          // A process that reads no more still runs to its end.
          (void)process->write(item.data);
          break;
        case InputItem::Kind::close:
          process->close();
          break;
        case InputItem::Kind::resize:
          process->resize(item.size);
          break;
      }
    }
  }

  void ended(const Result<int>& outcome) {
    if (auto process = stop()) {
      // The runtime is still inside a call to this; its object must not go away under it.
      runtime_.executor.post([process = std::move(process)] {});
    }
    wire_->finish(command_status(target_, outcome, wire_->wraps_errors()));
  }

  void abandon() {
    auto process = stop();
    if (process == nullptr) return;
    // A write may be waiting for a process that does not read.
    runtime_.executor.post([process = std::move(process)] { process->abandon(); });
  }

  std::shared_ptr<ProcessInput> stop() {
    std::shared_ptr<ProcessInput> process;
    {
      const MutexLock lock(mutex_);
      over_ = true;
      process = std::move(process_);
      input_.clear();
      waiting_ = 0;
    }
    room_.notify_all();
    return process;
  }

  runtime::Runtime& runtime_;
  ContainerRuntime& containers_;
  CommandTarget target_;
  std::shared_ptr<CommandWire> wire_;
  Mutex mutex_;
  CondVar room_;
  std::shared_ptr<ProcessInput> process_ DIBS_GUARDED_BY(mutex_);
  std::deque<InputItem> input_ DIBS_GUARDED_BY(mutex_);
  std::size_t waiting_ DIBS_GUARDED_BY(mutex_) = 0;
  bool pumping_ DIBS_GUARDED_BY(mutex_) = false;
  bool held_ DIBS_GUARDED_BY(mutex_) = false;
  bool over_ DIBS_GUARDED_BY(mutex_) = false;
};

json::Value internal_error(const std::string& why) {
  return json::Value::object(
      {{"metadata", json::Value::object()},
       {"status", "Failure"},
       {"message", cat("Internal error occurred: ", why)},
       {"reason", "InternalError"},
       {"details",
        json::Value::object(
            {{"causes", json::Value::array({json::Value::object({{"message", why}})})}})},
       {"code", 500}});
}

}  // namespace

json::Value command_status(const CommandTarget& target, const Result<int>& outcome,
                           bool wraps_errors) {
  using json::Value;
  if (!outcome.ok()) {
    std::string why = cat(
        target.attach ? "error attaching to container: " : "error executing command in container: ",
        outcome.error().message());
    if (wraps_errors) why = cat("Internal error occurred: ", why);
    return internal_error(why);
  }
  if (target.attach || *outcome == 0) {
    return Value::object({{"metadata", Value::object()}, {"status", "Success"}});
  }
  Value cause = Value::object({{"reason", "ExitCode"}, {"message", cat(*outcome)}});
  return Value::object(
      {{"metadata", Value::object()},
       {"status", "Failure"},
       {"message", cat("command terminated with non-zero exit code: exit status ", *outcome)},
       {"reason", "NonZeroExitCode"},
       {"details", Value::object({{"causes", Value::array({std::move(cause)})}})}});
}

void run_command(runtime::Runtime& runtime, ContainerRuntime& containers, CommandTarget target,
                 std::shared_ptr<CommandWire> wire) {
  std::make_shared<Command>(runtime, containers, std::move(target), std::move(wire))->begin();
}

}  // namespace dibs::node
