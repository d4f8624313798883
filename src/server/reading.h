#pragma once
// GET of an object or a list.

#include "base/result.h"
#include "server/context.h"
#include "server/objects.h"

namespace dibs::server {

Result<Response> handle_get(Context& context, Objects& objects);
Result<Response> handle_list(Context& context, Objects& objects);

}  // namespace dibs::server
