#include "server/initial_state.h"

#include "server/event_lines.h"
#include "server/presenting.h"
#include "server/stored.h"

namespace dibs::server {
namespace {

constexpr std::size_t kPieceBytes = 64 * 1024;
constexpr std::size_t kPieceRecords = 128;
/// Of what is converted to see whether it is selected.
constexpr std::size_t kPartBytes = 1024 * 1024;
constexpr std::size_t kPartRecords = 500;

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

Result<std::vector<Value>> decoded(const std::vector<store::RecordPtr>& records, std::size_t begin,
                                   std::size_t end) {
  std::vector<Value> objects;
  for (std::size_t i = begin; i < end; ++i) {
    DIBS_TRY(Value object, decode_stored(*records[i]));
    objects.push_back(std::move(object));
  }
  return objects;
}

}  // namespace

Result<std::shared_ptr<InitialState>> InitialState::read(const store::Store& store,
                                                         std::shared_ptr<Context> context,
                                                         const Selection& selection) {
  DIBS_TRY(store::Listing listing, candidates(store, *context, selection));
  const Resource& resource = *context->resource;
  const bool all = selection.everything();
  std::vector<store::RecordPtr> chosen;
  std::vector<Value> served;
  std::size_t bytes = 0;
  for (const auto& record : listing.records) bytes += record->value->size();
  if (resource.conversion && (!all || bytes < kPieceBytes)) {
    bytes = 0;
    for (std::size_t begin = 0, end = 0; begin < listing.records.size(); begin = end) {
      for (std::size_t part = 0;
           end < listing.records.size() && part < kPartBytes && end - begin < kPartRecords;) {
        part += listing.records[end++]->value->size();
      }
      DIBS_TRY(auto objects, decoded(listing.records, begin, end));
      DIBS_TRY(objects, served_to(*context, std::move(objects)));
      for (std::size_t i = 0; i < objects.size(); ++i) {
        if (!all && !selection.matches(objects[i])) continue;
        bytes += listing.records[begin + i]->value->size();
        chosen.push_back(std::move(listing.records[begin + i]));
        served.push_back(std::move(objects[i]));
      }
      if (bytes >= kPieceBytes) served.clear();
    }
    // Whoever reads slowly is not to take so much memory.
    if (served.size() != chosen.size()) served.clear();
  } else if (!all) {
    for (auto& record : listing.records) {
      const auto object = decode_stored(*record);
      if (!object.ok()) continue;
      const auto shown = to_served(resource, *object);
      if (!shown.ok() || !selection.matches(*shown)) continue;
      chosen.push_back(std::move(record));
    }
  } else {
    chosen = std::move(listing.records);
  }
  chosen.shrink_to_fit();
  return std::shared_ptr<InitialState>(
      new InitialState(std::move(context), std::move(chosen), std::move(served), listing.revision));
}

InitialState::InitialState(std::shared_ptr<const Context> context,
                           std::vector<store::RecordPtr> records, std::vector<Value> served,
                           store::Revision revision)
    : context_(std::move(context)),
      records_(std::move(records)),
      served_(std::move(served)),
      revision_(revision) {
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

Result<SharedBytes> InitialState::piece(std::size_t index, Time now) {
  const std::size_t begin = starts_[index];
  const std::size_t end = index + 1 < starts_.size() ? starts_[index + 1] : records_.size();
  const bool converts = context_->resource->conversion && served_.empty();
  {
    const MutexLock lock(mutex_);
    if (SharedBytes made = made_[index].lock()) return made;
    if (!converts) {
      SharedBytes made = share(lines(begin, end, served_.empty() ? nullptr : &served_[begin], now));
      made_[index] = made;
      return made;
    }
    if (!converting_.insert(index).second) {
      return Error(Code::too_many_requests, "somebody else waits for the conversion webhook");
    }
  }
  // Nobody waits for the lock while the webhook is asked.
  auto served = decoded(records_, begin, end);
  if (served.ok()) served = to_served_all(*context_->resource, std::move(*served));
  const MutexLock lock(mutex_);
  converting_.erase(index);
  if (!served.ok()) return served.error();
  SharedBytes made = share(lines(begin, end, served->data(), now));
  made_[index] = made;
  return made;
}

std::string InitialState::lines(std::size_t begin, std::size_t end, const Value* served,
                                Time now) const {
  Context context;
  context.resource = context_->resource;
  context.answer = context_->answer;
  context.target = context_->target;
  context.now = now;
  std::string out;
  for (std::size_t i = begin; i < end; ++i) {
    const store::Record& record = *records_[i];
    // The first event of a Table has its columns.
    out.append(event_line(context, record, record.modified, Change::added,
                          i == 0 && context.answer.form == Form::table,
                          served == nullptr ? nullptr : served + (i - begin)));
  }
  return out;
}

}  // namespace dibs::server
