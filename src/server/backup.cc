#include "server/backup.h"

#include <memory>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "json/parse.h"
#include "net/gzip.h"
#include "server/backup_format.h"
#include "server/status.h"
#include "server/stored.h"
#include "store/at_rest.h"
#include "store/fill.h"
#include "store/state.h"

namespace dibs::server {
namespace {

constexpr std::size_t kPieceBytes = 256 * 1024;
/// Of a group after unpacking: more than a store takes in one transaction.
constexpr std::size_t kMaxGroupBytes = std::size_t{16} << 20;

class BackupPieces : public Pieces {
 public:
  BackupPieces(std::unique_ptr<store::State> state, std::string taken)
      : state_(std::move(state)), taken_(std::move(taken)) {}

  Result<bool> next(std::string& out) override {
    if (!begun_) writer_.head(out, {state_->revision(), taken_});
    begun_ = true;
    store::Item item;
    while (out.size() < kPieceBytes) {
      DIBS_TRY(const bool more, state_->next(item));
      if (!more) {
        writer_.end(out);
        return false;
      }
      DIBS_CHECK(writer_.key(out, item));
    }
    return true;
  }

 private:
  const std::unique_ptr<store::State> state_;
  const std::string taken_;
  bool begun_ = false;
  BackupWriter writer_;
};

Result<store::Op> read_change(std::string_view line) {
  json::ParseOptions options;
  options.max_depth = 4;
  const auto parsed = json::parse(line, options);
  if (!parsed.ok() || !parsed->is_object()) return Error::bad_request("is not a change");
  const Value& change = *parsed;
  store::Op op;
  op.key = change["key"].str();
  if (!op.key.starts_with(store::kObjects)) {
    return Error::bad_request(cat("\"key\" must begin with ", store::kObjects));
  }
  if (is_left_alone(op.key)) {
    return Error::bad_request(cat(op.key, " is not restored on a live server"));
  }
  if (change["deleted"].as_bool()) return op;
  auto value = bytes_member(change);
  if (!value.ok()) return Error::bad_request(cat(op.key, ": ", value.error().message()));
  if (const auto object = read_object(op.key, *value); !object.ok()) {
    return Error::bad_request(object.error().message());
  }
  op.value = share(std::move(value).value());
  return op;
}

/// All of a group, or what is wrong with one line of it.
Result<std::vector<store::Op>> read_changes(const Context& context) {
  std::string unpacked;
  std::string_view body = context.request.body;
  if (context.request.headers.get("Content-Encoding") == "gzip") {
    DIBS_TRY(unpacked, net::gunzip(body, kMaxGroupBytes));
    body = unpacked;
  }
  std::vector<store::Op> ops;
  for (std::size_t number = 1; !body.empty(); ++number) {
    const std::size_t end = body.find('\n');
    if (end == std::string_view::npos) {
      return Error::bad_request(cat("line ", number, ": is cut off"));
    }
    if (ops.size() == store::kGroupOps) {
      return Error::bad_request(cat("at most ", store::kGroupOps, " changes at a time"));
    }
    auto op = read_change(body.substr(0, end));
    if (!op.ok()) return op.error().within(cat("line ", number));
    ops.push_back(std::move(op).value());
    body.remove_prefix(end + 1);
  }
  if (ops.empty()) return Error::bad_request("there is no change in it");
  return ops;
}

bool is_id(std::string_view id) {
  return !id.empty() && id.size() <= 64 &&
         id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string_view::npos;
}

/// Of a mark.
Value read_mark(const store::Record& mark) {
  auto value = json::parse(*mark.value);
  return value.ok() ? std::move(value).value() : Value();
}

Response revision_response(store::Revision revision, bool resumed = false) {
  return json_response(200, Value::object({{"revision", revision}, {"resumed", resumed}}));
}

}  // namespace

bool is_left_alone(std::string_view key) {
  for (const std::string_view prefix :
       {"/registry/events/", "/registry/leases/", "/registry/masterleases/"}) {
    if (key.starts_with(prefix)) return true;
  }
  return false;
}

Result<Value> read_object(std::string_view key, std::string_view value) {
  if (const auto unreadable = store::as_unreadable(value)) {
    return Error::invalid(cat(key, ": cannot be read: ", unreadable->why));
  }
  std::string wire;
  if (!append_wire(wire, value, "")) {
    return Error::invalid(cat(key, ": does not begin as a stored object does"));
  }
  auto object = json::parse(value);
  if (!object.ok()) return Error::invalid(cat(key, ": ", object.error().message()));
  const Value& metadata = (*object)["metadata"];
  if (metadata.contains("resourceVersion")) {
    return Error::invalid(cat(key, ": has a resourceVersion of its own"));
  }
  std::string end(metadata["name"].as_string());
  if (!metadata["namespace"].as_string().empty()) {
    end = cat(metadata["namespace"].as_string(), "/", end);
  }
  if (metadata["name"].as_string().empty() || !key.ends_with(cat("/", end))) {
    return Error::invalid(cat(key, ": holds an object of another name, ", quoted(end)));
  }
  if ((*object)["kind"].as_string().empty() || (*object)["apiVersion"].as_string().empty()) {
    return Error::invalid(cat(key, ": holds an object without kind or apiVersion"));
  }
  return object;
}

Result<> check_whole(const store::Store& store) {
  const auto mark = store.get(store::kUnfinished);
  if (!mark || read_mark(*mark)["live"].as_bool()) return success();
  return Error::unavailable(
      cat("the store was not filled to its end (", *mark->value,
          "): run the same command again with --resume, or move the store away to start empty"));
}

Result<> Backups::may_write() const {
  if (!store_.get(store::kUnfinished)) return success();
  return try_again_error("a backup is being restored");
}

Result<Reply> Backups::handle(const Context& context) {
  if (context.target.path == kBackupPath) return backup(context);
  DIBS_TRY(Response response, restore(context));
  return Reply(std::move(response));
}

Result<Reply> Backups::backup(const Context& context) {
  if (context.request.method != "GET") return method_not_allowed_error();
  DIBS_CHECK(store_.sync());
  DIBS_TRY(auto state, store::state_of(store_));
  log::info("a backup is taken", {{"user", context.user.name}, {"revision", state->revision()}});
  net::Response head;
  head.headers.add("Content-Type", "application/x-ndjson");
  head.headers.add("Cache-Control", "no-cache, private");
  Reply reply{Response(std::move(head))};
  reply.pieces = std::make_shared<BackupPieces>(std::move(state), format_rfc3339(context.now));
  return reply;
}

Result<Response> Backups::restore(const Context& context) {
  if (context.request.method != "POST") return method_not_allowed_error();
  const std::string id(context.target.get("id"));
  if (!is_id(id)) {
    return Error::bad_request(
        "id: must name this restore, by 1 to 64 letters, digits and dashes of your choice");
  }
  const std::string_view step = context.target.get("step");
  if (step == "begin") return begin(context, id);
  if (step == "change") return change(context, id);
  if (step == "end") return end(id);
  return Error::bad_request("step: must be begin, change or end");
}

Result<Response> Backups::begin(const Context& context, const std::string& id) {
  if (context.target.get("overwrite") != "true") {
    return Error::bad_request(
        "overwrite: must be true, as what was made since the backup goes with a restore");
  }
  DIBS_CHECK(store_.sync());
  const auto mark = store_.get(store::kUnfinished);
  const std::string text = json::write(Value::object({{"what", "restore"},
                                                      {"live", true},
                                                      {"id", id},
                                                      {"by", context.user.name},
                                                      {"since", format_rfc3339(context.now)}}));
  DIBS_TRY(
      const auto revision,
      store_.commit({{std::string(store::kUnfinished), share(text), mark ? mark->modified : 0}}));
  log::warn("a backup is being restored: other writes wait", {{"user", context.user.name}});
  return revision_response(revision, mark != nullptr);
}

Result<store::RecordPtr> Backups::mark_of(const std::string& id) const {
  auto mark = store_.get(store::kUnfinished);
  if (!mark || read_mark(*mark)["id"].as_string() != id) {
    return Error::conflict("this restore was ended, or another one has begun");
  }
  return mark;
}

Result<Response> Backups::change(const Context& context, const std::string& id) {
  DIBS_CHECK(store_.sync());
  DIBS_TRY(const auto mark, mark_of(id));
  DIBS_TRY(auto ops, read_changes(context));
  ops.push_back({std::string(store::kUnfinished), share(*mark->value), mark->modified});
  DIBS_TRY(const auto revision, store_.commit(std::move(ops)));
  return revision_response(revision);
}

Result<Response> Backups::end(const std::string& id) {
  while (true) {
    DIBS_CHECK(store_.sync());
    // Whose first answer was lost asks again.
    if (!store_.get(store::kUnfinished)) return revision_response(store_.revision());
    DIBS_TRY(const auto mark, mark_of(id));
    const auto ended = store_.commit({{std::string(store::kUnfinished), nullptr, mark->modified}});
    if (!ended.ok() && ended.error().code() == Code::conflict) continue;
    if (!ended.ok()) return ended.error();
    log::info("a backup was restored", {{"revision", *ended}});
    return revision_response(*ended);
  }
}

}  // namespace dibs::server
