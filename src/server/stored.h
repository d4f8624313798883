#pragma once
// The form of an object in the store, and the short way from there to the wire.
//
// A stored value is JSON of the storage version, compact, without metadata.resourceVersion (the
// store's revision is it), and always begins {"kind":K,"apiVersion":V,"metadata":{. So an answer in
// that version is the bytes with the resourceVersion put in, and a list item the same without kind
// and apiVersion: no parsing.

#include <string>
#include <string_view>

#include "base/result.h"
#include "json/share.h"
#include "json/value.h"
#include "store/store.h"

namespace dibs::server {

std::string encode_stored(const json::Value& object);
/// What a stored value of a kind begins with.
std::string stored_head(std::string_view kind, std::string_view api_version);
/// By its two ends: what follows the head is not looked at.
bool looks_stored(std::string_view bytes);
/// A write of the object, with which goes what readers need not parse again.
store::Op stored_op(std::string key, const json::Value& object, store::Revision expected);

/// That, as a record has it at hand.
store::AttachmentPtr attachment_for(const json::Value& object);

/// The object with its resourceVersion. Errors: internal, for bytes that are not one of ours.
Result<json::Value> decode_stored(const store::Record& record);
/// The same without metadata.managedFields, in the form for those who keep it (object_forms.h).
Result<json::Value> decode_kept(const store::Record& record, json::Pool& trees);

/// Appends the object as it goes on the wire; `version` shows as its resourceVersion, where it is
/// not empty. False, and nothing is appended, for bytes that do not begin as above: a damaged value
/// is then found out by decode_stored().
[[nodiscard]] bool append_wire(std::string& out, std::string_view stored, std::string_view version);
/// The same without kind and apiVersion.
[[nodiscard]] bool append_wire_item(std::string& out, std::string_view stored,
                                    std::string_view version);

}  // namespace dibs::server
