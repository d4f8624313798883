#pragma once
// POST, PUT, PATCH and DELETE of objects.

#include "base/result.h"
#include "server/body.h"
#include "server/context.h"
#include "server/objects.h"

namespace dibs::server {

Result<Response> handle_create(Context& context, Objects& objects);
Result<Response> handle_update(Context& context, Objects& objects);
Result<Response> handle_patch(Context& context, Objects& objects);
Result<Response> handle_delete(Context& context, Objects& objects);
Result<Response> handle_delete_collection(Context& context, Objects& objects);

/// DeleteOptions of the body or, where there is none, of the query.
Result<DeleteOptions> read_delete_options(Context& context);

/// Versioned defaults, then the stored version, over `existing` (stored; null for a new object).
/// Errors: of the conversion, which may refuse to change what the version cannot show.
Result<Value> with_defaults(const Resource& resource, Value object, const Value* existing = nullptr,
                            bool status_write = false);

/// The object after a patch of any type, decoded and in the stored version; `served` is what the
/// patch is applied to, in the version of `expected` (null: there is none yet, for apply).
Result<Value> patched(Context& context, const Expected& expected, const Resource& resource,
                      const Value* served);

/// True when the Content-Type is the one of server-side apply.
bool is_apply(const Context& context);

}  // namespace dibs::server
