#include "trial/program.h"

#include <signal.h>

#include <filesystem>

#include "base/strings.h"
#include "runtime/files.h"

namespace dibs::trial {
namespace {

constexpr std::size_t kLines = 20;

}  // namespace

Program::Program(std::vector<std::string> argv, std::vector<std::string> environment,
                 std::string output)
    : argv_(std::move(argv)), environment_(std::move(environment)), output_(std::move(output)) {}

Program::~Program() { kill(); }

Result<> Program::start() {
  ended_.reset();
  runtime::ProcessOptions options;
  options.argv = {"/bin/sh", "-c", "exec \"$@\" >>\"$0\" 2>&1", output_};
  options.argv.insert(options.argv.end(), argv_.begin(), argv_.end());
  options.env = environment_;
  options.new_session = true;
  DIBS_TRY(process_, runtime::Process::start(options));
  return success();
}

bool Program::is_running(Duration patience) {
  if (!process_) return false;
  if (const auto status = process_->wait(patience)) {
    ended_ = status;
    kill();
  }
  return process_ != nullptr;
}

void Program::kill() {
  if (!process_) return;
  ::kill(-process_->pid(), SIGKILL);
  const auto status = process_->wait();
  if (!ended_) ended_ = status;
  process_.reset();
}

std::optional<runtime::ExitStatus> Program::end(Duration timeout) {
  if (!process_) return ended_;
  process_->kill(SIGTERM);
  const auto status = process_->wait(timeout);
  if (!status) return {};
  ended_ = status;
  kill();
  return status;
}

std::size_t Program::written() const {
  std::error_code failed;
  const auto size = std::filesystem::file_size(output_, failed);
  return failed ? 0 : size;
}

std::string Program::last_lines(std::size_t from) const {
  const auto read = runtime::system_files().read(output_);
  if (!read || read->size() <= from) return "";
  const std::string_view text = std::string_view(*read).substr(from);
  std::size_t begin = text.size();
  for (std::size_t lines = 0; begin > 0; --begin) {
    if (text[begin - 1] == '\n' && begin != text.size() && ++lines == kLines) break;
  }
  return std::string(text.substr(begin));
}

std::string text_of(const runtime::ExitStatus& status) {
  return status.signal != 0 ? cat("signal ", status.signal) : cat("status ", status.code);
}

}  // namespace dibs::trial
