#include "server/reading.h"

#include <charconv>

#include "base/strings.h"
#include "server/list_options.h"
#include "server/presenting.h"
#include "server/selection.h"
#include "server/status.h"
#include "server/stored.h"

namespace dibs::server {
namespace {

Error expired_token(const ContinueToken& token) {
  ContinueToken inconsistent{-1, token.start};
  return Error::expired(
      cat("The provided continue parameter is too old to display a consistent list result. You can "
          "start a "
          "new list without the continue parameter, or use the continue token in this response to "
          "retrieve "
          "the remainder of the results. Continuing with the provided token results in an "
          "inconsistent list "
          "- objects that were created, modified, or deleted between the time the first chunk was "
          "returned "
          "and now may show up in the list. ",
          inconsistent.encode()));
}

/// Reads on until `limit` matching records are found or the prefix ends.
struct Page {
  std::vector<store::RecordPtr> records;
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
    if (!selection.matches(to_served(resource, object))) continue;
    if (limit > 0 && page.records.size() == limit) {
      page.more = true;
      break;
    }
    page.records.push_back(std::move(record));
  }
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
    if (query.at > 0 && query.at < store.compacted()) return expired_token(token);
    if (options.version_given) limit = 0;
  } else if (options.version_given) {
    if (options.version > store.revision())
      return version_too_large(options.version, store.revision());
    bool exact = options.match == VersionMatch::exact ||
                 (options.match == VersionMatch::unset && limit > 0 && options.version > 0);
    if (exact) query.at = options.version;
    if (options.version == 0) limit = 0;
  }

  DIBS_TRY(Page page, read_page(store, query, limit, resource, selection));
  ListMeta meta{page.revision, {}, std::nullopt};
  if (page.more) {
    std::string_view last = page.records.back()->key;
    ContinueToken token{page.revision, std::string(last.substr(query.prefix.size())) + '\0'};
    meta.continue_token = token.encode();
    if (selection.everything()) meta.remaining = page.remaining;
  }
  return present_list(context, resource, std::move(page.records), meta);
}

}  // namespace dibs::server
