#include "server/initial_state.h"

#include "server/event_lines.h"
#include "server/presenting.h"
#include "server/stored.h"

namespace dibs::server {
namespace {

constexpr std::size_t kPieceBytes = 64 * 1024;
constexpr std::size_t kPieceRecords = 128;

/// One object where the selection names it, and can say where it lies; else all of them.
Result<store::Listing> candidates(const store::Store& store, const Context& context,
                                  const Selection& selection) {
  const Resource& resource = *context.resource;
  const std::string& name_space = context.info.name_space;
  store::RangeQuery query;
  query.prefix = resource.namespace_prefix(name_space);
  const auto name = selection.exact_name();
  const bool known = name && !name->empty() && (!resource.namespaced || !name_space.empty());
  if (!known) return store.range(query);
  query.from = resource.key(name_space, *name);
  query.limit = 1;
  DIBS_TRY(store::Listing listing, store.range(query));
  std::erase_if(listing.records, [&](const auto& record) { return record->key != query.from; });
  return listing;
}

}  // namespace

Result<std::shared_ptr<InitialState>> InitialState::read(const store::Store& store,
                                                         std::shared_ptr<const Context> context,
                                                         const Selection& selection) {
  DIBS_TRY(store::Listing listing, candidates(store, *context, selection));
  if (!selection.everything()) {
    std::erase_if(listing.records, [&](const store::RecordPtr& record) {
      const auto object = decode_stored(*record);
      return !object.ok() || !selection.matches(to_served(*context->resource, *object));
    });
    listing.records.shrink_to_fit();
  }
  return std::shared_ptr<InitialState>(
      new InitialState(std::move(context), std::move(listing.records), listing.revision));
}

InitialState::InitialState(std::shared_ptr<const Context> context,
                           std::vector<store::RecordPtr> records, store::Revision revision)
    : context_(std::move(context)), records_(std::move(records)), revision_(revision) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < records_.size(); ++i) {
    if (i == 0 || bytes >= kPieceBytes || i - starts_.back() == kPieceRecords) {
      starts_.push_back(i);
      bytes = 0;
    }
    bytes += records_[i]->value->size();
  }
  made_.resize(starts_.size());
}

SharedBytes InitialState::piece(std::size_t index, Time now) {
  const MutexLock lock(mutex_);
  if (SharedBytes made = made_[index].lock()) return made;
  Context context;
  context.resource = context_->resource;
  context.answer = context_->answer;
  context.target = context_->target;
  context.now = now;
  const std::size_t end = index + 1 < starts_.size() ? starts_[index + 1] : records_.size();
  std::string out;
  for (std::size_t i = starts_[index]; i < end; ++i) {
    const store::Record& record = *records_[i];
    // The first event of a Table has its columns.
    out.append(event_line(context, record, record.modified, Change::added,
                          i == 0 && context.answer.form == Form::table));
  }
  SharedBytes made = share(std::move(out));
  made_[index] = made;
  return made;
}

}  // namespace dibs::server
