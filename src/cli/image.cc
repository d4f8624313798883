#include "cli/image.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <memory>

#include "base/image_reference.h"
#include "base/strings.h"
#include "cli/columns.h"
#include "cli/process.h"
#include "json/parse.h"
#include "node/pods/pull_secrets.h"
#include "node/runtime/image_store.h"
#include "node/runtime/pick_runtime.h"
#include "runtime/files.h"

namespace dibs::cli {
namespace {

node::ImageStore open_store(const ImageFlags& flags) {
  return node::ImageStore(flags.folder.empty() ? node::default_image_folder() : flags.folder);
}

int fail(std::string_view command, const Error& error) {
  return exit_status(cat("image ", command), error);
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

/// All of it, to its end. Whatever reads the file begins at its beginning.
bool copy_input(std::FILE* file) {
  char buffer[65536];
  for (std::size_t got = 0; (got = std::fread(buffer, 1, sizeof buffer, stdin)) > 0;) {
    if (std::fwrite(buffer, 1, got, file) != got) return false;
  }
  return std::ferror(stdin) == 0 && std::fflush(file) == 0;
}

/// Of the image's registry, in a file as `docker login` writes it; "": none.
Result<node::PullLogin> login_for(const std::string& image, const std::string& file) {
  if (file.empty()) return node::PullLogin();
  DIBS_TRY(const std::string text, runtime::system_files().read(file));
  if (const auto read = json::parse(text); !read.ok()) {
    return read.error().within(cat("--authfile ", file));
  }
  using json::Value;
  // As a pod has them.
  const auto logins = node::pull_logins(
      image,
      {Value::object({{"type", "kubernetes.io/dockerconfigjson"},
                      {"data", Value::object({{".dockerconfigjson", base64_encode(text)}})}})});
  return logins.empty() ? node::PullLogin() : logins.front();
}

}  // namespace

int load_image(const ImageFlags& flags) {
  node::ImageStore store = open_store(flags);
  std::string file = flags.file;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> received(nullptr, &std::fclose);
  if (file == "-") {
    received.reset(std::tmpfile());
    if (!received || !copy_input(received.get())) {
      return fail("load",
                  Error::internal(cat("standard input cannot be kept: ", std::strerror(errno))));
    }
    // Of this process: another one unpacks it.
    file = cat("/proc/", ::getpid(), "/fd/", ::fileno(received.get()));
  }
  const auto images = store.import(file, flags.name);
  if (!images) {
    std::string why = images.error().message();
    if (received && why.starts_with(file)) why.replace(0, file.size(), "standard input");
    return fail("load", Error(images.error().code(), why));
  }
  for (const auto& image : *images) {
    std::cout << "loaded " << image.name << " (" << image.info.id << ")\n";
  }
  return 0;
}

int pull_images(const ImageFlags& flags) {
  node::ImageStore store(flags.folder.empty() ? node::default_image_folder() : flags.folder,
                         {.insecure_registries = flags.insecure_registries});
  for (const auto& name : flags.names) {
    const auto login = login_for(name, flags.logins);
    if (!login) return fail("pull", login.error());
    const auto image = store.pull(name, *login);
    if (!image) return fail("pull", image.error());
    std::cout << "pulled " << image->name << " (" << image->info.id << ")\n";
  }
  return 0;
}

int list_images(const ImageFlags& flags) {
  node::ImageStore store = open_store(flags);
  auto images = store.list();
  if (!images) return fail("list", images.error());
  for (const auto& builtin : node::builtin_names()) {
    auto found = store.stand_in(builtin.name);
    if (!found) return fail("list", found.error());
    if (*found) images->push_back(std::move(**found));
  }
  std::vector<std::vector<std::string>> rows = {{"IMAGE", "TAG", "ID", "SIZE", "ORIGIN"}};
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
  std::cout << in_columns(rows);
  return 0;
}

int remove_images(const ImageFlags& flags) {
  node::ImageStore store = open_store(flags);
  for (const auto& name : flags.names) {
    const auto removed = store.remove(name);
    if (!removed) return fail("remove", removed.error());
    std::cout << "removed " << name << '\n';
  }
  return 0;
}

}  // namespace dibs::cli
