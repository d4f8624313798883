#include "drivers/nvidia/fake/testing/fake_machine.h"

#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "base/strings.h"
#include "drivers/nvidia/fake/files.h"

namespace dibs::drivers::nvidia::fake {
namespace {

template <typename T>
T must(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message());
  return std::move(*result);
}

std::string described_in(std::string_view name) {
  return must(read_file(cat(DIBS_FAKE_NVML_MACHINES, "/", name, ".yaml")));
}

}  // namespace

FakeMachine::FakeMachine(std::string_view name) : FakeMachine(described_in(name), 0) {}

FakeMachine::FakeMachine(std::string_view yaml, int /*unused*/) {
  std::string folder = (std::filesystem::temp_directory_path() / "fake-nvml-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("no temporary folder");
  folder_ = folder;
  must(write_file(path(), yaml));
  setenv("DIBS_FAKE_NVML", path().c_str(), 1);
}

FakeMachine::~FakeMachine() {
  unsetenv("DIBS_FAKE_NVML");
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string FakeMachine::library() { return DIBS_FAKE_NVML_LIBRARY; }
std::string FakeMachine::tool() { return DIBS_FAKE_NVML_TOOL; }

void FakeMachine::faults(std::string_view yaml) const {
  must(write_file(path() + ".faults", yaml));
}

std::string FakeMachine::run(std::string_view command, std::string_view arguments) const {
  const std::string line = cat(tool(), " ", command, " ", path(), " ", arguments, " 2>&1");
  FILE* pipe = popen(line.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error(line);
  std::string out;
  char buffer[1024];
  for (std::size_t got = 0; (got = fread(buffer, 1, sizeof buffer, pipe)) > 0;) {
    out.append(buffer, got);
  }
  if (pclose(pipe) != 0) throw std::runtime_error(cat(line, ": ", out));
  return out;
}

std::string FakeMachine::lay_out() const {
  const std::string root = folder_ + "/root";
  run("layout", cat(root, " ", library()));
  return root;
}

}  // namespace dibs::drivers::nvidia::fake
