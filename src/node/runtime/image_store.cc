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
#include "base/log.h"
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
  Value allowed = Value::array();
  for (const auto& login : logins) allowed.push(login);
  return Value::object({{"id", id},
                        {"digest", digest},
                        {"layers", list},
                        {"size", size},
                        {"origin", name_of(origin)},
                        {"logins", allowed},
                        {"config", config}});
}

Result<ImageStore::Record> ImageStore::Record::read(std::string_view text, std::string_view id) {
  DIBS_TRY(const Value value, json::parse(text));
  if (!is_digest(id) || value["id"].as_string() != id) return Error::invalid("it has another id");
  Record record;
  record.id = value["id"].str();
  record.digest = value["digest"].str();
  for (const auto& layer : value["layers"].items()) {
    // Folders of that name are mounted and removed.
    if (!is_digest(cat("sha256:", layer.as_string())))
      return Error::invalid("a layer has no digest");
    record.layers.push_back(layer.str());
  }
  record.size = static_cast<std::uint64_t>(std::max<std::int64_t>(0, value["size"].as_int()));
  record.config = value["config"];
  for (const auto& login : value["logins"].items()) record.logins.push_back(login.str());
  if (value["origin"].as_string() == name_of(ImageOrigin::registry)) {
    record.origin = ImageOrigin::registry;
  }
  return record;
}

std::string_view name_of(ImageOrigin origin) {
  switch (origin) {
    case ImageOrigin::archive:
      return "archive";
    case ImageOrigin::registry:
      return "registry";
    case ImageOrigin::builtin:
      return "built-in";
  }
  return "";
}

ImageStore::ImageStore(std::string folder, ImageStoreOptions options)
    : folder_(std::move(folder)), options_(std::move(options)) {}

// One for each name; none where this machine has no static busybox.
Result<std::vector<ImageStore::Record>> ImageStore::builtin_records(
    const std::vector<BuiltinName>& names) {
  std::vector<Record> records;
  DIBS_TRY(const auto layer, make_builtin_layer(folder_ + "/layers"));
  if (!layer) return records;
  if (builtin_size_ == 0) builtin_size_ = folder_size(folder_ + "/layers/" + *layer);
  for (const auto& name : names) {
    Record& record = records.emplace_back();
    record.config = builtin_config(name);
    record.id = digest_of(json::write(record.config));
    record.layers = {*layer};
    record.size = builtin_size_;
    record.origin = ImageOrigin::builtin;
  }
  return records;
}

StoredImage ImageStore::builtin(const Record& record, const std::string& name) {
  StoredImage image = stored(record, Value::object({{name, record.id}}), name);
  image.image_id = cat(kBuiltinRepository, "@", record.id);
  return image;
}

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
  auto read = Record::read(*bytes, id);
  if (!read.ok()) {
    // As if it were not there: the next pull or import writes it anew.
    log::warn("record of an image ignored", {{"image", id}, {"error", read.error()}});
    return std::optional<Record>();
  }
  return std::optional(std::move(read).value());
}

Result<std::vector<ImageStore::Record>> ImageStore::records() {
  std::vector<Record> out;
  auto& files = runtime::system_files();
  if (!files.exists(folder_ + "/images")) return out;
  DIBS_TRY(const auto entries, files.list(folder_ + "/images"));
  for (const auto& entry : entries) {
    if (!entry.ends_with(".json")) continue;
    DIBS_TRY(auto found, record("sha256:" + entry.substr(0, entry.size() - 5)));
    if (found) out.push_back(std::move(*found));
  }
  return out;
}

StoredImage ImageStore::stored(const Record& record, const Value& names, const std::string& name) {
  StoredImage image;
  image.info.id = record.id;
  image.info.size = record.size;
  image.info.logins = record.logins;
  image.config = record.config;
  image.origin = record.origin;
  image.info.pinned = record.origin != ImageOrigin::registry;
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
  // By id also what stood in for a name: a container is made from it by that.
  for (const auto* names : {&options_.aliases, &builtin_own_name(), &builtin_names()}) {
    if (names == &builtin_names() && !is_digest(name)) break;
    DIBS_TRY(const auto records, builtin_records(*names));
    for (std::size_t i = 0; i < records.size(); ++i) {
      const std::string& alias = (*names)[i].name;
      if (is_digest(name) ? records[i].id == name : alias == wanted) {
        return std::optional(builtin(records[i], alias));
      }
    }
  }
  return std::optional<StoredImage>();
}

Result<std::optional<StoredImage>> ImageStore::stand_in(const std::string& name) {
  DIBS_TRY(const Value known, names());
  DIBS_TRY(const ImageReference reference, parse_image_reference(name));
  if (known.contains(reference.text())) return std::optional<StoredImage>();
  for (const auto* names : {&options_.aliases, &builtin_names()}) {
    for (const auto& candidate : *names) {
      if (candidate.name != reference.text()) continue;
      DIBS_TRY(const auto records, builtin_records({candidate}));
      if (!records.empty()) return std::optional(builtin(records.front(), candidate.name));
    }
  }
  return std::optional<StoredImage>();
}

Result<std::vector<StoredImage>> ImageStore::list() {
  std::vector<StoredImage> images;
  DIBS_TRY(const Value known, names());
  DIBS_TRY(const auto all, records());
  for (const auto& record : all) images.push_back(stored(record, known, {}));
  DIBS_TRY(const auto aliased, builtin_records(options_.aliases));
  for (std::size_t i = 0; i < aliased.size(); ++i) {
    const std::string& name = options_.aliases[i].name;
    if (!known.contains(name)) images.push_back(builtin(aliased[i], name));
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
      DIBS_TRY(const auto stays, stand_in(name));
      if (stays) {
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
    if (other.as_string() != id) kept.set(tag, other);
  }
  DIBS_TRY(const auto all, records());
  for (const auto& other : all) {
    if (other.id != id) others.insert(other.layers.begin(), other.layers.end());
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
