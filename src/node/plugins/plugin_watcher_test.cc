#include "node/plugins/plugin_watcher.h"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/mutex.h"
#include "base/strings.h"
#include "runtime/real_runtime.h"

namespace dibs::node {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

class FolderWatch : public testing::Test {
 protected:
  FolderWatch() {
    char name[] = "/tmp/watchXXXXXX";
    folder = mkdtemp(name);
  }
  ~FolderWatch() override {
    if (watcher) watcher->stop();
    std::filesystem::remove_all(folder);
  }

  void start() {
    watcher = watch_folder(folder + "/registry", runtime.runtime());
    PluginWatcher::Handlers handlers;
    handlers.appeared = [this](const std::string& path) { note(cat("+", path)); };
    handlers.gone = [this](const std::string& path) { note(cat("-", path)); };
    ASSERT_TRUE(watcher->start(std::move(handlers)).ok());
  }
  void note(const std::string& line) {
    const MutexLock lock(mutex);
    seen.push_back(std::string(1, line[0]) + line.substr(folder.size() + 11));
    changed.notify_all();
  }
  std::vector<std::string> wait_for(std::size_t n) {
    MutexLock lock(mutex);
    changed.wait_for(lock, 10s, [&] { return seen.size() >= n; });
    return seen;
  }
  void make_socket(const std::string& name) {
    const std::string path = folder + "/registry/" + name;
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ::close(fd);
  }
  void remove(const std::string& name) {
    std::filesystem::remove_all(folder + "/registry/" + name);
  }

  std::string folder;
  runtime::RealRuntime runtime;
  Mutex mutex;
  CondVar changed;
  std::vector<std::string> seen;
  std::unique_ptr<PluginWatcher> watcher;
};

TEST_F(FolderWatch, tells_what_is_there_what_comes_and_what_goes) {
  std::filesystem::create_directories(folder + "/registry/deep");
  make_socket("deep/a.sock");
  start();
  wait_for(1);
  make_socket("b.sock");
  wait_for(2);
  remove("deep/a.sock");

  EXPECT_THAT(wait_for(3), ElementsAre("+deep/a.sock", "+b.sock", "-deep/a.sock"));
}

TEST_F(FolderWatch, folders_that_come_later_are_watched_too) {
  start();
  std::filesystem::create_directories(folder + "/registry/new/er");
  make_socket("new/er/a.sock");
  wait_for(1);
  remove("new");

  EXPECT_THAT(wait_for(2), ElementsAre("+new/er/a.sock", "-new/er/a.sock"));
}

TEST_F(FolderWatch, a_socket_made_again_is_a_new_one) {
  start();
  make_socket("a.sock");
  wait_for(1);
  remove("a.sock");
  make_socket("a.sock");

  const auto lines = wait_for(2);
  EXPECT_EQ(lines.back(), lines.size() == 2 && lines[1][0] == '-' ? "-a.sock" : "+a.sock");
  if (lines[1][0] == '-') {
    EXPECT_EQ(wait_for(3).back(), "+a.sock");
  }
}

TEST_F(FolderWatch, hidden_names_and_plain_files_are_passed_over) {
  start();
  make_socket(".hidden");
  std::ofstream(folder + "/registry/plain") << "x";
  make_socket("z.sock");

  EXPECT_THAT(wait_for(1), ElementsAre("+z.sock"));
}

}  // namespace
}  // namespace dibs::node
