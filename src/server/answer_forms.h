#pragma once
// What the forms of answers are made of: an object, its metadata alone, rows of a Table, an item of
// a list. Shared by answers that are made as a whole (presenting.cc) and in pieces
// (list_pieces.cc).

#include <vector>

#include "api/print/table.h"
#include "server/context.h"
#include "server/presenting.h"

namespace dibs::server {

Value metadata_only(const Answer& answer, const Value& object);

std::vector<api::Column> columns_of(const Resource& resource);
Value table_row(const Context& context, const Resource& resource, const Value& served);
Value table_of(const Context& context, const Resource& resource, Value metadata, bool columns,
               const std::vector<Value>& served);

/// An object (not a list) in the form of the context. `columns`: with those of a Table.
Value in_form(const Context& context, const Resource& resource, const Value& served,
              bool columns = true);

/// `bare`: the member is there even when there is nothing to go on with, as lists of custom
/// resources have it.
Value list_metadata(const ListMeta& meta, bool bare);

/// The answer is made of stored bytes, as far as the version shows those as they are.
bool plain_form(const Context& context);
/// A stored object in the version that the client asked for.
Result<Value> shown_form(const Context& context, const Resource& resource, const Value& stored);

/// Items of a list have no kind and apiVersion, but those of custom resources do, and those that
/// need not be of the list's version.
bool names_items(const Context& context, const Resource& resource);
Value as_item(const Context& context, const Resource& resource, Value object);

}  // namespace dibs::server
