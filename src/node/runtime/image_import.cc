// Archives and layouts into the image store.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/image_reference.h"
#include "base/strings.h"
#include "json/parse.h"
#include "node/runtime/image_record.h"
#include "runtime/files.h"

namespace dibs::node {
namespace {

namespace fs = std::filesystem;
using json::Value;

Result<Value> read_json(const std::string& path) {
  DIBS_TRY(const std::string bytes, runtime::system_files().read(path));
  auto value = json::parse(bytes);
  if (!value.ok()) return value.error().within(path);
  return value;
}

// Below `folder`, whatever the archive says.
Result<std::string> inside(const std::string& folder, const std::string& name) {
  for (const auto part : split(name, '/')) {
    if (part == ".." || name.starts_with('/')) {
      return Error::invalid(cat("the archive names a file outside of it: ", dibs::quoted(name)));
    }
  }
  return cat(folder, '/', name);
}

Result<std::string> blob(const std::string& layout, const Value& descriptor) {
  const std::string digest = descriptor["digest"].str();
  if (!is_digest(digest)) {
    return Error::invalid(cat("unsupported digest ", dibs::quoted(digest), " in the layout"));
  }
  const std::string path = cat(layout, "/blobs/sha256/", digest.substr(7));
  DIBS_TRY(const std::string found, digest_of_file(path));
  if (found != digest) {
    return Error::invalid(cat("blob ", digest, " is damaged: its digest is ", found));
  }
  return path;
}

// An image of this machine's platform in an index, which may be nested; names on the way count.
struct Manifest {
  std::string digest;
  Value content;
  std::vector<std::string> names;
};

Result<> collect_manifests(const std::string& layout, const Value& index,
                           const std::vector<std::string>& names, std::vector<Manifest>& out,
                           int depth) {
  if (depth > 4) return Error::invalid("the layout's indexes are nested too deep");
  for (const auto& descriptor : index["manifests"].items()) {
    const Value& platform = descriptor["platform"];
    if (!platform.is_null() && (platform["os"].as_string() != "linux" ||
                                platform["architecture"].as_string() != machine_architecture())) {
      continue;
    }
    std::vector<std::string> here = names;
    const Value& annotations = descriptor["annotations"];
    for (const char* key : {"io.containerd.image.name", "org.opencontainers.image.ref.name"}) {
      // A bare tag says nothing of the repository.
      const std::string name = annotations[key].str();
      if (name.find_first_of(":/") != std::string::npos && here.empty()) here.push_back(name);
    }
    DIBS_TRY(const std::string path, blob(layout, descriptor));
    DIBS_TRY(const Value content, read_json(path));
    if (content.contains("manifests")) {
      DIBS_CHECK(collect_manifests(layout, content, here, out, depth + 1));
    } else if (content.contains("layers") &&
               content["config"]["mediaType"].as_string().find("image.config") ==
                   std::string_view::npos &&
               content["config"]["mediaType"].as_string().find("container.image") ==
                   std::string_view::npos) {
      continue;  // an attestation or another artifact
    } else {
      out.push_back({descriptor["digest"].str(), content, here});
    }
  }
  return success();
}

std::string system_message(std::string_view what, const std::string& path) {
  return cat(what, " ", path, ": ", std::strerror(errno));
}

class Temporary {
 public:
  explicit Temporary(std::string path) : path_(std::move(path)) {
    std::error_code failed;
    fs::remove_all(path_, failed);
    fs::create_directories(path_, failed);
  }
  ~Temporary() {
    std::error_code failed;
    fs::remove_all(path_, failed);
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

Result<runtime::Fd> wait_for_lock(const std::string& path) {
  runtime::Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd.ok()) return Error::internal(system_message("open", path));
  while (::flock(fd.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return Error::internal(system_message("lock", path));
  }
  return fd;
}

Result<> convert_whiteouts(const std::string& layer) {
  std::vector<fs::path> marks;
  std::error_code failed;
  for (fs::recursive_directory_iterator at(layer, failed), end; at != end; at.increment(failed)) {
    if (failed) return Error::internal(cat("read ", layer, ": ", failed.message()));
    if (at->path().filename().string().starts_with(".wh.")) marks.push_back(at->path());
  }
  for (const auto& mark : marks) {
    const std::string name = mark.filename().string();
    fs::remove_all(mark, failed);
    if (name == ".wh..wh..opq") {
      if (::setxattr(mark.parent_path().c_str(), "trusted.overlay.opaque", "y", 1, 0) != 0) {
        return Error::internal(system_message("mark", mark.parent_path()));
      }
      continue;
    }
    if (name.starts_with(".wh..wh.")) continue;  // bookkeeping of another storage driver
    const fs::path deleted = mark.parent_path() / name.substr(4);
    fs::remove_all(deleted, failed);
    if (::mknod(deleted.c_str(), S_IFCHR, makedev(0, 0)) != 0) {
      return Error::internal(system_message("mark", deleted));
    }
  }
  return success();
}

Result<> ImageStore::unpack_layer(const std::string& file, const std::string& layer) {
  const std::string target = cat(folder_, "/layers/", layer);
  if (fs::exists(target)) return success();
  const Temporary aside(cat(folder_, "/tmp/layer-", layer));
  ::chmod(aside.path().c_str(), 0755);
  auto unpacked = runtime::run_checked(
      {.argv = {"tar", "--extract", "--file", file, "--directory", aside.path(), "--numeric-owner",
                "--preserve-permissions", "--xattrs", "--xattrs-include=*",
                "--delay-directory-restore"}});
  if (!unpacked.ok()) return unpacked.error().within("unpack a layer");
  DIBS_CHECK(convert_whiteouts(aside.path()));
  std::error_code failed;
  fs::create_directories(folder_ + "/layers", failed);
  fs::rename(aside.path(), target, failed);
  if (failed) return Error::internal(cat("move a layer to ", target, ": ", failed.message()));
  return success();
}

Result<ImageStore::Record> ImageStore::add(const std::string& digest,
                                           const std::string& config_bytes,
                                           const std::vector<std::string>& layer_files) {
  Record record;
  record.id = digest_of(config_bytes);
  record.digest = digest;
  DIBS_TRY(record.config, json::parse(config_bytes));
  // By the digest of what is packed, so that one layer is there once however it came.
  const Value& contents = record.config["rootfs"]["diff_ids"];
  for (std::size_t i = 0; i < layer_files.size(); ++i) {
    const std::string& file = layer_files[i];
    std::string layer_digest = contents[i].str();
    if (contents.size() != layer_files.size() || !is_digest(layer_digest)) {
      DIBS_TRY(layer_digest, digest_of_file(file));
    }
    const std::string layer = layer_digest.substr(7);
    DIBS_CHECK(unpack_layer(file, layer));
    record.layers.push_back(layer);
    record.size += folder_size(cat(folder_, "/layers/", layer));
  }
  DIBS_CHECK(runtime::system_files().make_dirs(folder_ + "/images", 0755));
  DIBS_CHECK(runtime::system_files().write(cat(folder_, "/images/", record.id.substr(7), ".json"),
                                           json::write(record.to_value()), 0644));
  return record;
}

Result<std::vector<StoredImage>> ImageStore::import_folder(const std::string& unpacked,
                                                           const std::string& name) {
  struct Added {
    Record record;
    std::vector<std::string> names;
  };
  const Error nameless = Error::invalid(
      "the archive does not name its image: give a name, as in dibs image import FILE NAME");
  std::vector<Added> added;
  if (fs::exists(unpacked + "/manifest.json")) {
    DIBS_TRY(const Value manifests, read_json(unpacked + "/manifest.json"));
    for (const auto& manifest : manifests.items()) {
      DIBS_TRY(const std::string config, inside(unpacked, manifest["Config"].str()));
      DIBS_TRY(const std::string bytes, runtime::system_files().read(config));
      std::vector<std::string> layers;
      for (const auto& layer : manifest["Layers"].items()) {
        DIBS_TRY(layers.emplace_back(), inside(unpacked, layer.str()));
      }
      std::vector<std::string> names_in;
      for (const auto& tag : manifest["RepoTags"].items()) names_in.push_back(tag.str());
      if (names_in.empty() && name.empty()) return nameless;
      DIBS_TRY(Record record, add("", bytes, layers));
      added.push_back({std::move(record), std::move(names_in)});
    }
  } else if (fs::exists(unpacked + "/index.json")) {
    DIBS_TRY(const Value index, read_json(unpacked + "/index.json"));
    std::vector<Manifest> manifests;
    DIBS_CHECK(collect_manifests(unpacked, index, {}, manifests, 0));
    for (const auto& manifest : manifests) {
      if (manifest.names.empty() && name.empty()) return nameless;
      DIBS_TRY(const std::string config, blob(unpacked, manifest.content["config"]));
      DIBS_TRY(const std::string bytes, runtime::system_files().read(config));
      std::vector<std::string> layers;
      for (const auto& layer : manifest.content["layers"].items()) {
        DIBS_TRY(layers.emplace_back(), blob(unpacked, layer));
      }
      DIBS_TRY(Record record, add(manifest.digest, bytes, layers));
      added.push_back({std::move(record), manifest.names});
    }
  } else {
    return Error::invalid(
        "neither a docker archive (manifest.json) nor an OCI layout (index.json)");
  }
  if (added.empty()) {
    return Error::invalid(cat("no image for linux/", machine_architecture(), " in it"));
  }
  if (!name.empty() && added.size() > 1) {
    return Error::invalid(cat("it holds ", added.size(), " images: one name is not enough"));
  }
  DIBS_TRY(Value known, names());
  std::vector<std::pair<const Record*, std::string>> named;
  for (const auto& image : added) {
    const std::vector<std::string> wanted =
        name.empty() ? image.names : std::vector<std::string>{name};
    for (const auto& one : wanted) {
      auto reference = parse_image_reference(one);
      if (!reference.ok()) return reference.error().within(cat("image name ", dibs::quoted(one)));
      known.set(reference->text(), image.record.id);
      named.emplace_back(&image.record, reference->text());
    }
  }
  DIBS_CHECK(
      runtime::system_files().write(folder_ + "/names.json", json::write_pretty(known), 0644));
  std::vector<StoredImage> images;
  for (const auto& [record, text] : named) images.push_back(stored(*record, known, text));
  return images;
}

Result<std::vector<StoredImage>> ImageStore::import(const std::string& path,
                                                    const std::string& name) {
  DIBS_CHECK(runtime::system_files().make_dirs(folder_, 0755));
  DIBS_TRY(const auto lock, wait_for_lock(folder_ + "/lock"));
  std::error_code failed;
  fs::remove_all(folder_ + "/tmp", failed);
  if (!fs::exists(path, failed)) return Error::not_found(cat("no such file: ", path));
  if (fs::is_directory(path, failed)) return import_folder(path, name);
  const Temporary unpacked(folder_ + "/tmp/archive");
  auto extracted = runtime::run_checked({.argv = {"tar", "--extract", "--file", path, "--directory",
                                                  unpacked.path(), "--no-same-owner"}});
  if (!extracted.ok()) return extracted.error().within(cat("unpack ", path));
  return import_folder(unpacked.path(), name);
}

Result<StoredImage> ImageStore::pull(const std::string& name) {
  DIBS_TRY(const ImageReference reference, parse_image_reference(name));
  const std::string full = reference.text();
  // What stands before "failed to do request" is how other runtimes say it.
  const auto failure = [&](std::string_view cause) {
    return Error::unavailable(cat("failed to pull and unpack image ", dibs::quoted(full),
                                  ": failed to resolve image: failed to do request: ", cause,
                                  "; without a registry, import it: dibs image import FILE ",
                                  name));
  };
  if (runtime::find_program("skopeo").empty()) return failure("skopeo is not installed");
  DIBS_CHECK(runtime::system_files().make_dirs(folder_ + "/pulls", 0755));
  const Temporary target(cat(folder_, "/pulls/", digest_of(full).substr(7, 16)));
  // A tag beside a digest says nothing more, and skopeo refuses both.
  const std::string source =
      reference.digest.empty() ? full : cat(reference.repository, "@", reference.digest);
  auto copied = runtime::run(
      {.argv = {"skopeo", "--insecure-policy", "--command-timeout", "10m", "copy", "--quiet",
                "docker://" + source, cat("oci:", target.path(), ":pulled")}});
  if (!copied.ok()) return failure(copied.error().message());
  if (copied->status.code != 0) {
    std::string_view cause = trim(copied->err);
    if (const auto at = cause.find("msg=\""); at != std::string_view::npos) {
      cause.remove_prefix(at + 5);
      if (cause.ends_with('"')) cause.remove_suffix(1);
    }
    return failure(cause);
  }
  DIBS_TRY(auto images, import(target.path(), full));
  return std::move(images.front());
}

}  // namespace dibs::node
