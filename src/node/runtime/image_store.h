#pragma once
// Images of one machine, unpacked and ready to be mounted.
//
//     <folder>/names.json       {"docker.io/library/busybox:1.36": "sha256:<id>", …}
//     <folder>/images/<id>.json {"id", "digest", "config", "layers": ["<layer>", …], "size"}
//     <folder>/layers/<layer>/  one layer, lowest first in the list; deletions in the form
//     overlayfs
//                               wants them
//     <folder>/lock             held by whoever changes something
//
// Several processes may use a folder at once. What is half-done after a crash lies under tmp/ and
// is removed by the next import. Images that come with the program (builtin_image.h) are found like
// those that were imported, but an imported one of the same name counts more.
//
// Thread-safe.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"
#include "node/runtime/container_runtime.h"

namespace dibs::node {

struct StoredImage {
  ImageInfo info = {};
  /// How the image was asked for, in full: docker.io/library/busybox:1.36.
  std::string name = {};
  /// For imageID: repository@digest where that is known, else the id.
  std::string image_id = {};
  json::Value config = {};               // of the OCI image: config, rootfs, …
  std::vector<std::string> layers = {};  // folders, lowest first
};

class ImageStore {
 public:
  /// Folders are made when first needed.
  explicit ImageStore(std::string folder);

  const std::string& folder() const { return folder_; }

  /// By name, id, or name with digest. Errors are those of a malformed name.
  Result<std::optional<StoredImage>> find(const std::string& name);
  /// Sorted by their first name.
  Result<std::vector<StoredImage>> list();
  /// A docker archive, an OCI archive, or the folder of an OCI layout. `name` replaces the names in
  /// it; it is needed where there are none. Returns all that it held.
  Result<std::vector<StoredImage>> import(const std::string& path, const std::string& name = {});
  /// From a registry.
  Result<StoredImage> pull(const std::string& name);
  /// One name, or by id all of them; the last one takes the layers along that nobody else needs. An
  /// image that a container uses is kept, with an error.
  Result<> remove(const std::string& name);

  /// As kept on disk; image_record.h.
  struct Record;

 private:
  Result<json::Value> names();
  Result<std::optional<Record>> record(const std::string& id);
  StoredImage stored(const Record& record, const json::Value& names, const std::string& name);
  Result<std::vector<StoredImage>> import_folder(const std::string& unpacked,
                                                 const std::string& name);
  Result<Record> add(const std::string& digest, const std::string& config_bytes,
                     const std::vector<std::string>& layer_files);
  Result<> unpack_layer(const std::string& file, const std::string& layer);

  const std::string folder_;
  std::atomic<std::uint64_t> builtin_size_{0};
};

/// sha256 of bytes or of a file, as "sha256:<hex>".
std::string digest_of(std::string_view bytes);
Result<std::string> digest_of_file(const std::string& path);

/// As images name it: amd64, arm64, …
std::string_view machine_architecture();

/// Puts deletion marks of image layers (.wh.NAME, .wh..wh..opq) into the form of overlayfs.
Result<> convert_whiteouts(const std::string& layer);

}  // namespace dibs::node
