#pragma once
// GET of an object or a list.

#include "base/result.h"
#include "server/context.h"
#include "server/objects.h"
#include "server/presenting.h"

namespace dibs::server {

Result<Response> handle_get(Context& context, Objects& objects);
Result<ListAnswer> handle_list(Context& context, Objects& objects);

}  // namespace dibs::server
