#pragma once
// A list in the form that the client asked for, made item by item while it is sent (pieces.h): as
// text or in protobuf. Both borrow the context and the resource.

#include <memory>
#include <vector>

#include "api/schema/schema.h"
#include "server/context.h"
#include "server/pieces.h"
#include "server/presenting.h"
#include "store/store.h"

namespace dibs::server {

/// Has what comes first converted already, as long as the client can be told: the errors of a
/// conversion webhook.
Result<std::shared_ptr<Pieces>> list_pieces(const Context& context, const Resource& resource,
                                            std::vector<store::RecordPtr> records,
                                            const ListMeta& meta, bool packed);
/// `schema` of the list; null: of metadata alone.
Result<std::shared_ptr<Pieces>> protobuf_pieces(const Context& context, const Resource& resource,
                                                std::vector<store::RecordPtr> records,
                                                const ListMeta& meta, const api::Schema* schema,
                                                bool packed);

}  // namespace dibs::server
