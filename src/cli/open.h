#pragma once
// dibs open: a link that lets a browser on this machine into the server's page, once
// (docs/page.md).

#include <string>

namespace dibs::cli {

struct OpenFlags {
  std::string kubeconfig;
  std::string context;
};

/// Prints the link; returns the exit status.
int open_page(const OpenFlags& flags);

}  // namespace dibs::cli
