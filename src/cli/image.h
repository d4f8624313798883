#pragma once
// `dibs image`: the images that this machine's containers can run.

#include <string>
#include <vector>

namespace dibs::cli {

struct ImageFlags {
  std::string folder = {};              // "": the machine's own
  std::string file = {};                // to import
  std::string name = {};                // of what is imported; "": the names in it
  std::vector<std::string> names = {};  // to remove
};

int import_image(const ImageFlags& flags);
int list_images(const ImageFlags& flags);
int remove_images(const ImageFlags& flags);

}  // namespace dibs::cli
