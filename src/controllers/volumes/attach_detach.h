#pragma once
// Which volumes should be attached to which nodes: functions of API objects.

#include <string>
#include <vector>

#include "json/value.h"

namespace dibs::controllers {

/// "csi-…": what the VolumeAttachment of a volume on a node is called, by its driver's name for it.
std::string attachment_name(const json::Value& volume, std::string_view node);
/// As a node's status.volumesInUse and volumesAttached name it; "" for volumes of other kinds.
std::string attached_volume_name(const json::Value& volume);
/// The pod may use its volumes, or has them mounted: on a node, and not ended.
bool holds_volumes(const json::Value& pod);
/// Several nodes may have it at once.
bool is_for_several_nodes(const json::Value& volume);
/// A new VolumeAttachment.
json::Value attachment_of(const json::Value& volume, std::string_view node);

}  // namespace dibs::controllers
