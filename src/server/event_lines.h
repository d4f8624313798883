#pragma once
// Events of watches as lines of JSON, in the form that a client asked for.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "server/context.h"
#include "store/store.h"

namespace dibs::server {

enum class Change : std::uint64_t { added, modified, deleted };

std::string_view change_name(Change change);
std::string error_event(const Context& context, const Error& error);

/// The line of one change. `columns`: of the first event in a Table. Ages in tables are as of
/// `context.now`. `served`: the object as a webhook has converted it, where one does.
std::string event_line(const Context& context, const store::Record& record,
                       store::Revision revision, Change change, bool columns,
                       const Value* served = nullptr);

/// All that decides how an event of the context's watch looks.
std::string form_of(const Context& context);

}  // namespace dibs::server
