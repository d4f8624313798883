#pragma once
// Protobuf answers of the API, as upstream writes messages: fields in the order of their numbers,
// value fields always, pointers only when set, maps by sorted keys. protobuf.h is the way back.

#include <cstdint>
#include <string>
#include <string_view>

#include "api/schema/schema.h"
#include "json/value.h"

namespace dibs::api {

/// The message of an object in normal form, in its envelope; kind and apiVersion are the object's.
std::string encode_envelope(const json::Value& object, const Schema& schema);
/// The same of a PartialObjectMetadata or a list of them, which no schema describes.
std::string encode_metadata_envelope(const json::Value& object);

// The same of a list, item by item. A message says how long it is before it begins: so all items
// are made once for their size, and again to be sent, where the whole would be too much to keep.

/// `list`: its schema; null: items are PartialObjectMetadata.
std::string encode_list_item(const json::Value& item, const Schema* list);
/// What comes before items of so many bytes. `frame` is the list without them.
std::string encode_list_begin(const json::Value& frame, std::uint64_t items);
std::string encode_list_end();

/// One event of a watch, with its length before it; `envelope` is its object.
std::string encode_watch_frame(std::string_view type, std::string_view envelope);

}  // namespace dibs::api
