#pragma once
// A network that is a test's alone: what is made there goes with it, and the machine's is not
// touched. Needs root.

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <thread>

#include "base/strings.h"
#include "runtime/processes.h"

namespace dibs::net {

/// Runs it in a thread with a network of its own. "": it ran; else why not. `missing`: what the
/// machine lacks for it, "" for nothing.
inline std::string in_own_network(const std::string& missing, const std::function<void()>& what) {
  if (::geteuid() != 0) return "not root";
  if (!missing.empty()) return missing;
  std::string skipped;
  std::thread([&] {
    if (::unshare(CLONE_NEWNET) != 0) {
      skipped = "no network namespaces";
    } else {
      what();
    }
  }).join();
  return skipped;
}

inline std::string missing_ip() { return runtime::find_program("ip").empty() ? "no ip" : ""; }

/// Runs `ip` with arguments as a shell reads them, in the network of the thread; what it prints.
inline std::string ip(const std::string& arguments) {
  const auto done = runtime::run({.argv = {"sh", "-c", cat("ip ", arguments)}});
  EXPECT_TRUE(done.ok());
  if (!done.ok()) return {};
  EXPECT_EQ(done->status.code, 0) << arguments << ": " << done->err;
  return done->out;
}

}  // namespace dibs::net
