#include "server/etcd_form.h"

#include <algorithm>
#include <map>

#include "api/kinds/resource/versions/model.h"
#include "api/schema/builtin.h"
#include "api/schema/decode.h"
#include "api/schema/protobuf.h"
#include "api/structural/crd_former.h"
#include "base/strings.h"
#include "json/parse.h"
#include "json/well_formed.h"
#include "server/body.h"
#include "server/builtin_resources.h"
#include "server/encryption.h"
#include "server/stored.h"
#include "server/writing.h"

namespace dibs::server {
namespace {

using json::Value;
using store::AtRest;

constexpr std::string_view kRegistry = "/registry/";
constexpr std::size_t kDepth = 1000;

/// A built-in kind under the prefix of its keys.
struct Kind {
  std::map<std::string, ResourcePtr, std::less<>> versions;  // by apiVersion
  std::map<std::string, ResourcePtr, std::less<>> released;  // of these, as the release has them
  std::string head;                                          // of its stored values
  std::string written_head;                                  // of what etcd gets; often the same
  bool two_models = false;
  bool may_be_classic = false;
};

bool is_classic(std::string_view value) {
  constexpr std::size_t kHead = 256;
  const std::string_view head = value.substr(0, kHead);
  return head.substr(0, head.find("\"metadata\"")).find(cat('"', api::kClassicVersion, '"')) !=
         std::string_view::npos;
}

/// The group of a custom kind has a dot; no prefix of a built-in one without a group has.
bool is_custom(std::string_view key) {
  if (!key.starts_with(kRegistry)) return false;
  const std::string_view rest = key.substr(kRegistry.size());
  return rest.substr(0, rest.find('/')).find('.') != std::string_view::npos;
}

Result<Value> parse_value(std::string_view bytes) {
  if (api::is_protobuf(bytes)) return parse_protobuf(bytes);
  json::ParseOptions options;
  options.max_depth = kDepth;
  DIBS_TRY(Value value, json::parse(bytes, options));
  if (!value["kind"].is_string() || !value["apiVersion"].is_string()) {
    return Error::invalid("has no kind and apiVersion");
  }
  return value;
}

class EtcdForm final : public AtRest {
 public:
  EtcdForm(std::map<std::string, Kind, std::less<>> kinds, std::shared_ptr<const AtRest> encryption)
      : kinds_(std::move(kinds)), encryption_(std::move(encryption)) {}

  Result<std::string> seal(std::string_view key, std::string_view value) const override {
    const Kind* kind = kind_of(key);
    if (kind == nullptr || kind->head == kind->written_head || !value.starts_with(kind->head)) {
      return encryption_ ? encryption_->seal(key, value) : Result<std::string>(std::string(value));
    }
    std::string renamed = cat(kind->written_head, value.substr(kind->head.size()));
    if (!encryption_) return renamed;
    return encryption_->seal(key, renamed);
  }

  Result<Opened> open(std::string_view key, std::string_view bytes) const override {
    Opened opened;
    if (encryption_) {
      DIBS_TRY(opened, encryption_->open(key, bytes));
    } else {
      if (bytes.starts_with(store::kSealed)) return no_key_error(bytes);
      opened.value = bytes;
    }
    const Kind* kind = kind_of(key);
    // It goes to clients as it is, between others in a list: whoever wrote it, it must be JSON.
    if ((kind != nullptr || is_custom(key)) && looks_stored(opened.value) &&
        !json::is_well_formed(opened.value, kDepth)) {
      return Error::invalid("is not JSON");
    }
    if (kind != nullptr) {
      if (is_ours(*kind, opened.value)) return opened;
      if (kind->head != kind->written_head && opened.value.starts_with(kind->written_head) &&
          looks_stored(opened.value)) {
        opened.value =
            cat(kind->head, std::string_view(opened.value).substr(kind->written_head.size()));
        return opened;
      }
      DIBS_TRY(opened.value, read_builtin(*kind, opened.value));
    } else if (is_custom(key) && !looks_stored(opened.value)) {
      DIBS_TRY(opened.value, read_custom(opened.value));
    }
    return opened;
  }

  bool may_be_apart(std::string_view key) const override {
    const Kind* kind = kind_of(key);
    return kind != nullptr && kind->may_be_classic;
  }
  bool is_apart(std::string_view key, std::string_view value) const override {
    return may_be_apart(key) && is_classic(value);
  }

 private:
  const Kind* kind_of(std::string_view key) const {
    auto found = kinds_.upper_bound(key);
    if (found == kinds_.begin() || !key.starts_with((--found)->first)) return nullptr;
    return &found->second;
  }

  static bool is_ours(const Kind& kind, std::string_view value) {
    if (!looks_stored(value)) return false;
    return value.starts_with(kind.head) || (kind.two_models && is_classic(value));
  }

  static Result<std::string> read_builtin(const Kind& kind, std::string_view bytes) {
    DIBS_TRY(Value raw, parse_value(bytes));
    // No server shows definitions so any more, but a kube-apiserver stores them so.
    if (raw["apiVersion"].as_string() == api::kFormerDefinitions) {
      raw = api::definition_from_former(raw);
    }
    const std::string_view version = raw["apiVersion"].as_string();
    const auto found = kind.versions.find(version);
    if (found == kind.versions.end() || found->second->kind != raw["kind"].as_string()) {
      return Error::invalid(cat("is a ", quoted(raw["kind"].as_string()), " of ", quoted(version),
                                ", which is not known here"));
    }
    // As that release reads it: what is younger is not added, and not kept.
    const auto released = kind.released.find(version);
    const Resource& resource = released != kind.released.end() ? *released->second : *found->second;
    std::vector<std::string> ignored;
    DIBS_TRY(Value object, api::decode(raw, *resource.schema, api::Strictness::ignore, ignored));
    object.set("kind", resource.kind);
    object.set("apiVersion", version);
    object.mut("metadata").erase("selfLink");
    DIBS_TRY(const Value stored, with_defaults(resource, std::move(object)));
    std::string out = encode_stored(stored);
    if (is_ours(kind, out)) return out;
    return Error::invalid(cat("is of ", quoted(version), ", which is not converted here"));
  }

  static Result<std::string> read_custom(std::string_view bytes) {
    DIBS_TRY(Value object, parse_value(bytes));
    if (!object["metadata"].is_object()) return Error::invalid("has no metadata");
    object.mut("metadata").erase("selfLink");
    return encode_stored(object);
  }

  const std::map<std::string, Kind, std::less<>> kinds_;
  const std::shared_ptr<const AtRest> encryption_;
};

/// What a release has of the kind.
struct Served {
  std::string version;          // some version that it serves; "" where it serves none
  std::string storage_version;  // of a kube-apiserver
};

Served served_of(const Kind& kind, int minor, const api::Catalog& release) {
  Served out;
  for (const auto& [name, one] : kind.versions) {
    const api::GroupInfo* group = release.group(one->group);
    const api::VersionInfo* version = group ? group->version(one->version) : nullptr;
    if (version == nullptr || version->first_release > minor ||
        (version->last_release != 0 && version->last_release < minor)) {
      continue;
    }
    if (const auto* info = release.find(one->group, one->version, one->plural)) {
      out = {one->version, info->storage_version};
    }
  }
  return out;
}

void set_heads(Kind& kind, const Served& served) {
  const Resource& any = *kind.versions.begin()->second;
  const bool converts =
      std::any_of(kind.versions.begin(), kind.versions.end(),
                  [](const auto& entry) { return entry.second->to_storage != nullptr; });
  api::GroupVersionKind stored{any.hub_group, any.hub_version, any.kind};
  // Where nothing converts, objects are stored in the version that the release serves.
  if (!converts && !served.version.empty()) stored.version = served.version;
  kind.head = stored_head(stored.kind, stored.api_version());
  // A kind that looks the same in all versions may be younger here than there.
  const bool renamed = converts && !kind.two_models && any.group == any.hub_group;
  if (renamed && !served.storage_version.empty()) stored.version = served.storage_version;
  kind.written_head = stored_head(stored.kind, stored.api_version());
}

}  // namespace

Result<std::shared_ptr<const AtRest>> make_etcd_form(const Options& options,
                                                     std::shared_ptr<const AtRest> encryption) {
  DIBS_TRY(const int minor, api::release_minor(options.answers_as()));
  const api::Catalog& release = api::builtin_catalog(options.release.empty() ? 0 : minor);
  std::map<std::string, Kind, std::less<>> kinds;
  for (const ResourcePtr& one : known_resources()) {
    Kind& kind = kinds[one->storage_prefix];
    kind.versions.emplace(one->api_version(), one);
    kind.two_models = kind.two_models || one->two_models;
    kind.may_be_classic = kind.may_be_classic || one->api_version() == api::kClassicVersion;
  }
  if (!options.release.empty()) {
    DIBS_TRY(const auto all, release_resources(options));
    for (const ResourcePtr& one : all) {
      kinds[one->storage_prefix].released.emplace(one->api_version(), one);
    }
  }
  for (auto& [prefix, kind] : kinds) set_heads(kind, served_of(kind, minor, release));
  return std::shared_ptr<const AtRest>(
      std::make_shared<EtcdForm>(std::move(kinds), std::move(encryption)));
}

}  // namespace dibs::server
