#include "api/schema/builtin.h"

#include <openssl/sha.h>

#include <cstdio>
#include <cstdlib>
#include <unordered_map>

#include "api/schema/schema_text.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

const SchemaBook& book() {
  static const SchemaBook& the_book = []() -> const SchemaBook& {
    auto read = read_schemas(schema_texts());
    if (!read.ok()) {
      // The texts are part of the binary: only a build gone wrong comes here.
      std::fprintf(stderr, "schema: %s\n", read.error().message().c_str());
      std::abort();
    }
    return *std::move(read).value().release();
  }();
  return the_book;
}

using Kinds = std::unordered_map<const Schema*, GroupVersionKind>;

const Kinds& kinds() {
  static const Kinds& the_kinds = *[] {
    auto found = new Kinds;
    for (const auto& [path, schema] : book().kinds) {
      auto parts = split(path, '/');
      (*found)[schema] = {std::string(parts[0]), std::string(parts[1]), std::string(parts[2])};
    }
    for (const auto& [kind, schema] : book().meta_kinds) (*found)[schema] = {"", "v1", kind};
    return found;
  }();
  return the_kinds;
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

const Catalog& builtin_catalog() { return book().catalog; }

const Schema* builtin_schema(std::string_view group, std::string_view version,
                             std::string_view kind) {
  auto it = book().kinds.find(cat(group, '/', version, '/', kind));
  if (it != book().kinds.end()) return it->second;
  auto meta = book().meta_kinds.find(kind);
  return meta != book().meta_kinds.end() && builtin_version(group, version) ? meta->second
                                                                            : nullptr;
}

bool builtin_version(std::string_view group, std::string_view version) {
  return book().versions.contains(cat(group, '/', version));
}

const Schema* builtin_type(std::string_view name) {
  auto it = book().types.find(name);
  return it == book().types.end() ? nullptr : it->second;
}

const GroupVersionKind* builtin_kind(const Schema& schema) {
  auto it = kinds().find(&schema);
  return it == kinds().end() ? nullptr : &it->second;
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

std::vector<const Schema*> builtin_types(std::string_view package) {
  std::vector<const Schema*> found;
  std::string prefix = cat(package, '.');
  for (auto it = book().types.lower_bound(prefix); it != book().types.end(); ++it) {
    if (!it->first.starts_with(prefix)) break;
    found.push_back(it->second);
  }
  return found;
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
