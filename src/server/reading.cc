#include "server/reading.h"

#include <algorithm>
#include <charconv>

#include "base/strings.h"
#include "server/list_options.h"
#include "server/presenting.h"
#include "server/selection.h"
#include "server/status.h"
#include "server/stored.h"

namespace dibs::server {
namespace {

/// Of objects that are converted before it is known whether they are wanted.
constexpr std::size_t kMostConverted = 500;

/// With a token by which the list can be gone on with, as it is now.
ListAnswer expired_token(const Context& context, const ContinueToken& token) {
  const Error error = Error::expired(
      "The provided continue parameter is too old to display a consistent list result. You can "
      "start a new list without the continue parameter, or use the continue token in this response "
      "to retrieve the remainder of the results. Continuing with the provided token results in an "
      "inconsistent list - objects that were created, modified, or deleted between the time the "
      "first chunk was returned and now may show up in the list.");
  Value status = status_value(error);
  status.mut("metadata").set("continue", ContinueToken{-1, token.start}.encode());
  return {present_value(context, http_status(error), status), nullptr};
}

/// Reads on until `limit` matching records are found or the prefix ends.
struct Page {
  std::vector<store::RecordPtr> records;
  std::vector<Value> served;  // the same, where a webhook converts and it is not long
  store::Revision revision = 0;
  bool more = false;
  std::size_t remaining = 0;
};

Result<Page> read_page(store::Store& store, store::RangeQuery query, std::size_t limit,
                       const Resource& resource, const Selection& selection) {
  Page page;
  bool all = selection.everything();
  query.limit = all ? limit : 0;
  DIBS_TRY(store::Listing listing, store.range(query));
  page.revision = listing.revision;
  if (all) {
    page.records = std::move(listing.records);
    page.more = listing.more;
    page.remaining = listing.remaining;
    return page;
  }
  for (auto& record : listing.records) {
    DIBS_TRY(Value object, decode_stored(*record));
    DIBS_TRY(const Value served, to_served(resource, object));
    if (!selection.matches(served)) continue;
    if (limit > 0 && page.records.size() == limit) {
      page.more = true;
      break;
    }
    page.records.push_back(std::move(record));
  }
  return page;
}

/// The same where a webhook converts: all that is read, or, where a selection has to see objects to
/// know which it wants, a part after the other until the page is full. What comes to be long is not
/// kept but converted when it is sent: whoever reads slowly is not to take so much memory.
Result<Page> read_converted(Context& context, store::Store& store, store::RangeQuery query,
                            std::size_t limit, const Selection& selection) {
  Page page;
  const bool all = selection.everything();
  const auto is_long = [&](std::size_t bytes) {
    return bytes >= kInPieces && !context.request.takes_values;
  };
  std::size_t kept = 0;
  query.limit = limit;
  do {
    DIBS_TRY(store::Listing listing, store.range(query));
    page.revision = listing.revision;
    page.more = listing.more;
    page.remaining = listing.remaining;
    if (all) {
      for (const auto& record : listing.records) kept += record->value->size();
      if (is_long(kept)) {
        page.records = std::move(listing.records);
        return page;
      }
    }
    if (page.more) query.from = cat(listing.records.back()->key, std::string_view("\0", 1));
    for (std::size_t begin = 0, end = 0; begin < listing.records.size(); begin = end) {
      std::vector<Value> objects;
      for (std::size_t bytes = 0;
           end < listing.records.size() && objects.size() < kMostConverted && bytes < kInPieces;) {
        const store::Record& record = *listing.records[end++];
        DIBS_TRY(Value object, read_record(context, record));
        objects.push_back(std::move(object));
        bytes += record.value->size();
      }
      DIBS_TRY(objects, served_to(context, std::move(objects)));
      for (std::size_t i = 0; i < objects.size(); ++i) {
        if (!all && !selection.matches(objects[i])) continue;
        if (limit > 0 && page.records.size() == limit) {
          page.more = true;
          return page;
        }
        auto& record = listing.records[begin + i];
        if (!all) kept += record->value->size();
        page.records.push_back(std::move(record));
        if (is_long(kept)) {
          page.served.clear();
        } else {
          page.served.push_back(std::move(objects[i]));
        }
      }
    }
    // All parts are of one moment.
    query.at = page.revision;
    query.limit = std::min(2 * query.limit, kMostConverted);
  } while (page.more && page.records.size() < limit);
  return page;
}

}  // namespace

Result<Response> handle_get(Context& context, Objects& objects) {
  const Resource& resource = *context.resource;
  auto version = context.target.get("resourceVersion");
  if (!version.empty()) {
    if (auto fault = resource_version_fault(version)) return Error::plain(*fault);
    store::Revision wanted = 0;
    std::from_chars(version.data(), version.data() + version.size(), wanted);
    if (wanted > objects.store().revision())
      return version_too_large(wanted, objects.store().revision());
  }
  auto record = objects.store().get(resource.key(context.info.name_space, context.info.name));
  if (!record) return not_found_error(resource.group, resource.plural, context.info.name);
  return present_record(context, resource, *record);
}

Result<ListAnswer> handle_list(Context& context, Objects& objects) {
  const Resource& resource = *context.resource;
  DIBS_TRY(ListOptions options, ListOptions::parse(context.target, false));
  DIBS_TRY(Selection selection, Selection::parse(context.target, resource));
  store::Store& store = objects.store();

  store::RangeQuery query;
  query.prefix = resource.namespace_prefix(context.info.name_space);
  std::size_t limit = options.limit;
  if (!options.continue_token.empty()) {
    if (options.version_given && options.version != 0) {
      return Error::bad_request("specifying resource version is not allowed when using continue");
    }
    DIBS_TRY(ContinueToken token, ContinueToken::decode(options.continue_token));
    query.from = query.prefix + token.start;
    query.at = token.version > 0 ? token.version : 0;
    if (query.at > 0 && query.at < store.compacted()) return expired_token(context, token);
    if (options.version_given) limit = 0;
  } else if (options.version_given) {
    if (options.version > store.revision())
      return version_too_large(options.version, store.revision());
    bool exact = options.match == VersionMatch::exact ||
                 (options.match == VersionMatch::unset && limit > 0 && options.version > 0);
    if (exact) query.at = options.version;
    if (options.version == 0) limit = 0;
  }

  DIBS_TRY(Page page, resource.conversion ? read_converted(context, store, query, limit, selection)
                                          : read_page(store, query, limit, resource, selection));
  ListMeta meta{page.revision, {}, std::nullopt};
  if (page.more) {
    std::string_view last = page.records.back()->key;
    ContinueToken token{page.revision, std::string(last.substr(query.prefix.size())) + '\0'};
    meta.continue_token = token.encode();
    if (selection.everything()) meta.remaining = page.remaining;
  }
  if (resource.conversion && page.served.size() == page.records.size())
    return ListAnswer{present_values(context, resource, page.served, meta), nullptr};
  // A long one has none while it is sent.
  if (resource.conversion) context.seat.reset();
  return present_list(context, resource, std::move(page.records), meta);
}

}  // namespace dibs::server
