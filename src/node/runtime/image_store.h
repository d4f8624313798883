#pragma once
// Images of one machine, unpacked and ready to be mounted.
//
//     <folder>/names.json       {"docker.io/library/busybox:1.36": "sha256:<id>", …}
//     <folder>/images/<id>.json {"id", "digest", "config", "layers": ["<layer>", …], "size"}
//     <folder>/layers/<layer>/  one layer by the digest of its archive, lowest first in the list;
//                               deletions in the form overlayfs wants them
//     <folder>/lock             held by whoever changes something
//     <folder>/pulls/           what is on its way from a registry
//
// Several processes may use a folder at once. What is half-done after a crash lies under tmp/ and
// is removed by the next import. Nothing gets the name of a digest that it was not checked against.
// The image that comes with the program (builtin_image.h) is found under the names that the options
// give it; an imported one of the same name counts more.
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
#include "node/runtime/builtin_image.h"
#include "node/runtime/container_runtime.h"

namespace dibs::node {

enum class ImageOrigin : std::uint8_t { archive, registry, builtin };
std::string_view name_of(ImageOrigin origin);

struct ImageStoreOptions {
  /// Names under which the built-in image is there (builtin_aliases()).
  std::vector<BuiltinName> aliases = {};
  /// HOST:PORT of registries that are asked without TLS, or without a certificate to be believed.
  std::vector<std::string> insecure_registries = {};
};

struct StoredImage {
  ImageInfo info = {};
  /// How the image was asked for, in full: docker.io/library/busybox:1.36.
  std::string name = {};
  /// For imageID: repository@digest where that is known, else the id; of the built-in image
  /// kBuiltinRepository@id.
  std::string image_id = {};
  ImageOrigin origin = ImageOrigin::archive;
  json::Value config = {};               // of the OCI image: config, rootfs, …
  std::vector<std::string> layers = {};  // folders, lowest first
};

class ImageStore {
 public:
  /// Folders are made when first needed.
  explicit ImageStore(std::string folder, ImageStoreOptions options = {});

  const std::string& folder() const { return folder_; }

  /// By name, id, or name with digest. Errors are those of a malformed name.
  Result<std::optional<StoredImage>> find(const std::string& name);
  /// Sorted by their first name; one whose name was given to another has none.
  Result<std::vector<StoredImage>> list();
  /// The built-in image for a name whose registry cannot be reached; nothing where it does not know
  /// the name, or an image of that name is there.
  Result<std::optional<StoredImage>> stand_in(const std::string& name);
  /// A docker archive, an OCI archive, or the folder of an OCI layout. `name` replaces the names in
  /// it; it is needed where there are none. Returns all that it held.
  Result<std::vector<StoredImage>> import(const std::string& path, const std::string& name = {});
  /// From its registry, whatever is there already. Of several that pull one image at a time, in
  /// this or another process, one does the work and all have its outcome. An error of kind
  /// unavailable: no registry answered.
  Result<StoredImage> pull(const std::string& name, const PullLogin& login = {});
  /// One name, or by id all of them; the last one takes the layers along that nobody else needs. An
  /// image that a container uses is kept, with an error.
  Result<> remove(const std::string& name);

  /// As kept on disk; image_record.h.
  struct Record;

 private:
  Result<json::Value> names();
  Result<std::optional<Record>> record(const std::string& id);
  /// Of all images, those too whose name was given to another.
  Result<std::vector<Record>> records();
  StoredImage stored(const Record& record, const json::Value& names, const std::string& name);
  StoredImage builtin(const Record& record, const std::string& name);
  /// Where an image comes from, and the digest of the login that it was given to.
  struct Source {
    ImageOrigin origin = ImageOrigin::archive;
    std::string login = {};
  };
  Result<std::vector<StoredImage>> import(const std::string& path, const std::string& name,
                                          const Source& source);
  Result<std::vector<StoredImage>> import_folder(const std::string& unpacked,
                                                 const std::string& name, const Source& source);
  Result<Record> add(const std::string& digest, const std::string& config_bytes,
                     const std::vector<std::string>& layer_files, const Source& source);
  Result<> unpack_layer(const std::string& file, const std::string& diff_id);
  Result<StoredImage> fetch(const std::string& name, const std::string& place,
                            const PullLogin& login);
  Result<std::vector<Record>> builtin_records(const std::vector<BuiltinName>& names);

  const std::string folder_;
  const ImageStoreOptions options_;
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
