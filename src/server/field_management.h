#pragma once
// metadata.managedFields around a write: who writes, and through which door.

#include <memory>
#include <optional>
#include <string>

#include "api/merge/apply.h"
#include "server/context.h"

namespace dibs::server {

/// Says of a request what the record of owners must know. Lives as long as the context and
/// resource.
class WriterOf {
 public:
  WriterOf(const Context& context, const Resource& resource);
  const api::FieldWriter& get() const { return writer_; }

 private:
  std::string api_version_;
  api::VersionConverter convert_;
  api::FieldSet reset_;
  api::FieldWriter writer_;
};

/// The object (stored version) with its managedFields brought up to date; `old` is null for a new
/// object. Fields are told apart in the version of the request, as clients know them. `forgets`:
/// the client empties the record.
Value track_write(const Context& context, const Resource& resource, const Value* old, Value object,
                  bool forgets);

/// The field manager of a request: the parameter, or what stands before the "/" of the User-Agent.
std::string field_manager_of(const net::Request& request, const net::Target& target);

}  // namespace dibs::server
