// Archives and layouts into the image store.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
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

/// Of manifests, indexes and configurations, as other runtimes have it; and how many of them one
/// layout may lead to, since an index that names another a hundred times multiplies.
constexpr std::uintmax_t kMaxDescription = 8 << 20;
constexpr int kMaxManifests = 1000;

Result<std::string> read_description(const std::string& path) {
  std::error_code failed;
  if (fs::file_size(path, failed) > kMaxDescription && !failed) {
    return Error::too_large(cat(path, " is larger than ", kMaxDescription, " bytes"));
  }
  return runtime::system_files().read(path);
}

Result<Value> read_json(const std::string& path) {
  DIBS_TRY(const std::string bytes, read_description(path));
  auto value = json::parse(bytes);
  if (!value.ok()) return value.error().within(path);
  return value;
}

// Below `folder`, whatever the archive says, and a file: a pipe or device would never end.
Result<std::string> inside(const std::string& folder, const std::string& name) {
  for (const auto part : split(name, '/')) {
    if (part == ".." || name.starts_with('/')) {
      return Error::invalid(cat("the archive names a file outside of it: ", dibs::quoted(name)));
    }
  }
  // Links count by where they lead.
  std::error_code failed;
  const fs::path real = fs::canonical(cat(folder, '/', name), failed);
  const std::string root = fs::canonical(folder, failed).string() + '/';
  if (failed || !real.string().starts_with(root) || !fs::is_regular_file(real, failed)) {
    return Error::invalid(cat("the archive holds no file ", dibs::quoted(name)));
  }
  return real.string();
}

Result<std::string> blob(const std::string& layout, const Value& descriptor) {
  const std::string digest = descriptor["digest"].str();
  if (!is_digest(digest)) {
    return Error::invalid(cat("unsupported digest ", dibs::quoted(digest), " in the layout"));
  }
  DIBS_TRY(const std::string path, inside(layout, cat("blobs/sha256/", digest.substr(7))));
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
                           int& left, int depth) {
  if (depth > 4) return Error::invalid("the layout's indexes are nested too deep");
  for (const auto& descriptor : index["manifests"].items()) {
    if (left-- == 0) return Error::too_large("the layout names too many manifests");
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
      DIBS_CHECK(collect_manifests(layout, content, here, out, left, depth + 1));
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

/// The program that a packed layer is unpacked with, by its first bytes; "" for one that is plain.
const char* unpacker_of(std::string_view head) {
  if (head.starts_with("\x1f\x8b")) return "gzip";
  if (head.starts_with("\x28\xb5\x2f\xfd")) return "zstd";
  if (head.starts_with("BZh")) return "bzip2";
  if (head.starts_with("\xfd"
                       "7zXZ"))
    return "xz";
  return "";
}

/// Writes the archive that a layer's file holds to `target`; its digest, which is the layer's
/// diff_id if the image is honest.
Result<std::string> unpack_archive(const std::string& file, const std::string& target) {
  const runtime::Fd packed(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!packed.ok()) return Error::internal(system_message("open", file));
  char head[8] = {};
  const ssize_t got = ::pread(packed.get(), head, sizeof head, 0);
  const std::string program =
      unpacker_of({head, static_cast<std::size_t>(std::max<ssize_t>(got, 0))});
  if (program.empty()) return copy_with_digest(packed.get(), target);
  DIBS_TRY(auto process,
           runtime::Process::start({.argv = {program, "-dc", file}, .out = runtime::Stdio::pipe}));
  DIBS_TRY(const std::string digest, copy_with_digest(process->out().get(), target));
  const auto ended = process->wait();
  if (!ended || ended->code != 0) {
    return Error::invalid(cat("the layer cannot be unpacked: ", program, " ended with status ",
                              ended ? ended->code : -1));
  }
  return digest;
}

/// What a mark .wh.NAME deletes. It lies beside the mark, or the image is refused: a NAME of dots
/// would reach the folder above, and with it all of the machine.
Result<std::string> deleted_name(const std::string& mark) {
  std::string name = mark.substr(4);
  if (name.empty() || name == "." || name == "..") {
    return Error::invalid(cat("the layer holds a deletion mark ", dibs::quoted(mark),
                              ", which would delete outside of its folder"));
  }
  return name;
}

}  // namespace

TemporaryFolder::TemporaryFolder(std::string path) : path_(std::move(path)) {
  std::error_code failed;
  fs::remove_all(path_, failed);
  fs::create_directories(path_, failed);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code failed;
  fs::remove_all(path_, failed);
}

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
  for (fs::recursive_directory_iterator at(layer, failed), end; !failed && at != end;
       at.increment(failed)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with(".wh.")) continue;
    // Before anything is touched: a layer is taken whole or not at all.
    DIBS_CHECK(deleted_name(name));
    marks.push_back(at->path());
  }
  if (failed) return Error::internal(cat("read ", layer, ": ", failed.message()));
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
    DIBS_TRY(const std::string deleted_here, deleted_name(name));
    const fs::path deleted = mark.parent_path() / deleted_here;
    fs::remove_all(deleted, failed);
    if (::mknod(deleted.c_str(), S_IFCHR, makedev(0, 0)) != 0) {
      return Error::internal(system_message("mark", deleted));
    }
  }
  return success();
}

Result<> ImageStore::unpack_layer(const std::string& file, const std::string& diff_id) {
  const std::string layer = diff_id.substr(7);
  const std::string target = cat(folder_, "/layers/", layer);
  DIBS_CHECK(make_private_folder(folder_ + "/layers"));
  DIBS_CHECK(make_private_folder(folder_ + "/tmp"));
  const TemporaryFolder aside(cat(folder_, "/tmp/layer-", layer));
  const std::string archive = aside.path() + "/content.tar";
  // Also where the layer is there: an image gets nothing that it does not bring along.
  DIBS_TRY(const std::string found, unpack_archive(file, archive));
  if (found != diff_id) {
    return Error::invalid(cat("a layer is not what the image says: its content is ", found,
                              ", its diff_id ", diff_id));
  }
  if (fs::exists(target)) return success();
  DIBS_CHECK(need_room(aside.path(), fs::file_size(archive)));
  const std::string root = aside.path() + "/root";
  DIBS_CHECK(runtime::system_files().make_dirs(root, 0755));
  ::chmod(root.c_str(), 0755);
  auto unpacked = runtime::run_checked(
      {.argv = {"tar", "--extract", "--file", archive, "--directory", root, "--numeric-owner",
                "--preserve-permissions", "--xattrs", "--xattrs-include=*",
                // The overlay's own marks come from convert_whiteouts() alone.
                "--xattrs-exclude=trusted.overlay.*", "--delay-directory-restore"}});
  if (!unpacked.ok()) return unpacked.error().within("unpack a layer");
  DIBS_CHECK(convert_whiteouts(root));
  std::error_code failed;
  fs::rename(root, target, failed);
  if (failed) return Error::internal(cat("move a layer to ", target, ": ", failed.message()));
  return success();
}

Result<ImageStore::Record> ImageStore::add(const std::string& digest,
                                           const std::string& config_bytes,
                                           const std::vector<std::string>& layer_files,
                                           const Source& source) {
  Record record;
  record.id = digest_of(config_bytes);
  record.digest = digest;
  record.origin = source.origin;
  DIBS_TRY(record.config, json::parse(config_bytes));
  // By the digest of what is packed, so that one layer is there once however it came.
  const Value& diff_ids = record.config["rootfs"]["diff_ids"];
  if (diff_ids.size() != layer_files.size()) {
    return Error::invalid(cat("the image has ", layer_files.size(),
                              " layers, its configuration diff_ids for ", diff_ids.size()));
  }
  for (std::size_t i = 0; i < layer_files.size(); ++i) {
    const std::string diff_id = diff_ids[i].str();
    if (!is_digest(diff_id)) {
      return Error::invalid(cat("unsupported diff_id ", dibs::quoted(diff_id), " in the image"));
    }
    DIBS_CHECK(unpack_layer(layer_files[i], diff_id));
    record.layers.push_back(diff_id.substr(7));
    record.size += folder_size(cat(folder_, "/layers/", record.layers.back()));
  }
  DIBS_TRY(const auto before, this->record(record.id));
  // What everybody could have stays so; else each login opens it for itself alone.
  if (!source.login.empty() && (!before || !before->logins.empty())) {
    if (before) record.logins = before->logins;
    const auto known = std::find(record.logins.begin(), record.logins.end(), source.login);
    if (known == record.logins.end()) record.logins.push_back(source.login);
  }
  DIBS_CHECK(make_private_folder(folder_ + "/images"));
  DIBS_CHECK(runtime::system_files().write(cat(folder_, "/images/", record.id.substr(7), ".json"),
                                           json::write(record.to_value()), 0600));
  return record;
}

Result<std::vector<StoredImage>> ImageStore::import_folder(const std::string& unpacked,
                                                           const std::string& name,
                                                           const Source& source) {
  struct Added {
    Record record;
    std::vector<std::string> names;
  };
  const Error nameless = Error::invalid(
      "the archive does not name its image: give a name, as in dibs image import FILE NAME");
  std::vector<Added> added;
  if (fs::exists(unpacked + "/manifest.json")) {
    DIBS_TRY(const std::string path, inside(unpacked, "manifest.json"));
    DIBS_TRY(const Value manifests, read_json(path));
    for (const auto& manifest : manifests.items()) {
      DIBS_TRY(const std::string config, inside(unpacked, manifest["Config"].str()));
      DIBS_TRY(const std::string bytes, read_description(config));
      std::vector<std::string> layers;
      for (const auto& layer : manifest["Layers"].items()) {
        DIBS_TRY(layers.emplace_back(), inside(unpacked, layer.str()));
      }
      std::vector<std::string> names_in;
      for (const auto& tag : manifest["RepoTags"].items()) names_in.push_back(tag.str());
      if (names_in.empty() && name.empty()) return nameless;
      DIBS_TRY(Record record, add("", bytes, layers, source));
      added.push_back({std::move(record), std::move(names_in)});
    }
  } else if (fs::exists(unpacked + "/index.json")) {
    DIBS_TRY(const std::string path, inside(unpacked, "index.json"));
    DIBS_TRY(const Value index, read_json(path));
    std::vector<Manifest> manifests;
    int left = kMaxManifests;
    DIBS_CHECK(collect_manifests(unpacked, index, {}, manifests, left, 0));
    for (const auto& manifest : manifests) {
      if (manifest.names.empty() && name.empty()) return nameless;
      DIBS_TRY(const std::string config, blob(unpacked, manifest.content["config"]));
      DIBS_TRY(const std::string bytes, read_description(config));
      std::vector<std::string> layers;
      for (const auto& layer : manifest.content["layers"].items()) {
        DIBS_TRY(layers.emplace_back(), blob(unpacked, layer));
      }
      DIBS_TRY(Record record, add(manifest.digest, bytes, layers, source));
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
  return import(path, name, Source{});
}

Result<std::vector<StoredImage>> ImageStore::import(const std::string& path,
                                                    const std::string& name, const Source& source) {
  std::error_code failed;
  if (!fs::exists(path, failed)) return Error::not_found(cat("no such file: ", path));
  DIBS_CHECK(runtime::system_files().make_dirs(folder_, 0755));
  DIBS_TRY(const auto lock, wait_for_lock(folder_ + "/lock"));
  fs::remove_all(folder_ + "/tmp", failed);
  if (fs::is_directory(path, failed)) return import_folder(path, name, source);
  const TemporaryFolder unpacked(folder_ + "/tmp/archive");
  auto extracted = runtime::run_checked({.argv = {"tar", "--extract", "--file", path, "--directory",
                                                  unpacked.path(), "--no-same-owner"}});
  if (!extracted.ok()) {
    // The first complaint is what the others follow from.
    std::string_view why = split(extracted.error().message(), '\n').front();
    for (constexpr std::string_view kWho = "tar: "; why.starts_with(kWho);) {
      why.remove_prefix(kWho.size());
    }
    return Error::invalid(cat(path, ": cannot be unpacked: ", why));
  }
  return import_folder(unpacked.path(), name, source);
}

}  // namespace dibs::node
