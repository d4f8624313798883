#include "store/state.h"

#include <utility>

namespace dibs::store {
namespace {

/// Holds the records, not copies of them: a slow reader costs what was replaced since.
class Listed : public State {
 public:
  explicit Listed(Listing listing) : listing_(std::move(listing)) {}

  Revision revision() const override { return listing_.revision; }
  Result<bool> next(Item& item) override {
    if (at_ == listing_.records.size()) return false;
    const Record& record = *listing_.records[at_++];
    item.key = record.key;
    item.value.clear();
    record.value->append_to(item.value);
    item.created = record.created;
    item.modified = record.modified;
    return true;
  }
  Result<> rewind() override {
    at_ = 0;
    return success();
  }

 private:
  const Listing listing_;
  std::size_t at_ = 0;
};

}  // namespace

Result<std::unique_ptr<State>> state_of(const Store& store) {
  RangeQuery query;
  query.prefix = kObjects;
  DIBS_TRY(Listing listing, store.range(query));
  std::erase_if(listing.records, [](const RecordPtr& record) { return !is_of_state(record->key); });
  return std::unique_ptr<State>(std::make_unique<Listed>(std::move(listing)));
}

}  // namespace dibs::store
