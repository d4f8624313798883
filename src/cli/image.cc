#include "cli/image.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>

#include "base/image_reference.h"
#include "base/strings.h"
#include "node/runtime/image_store.h"
#include "node/runtime/pick_runtime.h"

namespace dibs::cli {
namespace {

node::ImageStore open_store(const ImageFlags& flags) {
  return node::ImageStore(flags.folder.empty() ? node::default_image_folder() : flags.folder);
}

int fail(const Error& error) {
  std::cerr << "dibs image: " << error.message() << '\n';
  return 1;
}

std::string human_size(std::uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1fMB", static_cast<double>(bytes) / 1e6);
  return text;
}

/// Built in: not the image of that name, and used only where nobody can give the real one.
std::string origin_of(const node::StoredImage& image) {
  std::string origin(node::name_of(image.origin));
  if (image.origin == node::ImageOrigin::builtin) origin += ", where no registry can be reached";
  return origin;
}

}  // namespace

int import_image(const ImageFlags& flags) {
  node::ImageStore store = open_store(flags);
  const auto images = store.import(flags.file, flags.name);
  if (!images) return fail(images.error());
  for (const auto& image : *images) {
    std::cout << "imported " << image.name << " (" << image.info.id << ")\n";
  }
  return 0;
}

int list_images(const ImageFlags& flags) {
  node::ImageStore store = open_store(flags);
  auto images = store.list();
  if (!images) return fail(images.error());
  for (const auto& builtin : node::builtin_names()) {
    auto found = store.stand_in(builtin.name);
    if (!found) return fail(found.error());
    if (*found) images->push_back(std::move(**found));
  }
  std::vector<std::array<std::string, 5>> rows = {{"IMAGE", "TAG", "ID", "SIZE", "ORIGIN"}};
  for (const auto& image : *images) {
    if (image.info.tags.empty()) {
      rows.push_back({"<none>", "<none>", image.info.id.substr(7, 13), human_size(image.info.size),
                      origin_of(image)});
    }
    for (const auto& tag : image.info.tags) {
      const auto reference = parse_image_reference(tag);
      if (!reference) continue;
      rows.push_back({reference->repository, reference->tag.empty() ? "<none>" : reference->tag,
                      image.info.id.substr(7, 13), human_size(image.info.size), origin_of(image)});
    }
  }
  std::array<std::size_t, 5> widths = {};
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - row[i].size() + 3, ' ');
    }
    std::cout << line << '\n';
  }
  return 0;
}

int remove_images(const ImageFlags& flags) {
  node::ImageStore store = open_store(flags);
  for (const auto& name : flags.names) {
    const auto removed = store.remove(name);
    if (!removed) return fail(removed.error());
    std::cout << "removed " << name << '\n';
  }
  return 0;
}

}  // namespace dibs::cli
