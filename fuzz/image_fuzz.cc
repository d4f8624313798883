// Any manifest, configuration and layer as an image: nothing is written outside of the store, an
// image is taken whole or not at all, and nothing of it is left once it is removed.
#include <sys/xattr.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/strings.h"
#include "fuzz/pieces.h"
#include "fuzz/targets.h"
#include "node/runtime/image_store.h"

namespace dibs::fuzz {
namespace {

namespace fs = std::filesystem;
using node::digest_of;
using node::ImageStore;

/// For the whole process: <root>/outside must stay as it is, <root>/in and <root>/store are new
/// for every input.
class Place {
 public:
  Place() {
    std::string pattern = (fs::temp_directory_path() / "image_fuzz.XXXXXX").string();
    root = ::mkdtemp(pattern.data());
    fs::create_directories(root + "/outside");
    write("/outside/keep", "kept");
  }
  ~Place() {
    std::error_code failed;
    fs::remove_all(root, failed);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  void write(const std::string& path, std::string_view bytes) const {
    std::ofstream(root + path, std::ios::binary) << bytes;
  }
  void clear() const {
    std::error_code failed;
    for (const char* folder : {"/in", "/store"}) fs::remove_all(root + folder, failed);
    fs::create_directories(root + "/in/blobs/sha256");
  }
  std::set<std::string> names(const std::string& folder) const {
    std::set<std::string> out;
    std::error_code failed;
    for (const auto& entry : fs::directory_iterator(root + folder, failed)) {
      out.insert(entry.path().filename().string());
    }
    return out;
  }
  bool is_untouched() const {
    std::ifstream file(root + "/outside/keep", std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    return text == "kept" && names("/outside").size() == 1 &&
           fs::hard_link_count(root + "/outside/keep") == 1;
  }

  std::string root;
};

std::string replaced(std::string_view text, std::string_view mark, std::string_view by) {
  std::string out;
  for (std::size_t at = text.find(mark); at != std::string_view::npos; at = text.find(mark)) {
    append(out, text.substr(0, at), by);
    text.remove_prefix(at + mark.size());
  }
  return cat(out, text);
}

/// An archive whose headers have the sums that they should have, which chance would not find.
std::string with_sums(std::string_view archive) {
  constexpr std::size_t kBlock = 512, kSum = 148, kSumSize = 8, kMagic = 257;
  std::string out(archive);
  for (std::size_t at = 0; at + kBlock <= out.size(); at += kBlock) {
    if (out.compare(at + kMagic, 5, "ustar") != 0) continue;
    std::memset(out.data() + at + kSum, ' ', kSumSize);
    unsigned sum = 0;
    for (std::size_t i = 0; i < kBlock; ++i) sum += static_cast<unsigned char>(out[at + i]);
    char text[kSumSize + 1];
    std::snprintf(text, sizeof text, "%06o", sum & 0777777U);
    std::memcpy(out.data() + at + kSum, text, 7);
  }
  return out;
}

/// Marks of the overlay may only be ours: folders that hide, which have no other value.
void check_layer(const fs::path& layer) {
  std::error_code failed;
  for (const auto& entry : fs::recursive_directory_iterator(layer, failed)) {
    require(!entry.path().filename().string().starts_with(".wh."), "no deletion mark is left");
    char list[1024];
    const ssize_t got = ::llistxattr(entry.path().c_str(), list, sizeof list);
    for (ssize_t at = 0; at < got; at += static_cast<ssize_t>(std::strlen(list + at)) + 1) {
      const std::string_view name = list + at;
      require(!name.starts_with("trusted.overlay.") || name == "trusted.overlay.opaque",
              "a layer does not steer the overlay");
    }
  }
}

}  // namespace

int fuzz_image(const std::uint8_t* data, std::size_t size) {
  static const Place place;
  Texts texts(data, size);
  const bool docker = (texts.byte() & 1) != 0;
  const std::string_view index = texts.next();
  const std::string_view manifest = texts.next();
  const std::string_view config = texts.next();
  const std::string layer = with_sums(texts.rest());

  place.clear();
  const auto blob = [&](const std::string& bytes) {
    const std::string digest = digest_of(bytes);
    place.write("/in/blobs/sha256/" + digest.substr(7), bytes);
    return digest;
  };
  // What depends on the bytes of another file is written as $L, $C, $M: their digests.
  const std::string layer_digest = blob(layer);
  const std::string config_bytes = replaced(config, "$L", layer_digest);
  const std::string config_digest = blob(config_bytes);
  const std::string manifest_digest =
      blob(replaced(replaced(manifest, "$L", layer_digest), "$C", config_digest));
  const std::string top = replaced(
      replaced(replaced(index, "$L", layer_digest.substr(7)), "$C", config_digest.substr(7)), "$M",
      manifest_digest);
  place.write(docker ? "/in/manifest.json" : "/in/index.json", top);

  ImageStore store(place.root + "/store");
  const auto images = store.import(place.root + "/in");
  require(place.is_untouched(), "nothing is written outside");
  require(place.names("") == std::set<std::string>{"in", "outside", "store"}, "nor beside");
  require(place.names("/store/tmp").empty(), "nothing is left half-done");
  for (const auto& name : place.names("/store/layers")) {
    require("sha256:" + name == layer_digest, "a layer is what its name says");
    check_layer(place.root + "/store/layers/" + name);
  }
  if (!images.ok()) {
    require(!fs::exists(place.root + "/store/names.json"), "a refused image has no name");
    return 0;
  }
  for (const auto& image : *images) {
    const auto found = store.find(image.name);
    require(found.ok() && *found && (*found)->info.id == image.info.id, "an image is found");
  }
  for (const auto& image : *images) {
    require(store.remove(image.info.id).ok(), "an image goes when it is told to");
  }
  require(place.names("/store/layers").empty() && place.names("/store/images").empty(),
          "and takes all of it along");
  return 0;
}

}  // namespace dibs::fuzz

DIBS_FUZZ_ENTRY(dibs::fuzz::fuzz_image)
