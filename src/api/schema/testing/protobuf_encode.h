#pragma once
// Protobuf bodies as clients send them. The server reads them only: it answers in JSON.

#include <string>

#include "api/schema/schema.h"
#include "json/value.h"

namespace dibs::api {

/// The message of an object in normal form, in its envelope; kind and apiVersion are the object's.
std::string encode_envelope(const json::Value& object, const Schema& schema);

}  // namespace dibs::api
