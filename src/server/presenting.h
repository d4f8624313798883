#pragma once
// An object or list in the form and version a client asked for.

#include <memory>
#include <string>
#include <vector>

#include "server/context.h"
#include "server/pieces.h"
#include "store/store.h"

namespace dibs::server {

inline constexpr const char* kProtobuf = "application/vnd.kubernetes.protobuf";

/// An object, list, Status or the like by its kind; nothing where that is of no built-in schema.
std::optional<std::string> to_protobuf(const Value& value);

/// An object, as it is stored or in any other version that a webhook converts from, in the version
/// of `resource`. Errors: of a conversion webhook, never where the object has that version already.
Result<Value> to_served(const Resource& resource, const Value& stored);
/// The same of many, which a webhook converts at once.
Result<std::vector<Value>> to_served_all(const Resource& resource, std::vector<Value> stored);
/// The same for a request of its resource, which gives its seat up where a webhook is to be waited
/// for.
Result<std::vector<Value>> served_to(Context& context, std::vector<Value> stored);
/// True when a record's bytes, its resourceVersion put in, are what the client asked for.
bool is_sent_as_stored(const Context& context, const Resource& resource,
                       const store::ValueBytes& value);

/// The answer with one object (stored version) in the negotiated form.
Response present_object(const Context& context, const Resource& resource, int status,
                        const Value& stored);
/// An object that was just written: `bytes` is its stored form, `stored` the same without its
/// resourceVersion.
Response present_written(const Context& context, const Resource& resource, int status, Value stored,
                         std::string_view bytes, store::Revision revision);
/// True when present_written() only copies bytes.
bool presents_bytes(const Context& context, const Resource& resource);
/// The same straight from the store's bytes where no conversion is asked for.
Result<Response> present_record(const Context& context, const Resource& resource,
                                const store::Record& record);
/// Any JSON document (Status, Scale, a review) in the negotiated media type.
Response present_value(const Context& context, int status, const Value& value);

/// Stored bytes of a list from which it is made in pieces.
inline constexpr std::size_t kInPieces = 1024 * 1024;

struct ListMeta {
  store::Revision revision = 0;
  std::string continue_token;
  std::optional<std::size_t> remaining;
};
/// A response, or its head and the body that follows.
struct ListAnswer {
  Response response;
  std::shared_ptr<Pieces> pieces;  // borrow the context
};
Result<ListAnswer> present_list(const Context& context, const Resource& resource,
                                std::vector<store::RecordPtr> records, const ListMeta& meta);
/// A list of objects given as values, in the stored version.
Response present_values(const Context& context, const Resource& resource,
                        const std::vector<Value>& objects, const ListMeta& meta);

/// Reads a record for a caller in this process: without managedFields where it does not want them.
Result<Value> read_record(const Context& context, const store::Record& record);
/// The object of an event in the form of the context, which is not a Table. `stored` is in the
/// version of the resource already where a webhook converts.
Result<Value> event_value(const Context& context, const Resource& resource, const Value& stored);
/// {"type":…,"object":…}\n in the form of the context; `columns`: with column definitions, for the
/// first event of a Table watch.
std::string present_event(const Context& context, const Resource& resource, std::string_view type,
                          const Value& stored, bool columns);

}  // namespace dibs::server
