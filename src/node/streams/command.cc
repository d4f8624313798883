#include "node/streams/command.h"

#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/strings.h"

namespace dibs::node {
namespace {

// Bytes of input that wait for the process, and of output that wait for the client.
constexpr std::size_t kMaxWaiting = 1024 * 1024;

class Command : public std::enable_shared_from_this<Command> {
 public:
  Command(StreamHost host, CommandTarget target, std::shared_ptr<CommandWire> wire)
      : host_(std::move(host)), target_(std::move(target)), wire_(std::move(wire)) {}

  void begin() {
    const auto self = shared_from_this();
    wire_->on_drained([weak = weak_from_this()] {
      if (const auto alive = weak.lock()) alive->output_taken();
    });
    CommandWire::Events events;
    events.ready = [self] { self->host_.runtime.executor.post([self] { self->launch(); }); };
    events.input = [self](std::string_view bytes) {
      self->give([text = std::string(bytes)](ProcessInput& process) { process.write(text); },
                 bytes.size());
    };
    events.input_closed = [self] { self->give([](ProcessInput& process) { process.close(); }); };
    events.resize = [self](TerminalSize size) {
      self->give([size](ProcessInput& process) { process.resize(size); });
    };
    events.gone = [self] { self->abandon(); };
    wire_->start(std::move(events));
  }

 private:
  using Gift = std::function<void(ProcessInput&)>;

  void launch() {
    const client::GateEntry inside(*host_.gate);
    if (!inside) return abandon();
    const auto self = shared_from_this();
    ProcessOutput output;
    output.out = [self](std::string_view bytes) { self->emit(bytes, false); };
    output.err = [self](std::string_view bytes) { self->emit(bytes, true); };
    output.ended = [self](Result<int> outcome) { self->ended(outcome); };
    output.drained = [self] { self->input_taken(); };
    auto process = target_.attach
                       ? host_.containers.attach(target_.container, std::move(output))
                       : host_.containers.exec(target_.container, target_.exec, std::move(output));
    if (!process.ok()) return ended(process.error());
    const MutexLock lock(mutex_);
    if (over_) return;  // with it the process goes
    process_ = std::move(*process);
    for (const Gift& gift : early_) gift(*process_);
    early_.clear();
    waiting_ = 0;
    if (output_held_) process_->hold(true);
    hold_input();
  }

  void emit(std::string_view bytes, bool to_err) {
    if (to_err) {
      wire_->err(bytes);
    } else {
      wire_->out(bytes);
    }
    const MutexLock lock(mutex_);
    if (output_held_ || wire_->queued() <= kMaxWaiting) return;
    output_held_ = true;
    if (process_) process_->hold(true);
  }

  void output_taken() {
    const MutexLock lock(mutex_);
    if (!std::exchange(output_held_, false)) return;
    if (process_) process_->hold(false);
  }

  /// What comes before the process is there waits for it.
  void give(Gift gift, std::size_t bytes = 0) {
    const MutexLock lock(mutex_);
    if (over_) return;
    if (process_) {
      gift(*process_);
    } else {
      early_.push_back(std::move(gift));
      waiting_ += bytes;
    }
    hold_input();
  }

  void input_taken() {
    const MutexLock lock(mutex_);
    hold_input();
  }

  void hold_input() DIBS_REQUIRES(mutex_) {
    const bool full = (process_ ? process_->queued() : waiting_) > kMaxWaiting;
    if (full != std::exchange(input_held_, full)) wire_->hold(full);
  }

  void ended(const Result<int>& outcome) {
    if (auto process = stop()) {
      // The runtime is still inside a call to this; its object must not go away under it.
      host_.runtime.executor.post([process = std::move(process)] {});
    }
    wire_->finish(command_status(target_, outcome, wire_->wraps_errors()));
  }

  void abandon() {
    if (const auto process = stop()) process->abandon();
  }

  std::shared_ptr<ProcessInput> stop() {
    const MutexLock lock(mutex_);
    over_ = true;
    early_.clear();
    return std::move(process_);
  }

  StreamHost host_;
  CommandTarget target_;
  std::shared_ptr<CommandWire> wire_;
  Mutex mutex_;
  std::shared_ptr<ProcessInput> process_ DIBS_GUARDED_BY(mutex_);
  std::vector<Gift> early_ DIBS_GUARDED_BY(mutex_);
  std::size_t waiting_ DIBS_GUARDED_BY(mutex_) = 0;  // bytes of `early_`
  bool input_held_ DIBS_GUARDED_BY(mutex_) = false;
  bool output_held_ DIBS_GUARDED_BY(mutex_) = false;
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

void run_command(const StreamHost& host, CommandTarget target, std::shared_ptr<CommandWire> wire) {
  std::make_shared<Command>(host, std::move(target), std::move(wire))->begin();
}

}  // namespace dibs::node
