#pragma once
// The image that comes with the program, for machines without a registry.
//
// It is made from the machine's static busybox, with printenv, a bash that is its shell and a page
// for its web server, and stands in for the names in builtin_names(), those that examples use,
// where no registry can be reached; under the names of builtin_aliases() it is there like an image
// that was imported.

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "json/value.h"

namespace dibs::node {

/// Each is an image with an id of its own, so that a container shows the name it was started by.
struct BuiltinName {
  std::string name;  // in full: docker.io/library/busybox:1.36
  std::vector<std::string> command;
};

const std::vector<BuiltinName>& builtin_names();

/// In front of the id where others show repository and digest: nobody takes it for the real image.
inline constexpr const char* kBuiltinRepository = "dibs.dev/built-in";
/// Under this name it is always there: dibs.dev/built-in:latest, for pods of the cluster's own.
const std::vector<BuiltinName>& builtin_own_name();

/// What `--image-alias` says: a name with a tag is that one, a name without one all tags that
/// builtin_names() has of it, or :latest.
Result<std::vector<BuiltinName>> builtin_aliases(const std::vector<std::string>& names);

/// The OCI image configuration of one of them.
json::Value builtin_config(const BuiltinName& name);

/// A folder that only its owner gets into: images bring programs that run as root for whoever can
/// reach them.
Result<> make_private_folder(const std::string& path);

/// Makes the layer below `layers` where it is not there yet; its folder's name. Nothing when this
/// machine has no static busybox.
Result<std::optional<std::string>> make_builtin_layer(const std::string& layers);

}  // namespace dibs::node
