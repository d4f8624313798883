#include "server/encryption.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <map>

#include "api/schema/field_error.h"
#include "base/owned.h"
#include "base/strings.h"
#include "json/yaml.h"
#include "server/secretbox.h"

namespace dibs::server {
namespace {

using api::Path;
using json::Value;

constexpr std::string_view kRegistry = "/registry/";
constexpr std::size_t kVector = 16;
constexpr std::size_t kNonce = 12;
constexpr std::size_t kTag = 16;

using Cipher = Owned<EVP_CIPHER_CTX, EVP_CIPHER_CTX_free>;
Cipher new_cipher() { return Cipher(EVP_CIPHER_CTX_new()); }

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* bytes_of(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

enum class Algorithm : char { identity, aescbc, aesgcm, secretbox };

const EVP_CIPHER* cipher_of(Algorithm algorithm, std::size_t key_size) {
  const bool gcm = algorithm == Algorithm::aesgcm;
  if (key_size == 16) return gcm ? EVP_aes_128_gcm() : EVP_aes_128_cbc();
  if (key_size == 24) return gcm ? EVP_aes_192_gcm() : EVP_aes_192_cbc();
  return gcm ? EVP_aes_256_gcm() : EVP_aes_256_cbc();
}

/// One key of a provider; identity has one without a name.
struct Key {
  Algorithm algorithm = Algorithm::identity;
  std::string prefix;  // of its values
  std::string secret;
};

Error crypto_failure() { return Error::internal("the value could not be encrypted"); }

Result<std::string> seal_with(const Key& key, std::string_view name, std::string_view value,
                              runtime::Random& random) {
  if (key.algorithm == Algorithm::identity) return std::string(value);
  const bool gcm = key.algorithm == Algorithm::aesgcm;
  const bool box = key.algorithm == Algorithm::secretbox;
  std::string nonce(box ? kBoxNonce : gcm ? kNonce : kVector, '\0');
  random.fill({bytes_of(nonce), nonce.size()});
  if (box) {
    const auto sealed = seal_box(value, nonce, key.secret);
    if (!sealed) return crypto_failure();
    return cat(key.prefix, nonce, *sealed);
  }
  std::string sealed(value.size() + kVector, '\0');
  Cipher cipher = new_cipher();
  int size = 0, rest = 0;
  if (!cipher ||
      EVP_EncryptInit_ex(cipher.get(), cipher_of(key.algorithm, key.secret.size()), nullptr,
                         bytes_of(std::string_view(key.secret)),
                         bytes_of(std::string_view(nonce))) != 1 ||
      (gcm && EVP_EncryptUpdate(cipher.get(), nullptr, &size, bytes_of(name),
                                static_cast<int>(name.size())) != 1) ||
      EVP_EncryptUpdate(cipher.get(), bytes_of(sealed), &size, bytes_of(value),
                        static_cast<int>(value.size())) != 1 ||
      EVP_EncryptFinal_ex(cipher.get(), bytes_of(sealed) + size, &rest) != 1) {
    return crypto_failure();
  }
  sealed.resize(static_cast<std::size_t>(size + rest));
  if (gcm) {
    std::string tag(kTag, '\0');
    if (EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_GET_TAG, kTag, tag.data()) != 1) {
      return crypto_failure();
    }
    sealed += tag;
  }
  return cat(key.prefix, nonce, sealed);
}

/// `sealed` without its prefix.
Result<std::string> open_with(const Key& key, std::string_view name, std::string_view sealed) {
  const bool gcm = key.algorithm == Algorithm::aesgcm;
  const std::size_t front = gcm ? kNonce : kVector;
  const std::size_t back = gcm ? kTag : 0;
  const Error wrong = Error::invalid(cat("cannot be decrypted with ", quoted(key.prefix),
                                         ": it is damaged, or the key is another"));
  if (key.algorithm == Algorithm::secretbox) {
    if (sealed.size() < kBoxNonce) return wrong;
    auto value = open_box(sealed.substr(kBoxNonce), sealed.substr(0, kBoxNonce), key.secret);
    if (!value) return wrong;
    return std::move(*value);
  }
  if (sealed.size() < front + back) return wrong;
  const std::string_view nonce = sealed.substr(0, front);
  const std::string_view body = sealed.substr(front, sealed.size() - front - back);
  std::string tag(sealed.substr(sealed.size() - back));
  std::string value(body.size() + kVector, '\0');
  Cipher cipher = new_cipher();
  int size = 0, rest = 0;
  if (!cipher ||
      EVP_DecryptInit_ex(cipher.get(), cipher_of(key.algorithm, key.secret.size()), nullptr,
                         bytes_of(std::string_view(key.secret)), bytes_of(nonce)) != 1 ||
      (gcm && (EVP_DecryptUpdate(cipher.get(), nullptr, &size, bytes_of(name),
                                 static_cast<int>(name.size())) != 1 ||
               EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_SET_TAG, kTag, tag.data()) != 1)) ||
      EVP_DecryptUpdate(cipher.get(), bytes_of(value), &size, bytes_of(body),
                        static_cast<int>(body.size())) != 1 ||
      EVP_DecryptFinal_ex(cipher.get(), bytes_of(value) + size, &rest) != 1) {
    return wrong;
  }
  value.resize(static_cast<std::size_t>(size + rest));
  return value;
}

/// An entry of the configuration: resources, and the keys of its providers in order.
struct Entry {
  std::vector<std::string> resources;  // "secrets", "deployments.apps", "*.apps", "*.", "*.*"
  std::vector<Key> keys;
};

bool names(const Entry& entry, std::string_view group, std::string_view plural) {
  const std::string full = group.empty() ? std::string(plural) : cat(plural, ".", group);
  for (const std::string& one : entry.resources) {
    if (one == "*.*" || one == full || one == cat("*.", group)) return true;
  }
  return false;
}

class Encryption final : public store::AtRest {
 public:
  Encryption(std::vector<Entry> entries, std::map<std::string, const Resource*, std::less<>> known,
             std::vector<ResourcePtr> keep, runtime::Random& random, std::string_view registry)
      : registry_(registry),
        entries_(std::move(entries)),
        by_prefix_(std::move(known)),
        keep_(std::move(keep)),
        random_(random) {}

  Result<std::string> seal(std::string_view key, std::string_view value) const override {
    const Entry* entry = entry_of(key);
    if (entry == nullptr) return std::string(value);
    return seal_with(entry->keys.front(), name_of(key), value, random_);
  }

  Result<Opened> open(std::string_view key, std::string_view bytes) const override {
    const Entry* entry = entry_of(key);
    const bool sealed = bytes.starts_with(store::kSealed);
    if (entry == nullptr) {
      if (sealed) return no_key_error(bytes);
      return Opened{std::string(bytes), false};
    }
    for (const Key& one : entry->keys) {
      const bool stale = &one != &entry->keys.front();
      if (one.algorithm == Algorithm::identity) {
        if (!sealed) return Opened{std::string(bytes), stale};
      } else if (bytes.starts_with(one.prefix)) {
        DIBS_TRY(auto value, open_with(one, name_of(key), bytes.substr(one.prefix.size())));
        return Opened{std::move(value), stale};
      }
    }
    if (sealed) return no_key_error(bytes);
    return Error::invalid(
        "is not encrypted, and --encryption-provider-config has no provider that reads it: add "
        "identity: {} as the last one, until a start has encrypted what there is");
  }

 private:
  /// The key as the store has it.
  std::string name_of(std::string_view key) const {
    return cat(registry_, key.substr(kRegistry.size() - 1));
  }

  const Entry* entry_of(std::string_view key) const {
    if (!key.starts_with(kRegistry)) return nullptr;
    std::string_view group, plural;
    // The longest prefix that is a resource's; what is of none is a custom one's.
    auto found = by_prefix_.upper_bound(key);
    if (found != by_prefix_.begin() && key.starts_with((--found)->first)) {
      group = found->second->group;
      plural = found->second->plural;
    } else {
      const std::string_view rest = key.substr(kRegistry.size());
      const auto slash = rest.find('/');
      if (slash == std::string_view::npos) return nullptr;
      group = rest.substr(0, slash);
      plural = rest.substr(slash + 1, rest.find('/', slash + 1) - slash - 1);
    }
    for (const Entry& entry : entries_) {
      if (names(entry, group, plural)) return &entry;
    }
    return nullptr;
  }

  const std::string registry_;
  const std::vector<Entry> entries_;
  const std::map<std::string, const Resource*, std::less<>> by_prefix_;
  const std::vector<ResourcePtr> keep_;
  runtime::Random& random_;
};

/// Reads the configuration, and notes what is wrong with it. Secrets are in no message.
class Reader {
 public:
  explicit Reader(const std::vector<ResourcePtr>& builtin) : builtin_(builtin) {}
  api::FieldErrors errors;

  std::vector<Entry> entries(const Value& source) {
    std::vector<Entry> out;
    const Path top("resources");
    if (source["resources"].empty()) errors.required(top, "at least one entry is needed");
    for (std::size_t i = 0; i < source["resources"].size(); ++i) {
      const Value& given = source["resources"][i];
      const Path at = top.index(i);
      only(at, given, {"resources", "providers"});
      Entry& entry = out.emplace_back();
      read_resources(at.child("resources"), given["resources"], entry);
      read_providers(at.child("providers"), given["providers"], entry);
    }
    return out;
  }

  void only(const Path& path, const Value& object, std::initializer_list<std::string_view> fields) {
    for (const auto& [key, value] : object.members()) {
      if (std::find(fields.begin(), fields.end(), key) == fields.end()) {
        errors.forbidden(path.child(key), "unknown field");
      }
    }
  }

 private:
  void read_resources(const Path& path, const Value& list, Entry& entry) {
    if (list.empty()) errors.required(path, "at least one resource is needed");
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::string name = list[i].str();
      if (std::find(seen_.begin(), seen_.end(), name) != seen_.end()) {
        errors.duplicate(path.index(i), name);
      }
      seen_.push_back(name);
      entry.resources.push_back(name);
      if (!is_known(name)) {
        errors.invalid(path.index(i), name,
                       "must be a resource as PLURAL or PLURAL.GROUP, *.GROUP, *. for the core "
                       "group or *.* for all");
      }
    }
  }

  /// A misspelt name would leave in plain text what was to be encrypted.
  bool is_known(const std::string& name) const {
    if (name == "*.*") return true;
    const auto dot = name.find('.');
    const std::string plural = name.substr(0, dot);
    const std::string group = dot == std::string::npos ? "" : name.substr(dot + 1);
    if (plural.empty() || (plural == "*" && dot == std::string::npos)) return false;
    bool known_group = false;
    for (const ResourcePtr& one : builtin_) {
      known_group = known_group || one->group == group;
      if (one->group == group && (plural == "*" || one->plural == plural)) return true;
    }
    return !known_group;
  }

  void read_providers(const Path& path, const Value& list, Entry& entry) {
    if (list.empty()) errors.required(path, "at least one provider is needed");
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Path at = path.index(i);
      if (list[i].size() != 1) {
        errors.invalid(at, Value(""), "must have exactly one provider");
        continue;
      }
      const auto& provider = *list[i].members().begin();
      const auto& [kind, how] = provider;
      if (kind == "identity") {
        entry.keys.push_back({});
      } else if (kind == "aescbc" || kind == "aesgcm" || kind == "secretbox") {
        only(at.child(kind), how, {"keys"});
        read_keys(at.child(kind), kind, how["keys"], entry);
      } else {
        errors.not_supported(at, Value(kind), {"aescbc", "aesgcm", "identity", "secretbox"});
      }
    }
  }

  void read_keys(const Path& path, std::string_view kind, const Value& list, Entry& entry) {
    const Path keys = path.child("keys");
    if (list.empty()) errors.required(keys, "at least one key is needed");
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Path at = keys.index(i);
      only(at, list[i], {"name", "secret"});
      const std::string name = list[i]["name"].str();
      if (name.empty()) errors.required(at.child("name"));
      if (name.find(':') != std::string::npos) {
        errors.invalid(at.child("name"), name, "may not have a colon");
      }
      Key key;
      key.algorithm = kind == "aescbc"   ? Algorithm::aescbc
                      : kind == "aesgcm" ? Algorithm::aesgcm
                                         : Algorithm::secretbox;
      key.prefix = cat(store::kSealed, kind, ":v1:", name, ":");
      for (const Key& other : entry.keys) {
        if (other.prefix == key.prefix) errors.duplicate(at.child("name"), name);
      }
      const bool decoded = base64_decode(list[i]["secret"].as_string(), key.secret);
      const std::size_t size = key.secret.size();
      const bool box = key.algorithm == Algorithm::secretbox;
      if (!decoded || (size != 32 && (box || (size != 16 && size != 24)))) {
        errors.add(api::Fault::invalid, at.child("secret"),
                   box ? "Invalid value: must be 32 bytes in base64"
                       : "Invalid value: must be 16, 24 or 32 bytes in base64");
      }
      entry.keys.push_back(std::move(key));
    }
  }

  const std::vector<ResourcePtr>& builtin_;
  std::vector<std::string> seen_;
};

}  // namespace

Error no_key_error(std::string_view bytes) {
  // Provider, version and name of the key, never what follows.
  std::size_t end = store::kSealed.size();
  for (int colons = 0; colons < 3 && end != std::string_view::npos; ++colons) {
    end = bytes.find(':', end);
    if (end != std::string_view::npos) ++end;
  }
  return Error::invalid(cat("is encrypted as ", quoted(bytes.substr(0, end)),
                            ", a key that --encryption-provider-config does not have"));
}

Result<std::shared_ptr<const store::AtRest>> make_encryption(
    std::string_view text, const std::vector<ResourcePtr>& builtin, runtime::Random& random,
    std::string_view registry) {
  DIBS_TRY(const Value source, json::parse_yaml(text));
  if (source["apiVersion"].as_string() != "apiserver.config.k8s.io/v1" ||
      source["kind"].as_string() != "EncryptionConfiguration") {
    return Error::invalid(cat("must be an EncryptionConfiguration of apiserver.config.k8s.io/v1, ",
                              "not ", quoted(source["kind"].as_string()), " of ",
                              quoted(source["apiVersion"].as_string())));
  }
  Reader reader(builtin);
  reader.only(Path(), source, {"apiVersion", "kind", "resources"});
  std::vector<Entry> entries = reader.entries(source);
  if (!reader.errors.empty()) {
    std::vector<std::string> all;
    for (const auto& one : reader.errors.errors()) all.push_back(cat(one.field, ": ", one.text));
    return Error::invalid(all.size() == 1 ? all[0] : cat("[", join(all, ", "), "]"));
  }
  std::map<std::string, const Resource*, std::less<>> known;
  for (const ResourcePtr& one : builtin) known.emplace(one->storage_prefix, one.get());
  return std::shared_ptr<const store::AtRest>(std::make_shared<Encryption>(
      std::move(entries), std::move(known), builtin, random, registry));
}

}  // namespace dibs::server
