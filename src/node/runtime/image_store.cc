#include "node/runtime/image_store.h"

#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "base/image_reference.h"
#include "base/strings.h"
#include "json/parse.h"
#include "node/runtime/builtin_image.h"
#include "node/runtime/image_record.h"
#include "runtime/files.h"

namespace dibs::node {
namespace {

namespace fs = std::filesystem;
using json::Value;

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Images that come with the program, as records. `size` is that of their layer, 0 until known.
Result<std::vector<std::pair<const BuiltinName*, ImageStore::Record>>> builtin_records(
    const std::string& folder, std::atomic<std::uint64_t>& size) {
  std::vector<std::pair<const BuiltinName*, ImageStore::Record>> records;
  DIBS_TRY(const auto layer, make_builtin_layer(folder + "/layers"));
  if (!layer) return records;
  if (size == 0) size = folder_size(folder + "/layers/" + *layer);
  for (const auto& name : builtin_names()) {
    ImageStore::Record record;
    record.config = builtin_config(name);
    record.id = digest_of(json::write(record.config));
    record.layers = {*layer};
    record.size = size;
    records.emplace_back(&name, std::move(record));
  }
  return records;
}

// Layers that some overlay of this machine is mounted on.
bool is_mounted(const std::string& layer_folder) {
  return text_of("/proc/self/mountinfo").find(layer_folder) != std::string::npos;
}

void take_user(const Value& config, ImageInfo& info) {
  const std::string user = config["config"]["User"].str();
  const std::string name = user.substr(0, user.find(':'));
  if (name.empty()) return;
  if (name.find_first_not_of("0123456789") == std::string::npos && name.size() < 10) {
    info.user_id = std::stoll(name);
  } else {
    info.user_name = name;
  }
}

}  // namespace

std::string_view machine_architecture() {
  static const std::string name = [] {
    struct utsname machine = {};
    ::uname(&machine);
    const std::string_view text = machine.machine;
    if (text == "x86_64") return std::string("amd64");
    if (text == "aarch64") return std::string("arm64");
    return std::string(text);
  }();
  return name;
}

std::uint64_t folder_size(const std::string& folder) {
  std::uint64_t size = 0;
  std::error_code failed;
  for (const auto& entry : fs::recursive_directory_iterator(folder, failed)) {
    if (entry.is_regular_file(failed) && !entry.is_symlink(failed)) size += entry.file_size(failed);
  }
  return size;
}

Value ImageStore::Record::to_value() const {
  Value list = Value::array();
  for (const auto& layer : layers) list.push(layer);
  return Value::object(
      {{"id", id}, {"digest", digest}, {"layers", list}, {"size", size}, {"config", config}});
}

ImageStore::Record ImageStore::Record::from_value(const Value& value) {
  Record record;
  record.id = value["id"].str();
  record.digest = value["digest"].str();
  for (const auto& layer : value["layers"].items()) record.layers.push_back(layer.str());
  record.size = static_cast<std::uint64_t>(value["size"].as_int());
  record.config = value["config"];
  return record;
}

ImageStore::ImageStore(std::string folder) : folder_(std::move(folder)) {}

Result<Value> ImageStore::names() {
  auto bytes = runtime::system_files().read(folder_ + "/names.json");
  if (!bytes.ok()) {
    if (bytes.error().code() == Code::not_found) return Value::object();
    return bytes.error();
  }
  auto names = json::parse(*bytes);
  if (!names.ok()) return names.error().within(cat(folder_, "/names.json"));
  return names;
}

Result<std::optional<ImageStore::Record>> ImageStore::record(const std::string& id) {
  if (!is_digest(id)) return std::optional<Record>();
  auto bytes = runtime::system_files().read(cat(folder_, "/images/", id.substr(7), ".json"));
  if (!bytes.ok()) {
    if (bytes.error().code() == Code::not_found) return std::optional<Record>();
    return bytes.error();
  }
  DIBS_TRY(const Value value, json::parse(*bytes));
  return std::optional(Record::from_value(value));
}

StoredImage ImageStore::stored(const Record& record, const Value& names, const std::string& name) {
  StoredImage image;
  image.info.id = record.id;
  image.info.size = record.size;
  image.config = record.config;
  take_user(record.config, image.info);
  std::set<std::string> repositories;
  for (const auto& [tag, id] : names.members()) {
    if (id.as_string() != record.id) continue;
    image.info.tags.emplace_back(tag);
    if (auto reference = parse_image_reference(tag); reference.ok()) {
      repositories.insert(reference->repository);
    }
  }
  std::sort(image.info.tags.begin(), image.info.tags.end());
  if (!record.digest.empty()) {
    for (const auto& repository : repositories) {
      image.info.digests.push_back(cat(repository, "@", record.digest));
    }
  }
  image.name = !name.empty() ? name : image.info.tags.empty() ? record.id : image.info.tags[0];
  image.image_id = record.id;
  for (const auto& digest : image.info.digests) {
    if (image.name.starts_with(digest.substr(0, digest.find('@')))) image.image_id = digest;
  }
  for (const auto& layer : record.layers) image.layers.push_back(cat(folder_, "/layers/", layer));
  return image;
}

Result<std::optional<StoredImage>> ImageStore::find(const std::string& name) {
  DIBS_TRY(const Value known, names());
  std::string wanted = name;
  std::string digest;
  std::string id;
  if (is_digest(name)) {
    id = name;
  } else {
    DIBS_TRY(const ImageReference reference, parse_image_reference(name));
    wanted = reference.text();
    digest = reference.digest;
    id = known[wanted].str();
    if (id.empty() && !digest.empty()) {
      // Whichever name of the repository has that content.
      for (const auto& [tag, tagged] : known.members()) {
        DIBS_TRY(const auto candidate, record(tagged.str()));
        if (candidate && candidate->digest == digest && tag.starts_with(reference.repository)) {
          id = candidate->id;
        }
      }
    }
  }
  if (!id.empty()) {
    DIBS_TRY(const auto found, record(id));
    if (found) {
      return std::optional(stored(*found, known, is_digest(name) ? std::string() : wanted));
    }
  }
  DIBS_TRY(const auto builtin, builtin_records(folder_, builtin_size_));
  for (const auto& [image, found] : builtin) {
    if (is_digest(name) ? found.id == name : image->name == wanted) {
      return std::optional(stored(found, Value::object({{image->name, found.id}}), image->name));
    }
  }
  return std::optional<StoredImage>();
}

Result<std::vector<StoredImage>> ImageStore::list() {
  std::vector<StoredImage> images;
  DIBS_TRY(const Value known, names());
  std::set<std::string> ids;
  for (const auto& [tag, id] : known.members()) ids.insert(id.str());
  for (const auto& id : ids) {
    DIBS_TRY(const auto found, record(id));
    if (found) images.push_back(stored(*found, known, {}));
  }
  DIBS_TRY(const auto builtin, builtin_records(folder_, builtin_size_));
  for (const auto& [image, found] : builtin) {
    if (known.contains(image->name)) continue;
    images.push_back(stored(found, Value::object({{image->name, found.id}}), image->name));
  }
  std::sort(images.begin(), images.end(),
            [](const StoredImage& a, const StoredImage& b) { return a.name < b.name; });
  return images;
}

Result<> ImageStore::remove(const std::string& name) {
  DIBS_CHECK(runtime::system_files().make_dirs(folder_, 0755));
  DIBS_TRY(const auto lock, wait_for_lock(folder_ + "/lock"));
  DIBS_TRY(Value known, names());
  std::string id = name;
  if (!is_digest(name)) {
    DIBS_TRY(const ImageReference reference, parse_image_reference(name));
    id = known[reference.text()].str();
    if (id.empty()) {
      DIBS_TRY(const auto builtin, find(name));
      if (builtin) {
        return Error::invalid(cat("image ", dibs::quoted(name), " comes with dibs and stays"));
      }
      return Error::not_found(cat("no image named ", dibs::quoted(reference.text())));
    }
    known.erase(reference.text());
  }
  DIBS_TRY(const auto found, record(id));
  const auto members = known.members();
  const bool named = std::any_of(members.begin(), members.end(), [&](const auto& member) {
    return member.value().as_string() == id;
  });
  if (named && !is_digest(name)) {
    return runtime::system_files().write(folder_ + "/names.json", json::write_pretty(known), 0644);
  }
  std::set<std::string> others;
  Value kept = Value::object();
  for (const auto& [tag, other] : known.members()) {
    if (other.as_string() == id) continue;
    kept.set(tag, other);
    DIBS_TRY(const auto used, record(other.str()));
    if (used) others.insert(used->layers.begin(), used->layers.end());
  }
  if (found) {
    for (const auto& layer : found->layers) {
      if (!others.contains(layer) && is_mounted(cat(folder_, "/layers/", layer))) {
        return Error::conflict(cat("image ", dibs::quoted(name), " is used by a container"));
      }
    }
  }
  DIBS_CHECK(
      runtime::system_files().write(folder_ + "/names.json", json::write_pretty(kept), 0644));
  if (!found) return success();
  std::error_code failed;
  fs::remove(cat(folder_, "/images/", id.substr(7), ".json"), failed);
  for (const auto& layer : found->layers) {
    if (!others.contains(layer)) fs::remove_all(cat(folder_, "/layers/", layer), failed);
  }
  return success();
}

}  // namespace dibs::node
