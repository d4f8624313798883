#pragma once
// `dibs image`: the images that this machine's containers can run.

#include <string>
#include <vector>

namespace dibs::cli {

struct ImageFlags {
  std::string folder = {};              // "": the machine's own
  std::string file = {};                // to load; "-": standard input
  std::string name = {};                // of what is loaded; "": the names in it
  std::vector<std::string> names = {};  // to pull, to remove
  std::vector<std::string> insecure_registries = {};
  std::string logins = {};  // file
};

int load_image(const ImageFlags& flags);
int pull_images(const ImageFlags& flags);
int list_images(const ImageFlags& flags);
int remove_images(const ImageFlags& flags);

}  // namespace dibs::cli
