#include "api/schema/builtin.h"

#include <openssl/sha.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <unordered_map>

#include "api/schema/schema_text.h"
#include "base/mutex.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

using Kinds = std::unordered_map<const Schema*, GroupVersionKind>;

struct Book : SchemaBook {
  Kinds schema_kinds;
};

const Book* read_book(int release) {
  auto read = read_schemas(schema_texts(), release);
  if (!read.ok()) {
    // The texts are part of the binary: only a build gone wrong comes here.
    std::fprintf(stderr, "schema: %s\n", read.error().message().c_str());
    std::abort();
  }
  auto made = new Book{std::move(**read), {}};
  for (const auto& [path, schema] : made->kinds) {
    auto parts = split(path, '/');
    made->schema_kinds[schema] = {std::string(parts[0]), std::string(parts[1]),
                                  std::string(parts[2])};
  }
  for (const auto& [kind, schema] : made->meta_kinds) made->schema_kinds[schema] = {"", "v1", kind};
  return made;
}

const Book& book() {
  static const Book& the_book = *read_book(0);
  return the_book;
}

/// The books of emulated releases, as far as they were asked for.
struct Shelf {
  Mutex mutex;
  std::map<int, const Book*> books DIBS_GUARDED_BY(mutex);
};

Shelf& shelf() {
  static Shelf& the_shelf = *new Shelf;
  return the_shelf;
}

const Book& book(int release) {
  if (release == 0) return book();
  const MutexLock lock(shelf().mutex);
  const Book*& found = shelf().books[release];
  if (!found) found = read_book(release);
  return *found;
}

using Descriptions = std::unordered_map<std::string_view, std::string_view>;

const Descriptions& descriptions() {
  static const Descriptions& the_words = *[] {
    auto words = new Descriptions;
    for (std::string_view line : split(descriptions_text(), '\n')) {
      if (line.empty() || line[0] == '#') continue;
      std::size_t blank = line.find(' ');
      if (blank != std::string_view::npos)
        (*words)[line.substr(0, blank)] = trim(line.substr(blank));
    }
    return words;
  }();
  return the_words;
}

}  // namespace

const Catalog& builtin_catalog(int release) { return book(release).catalog; }

const Schema* builtin_schema(std::string_view group, std::string_view version,
                             std::string_view kind, int release) {
  const Book& of_release = book(release);
  auto it = of_release.kinds.find(cat(group, '/', version, '/', kind));
  if (it != of_release.kinds.end()) return it->second;
  auto meta = of_release.meta_kinds.find(kind);
  bool known = of_release.versions.contains(cat(group, '/', version));
  return meta != of_release.meta_kinds.end() && known ? meta->second : nullptr;
}

const Schema* builtin_type(std::string_view name) {
  auto it = book().types.find(name);
  return it == book().types.end() ? nullptr : it->second;
}

const GroupVersionKind* builtin_kind(const Schema& schema) {
  if (auto it = book().schema_kinds.find(&schema); it != book().schema_kinds.end())
    return &it->second;
  const MutexLock lock(shelf().mutex);
  for (const auto& [release, other] : shelf().books) {
    if (auto it = other->schema_kinds.find(&schema); it != other->schema_kinds.end())
      return &it->second;
  }
  return nullptr;
}

const std::string& builtin_digest() {
  static const std::string& digest = *[] {
    std::string all;
    for (const SchemaText& text : schema_texts()) all.append(text.text);
    all.append(descriptions_text());
    unsigned char bytes[SHA256_DIGEST_LENGTH];
    SHA256(reinterpret_cast<const unsigned char*>(all.data()), all.size(), bytes);
    return new std::string(reinterpret_cast<const char*>(bytes), sizeof bytes);
  }();
  return digest;
}

std::string_view description(std::string_view full_name, std::string_view field) {
  // "io.k8s.api.core.v1.PodSpec" is core, v1, PodSpec.
  auto parts = split(full_name, '.');
  if (parts.size() < 3) return {};
  std::string_view name = parts[parts.size() - 1];
  std::string_view version = parts[parts.size() - 2];
  std::string_view group = parts[parts.size() - 3];
  std::string tail = field.empty() ? std::string(name) : cat(name, '.', field);
  const Descriptions& words = descriptions();
  for (const std::string& key : {cat(group, '/', version, '.', tail), cat(group, "/*.", tail),
                                 field.empty() ? std::string() : cat("*.", field)}) {
    if (auto it = words.find(key); it != words.end()) return it->second;
  }
  return {};
}

}  // namespace dibs::api
