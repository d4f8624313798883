#pragma once
// The image that comes with the program, for machines without a registry.
//
// It is made from the machine's static busybox, with printenv and a bash that is its shell, and
// answers to the names in builtin_names(): those that examples use.

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

/// The OCI image configuration of one of them.
json::Value builtin_config(const BuiltinName& name);

/// Makes the layer below `layers` where it is not there yet; its folder's name. Nothing when this
/// machine has no static busybox.
Result<std::optional<std::string>> make_builtin_layer(const std::string& layers);

}  // namespace dibs::node
