#pragma once
// POST, PUT, PATCH and DELETE of objects.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/access.h"
#include "server/body.h"
#include "server/context.h"
#include "server/many_writes.h"
#include "server/objects.h"
#include "server/pieces.h"
#include "server/write.h"

namespace dibs::server {

/// What a handler makes of a request: the answer, or writes and how they are answered when they
/// are over.
struct Reply {
  Reply(Response response) : response(std::move(response)) {}
  explicit Reply(std::shared_ptr<Write> write) : write(std::move(write)) {}
  explicit Reply(std::shared_ptr<ManyWrites> many) : many(std::move(many)) {}

  Response response;                    // where there is no write
  std::shared_ptr<Pieces> pieces = {};  // its body, where that follows
  std::shared_ptr<Write> write;         // not begun
  /// Where that is not the object.
  std::function<Response(const Write&)> answer = {};
  bool is_small = false;             // what `answer` gives, whatever was written
  std::shared_ptr<ManyWrites> many;  // not begun, instead of one
  std::function<Result<Response>()> answer_to_many = {};

  /// To a write that is over.
  Response answered() const;
  /// True when answered() will copy a few bytes at most, of a write that is to be committed.
  bool is_quick() const;
};

Result<Reply> handle_create(Context& context);
/// Both may create what is not there, where the user may create, too.
Result<Reply> handle_update(Context& context, Access& access);
Result<Reply> handle_patch(Context& context, Access& access);
Result<Reply> handle_delete(Context& context);
/// The context must be fresh.
Result<Reply> handle_delete_collection(Context& context, Objects& objects);

/// DeleteOptions that were decoded and found valid.
DeleteOptions to_delete_options(const Value& raw);
/// DeleteOptions of the body or, where there is none, of the query.
Result<DeleteOptions> read_delete_options(Context& context);

/// Versioned defaults, then the stored version, over `existing` (stored; null for a new object).
/// Errors: of the conversion, which may refuse to change what the version cannot show.
Result<Value> with_defaults(const Resource& resource, Value object, const Value* existing = nullptr,
                            bool status_write = false);

enum class PatchType : char { json, merge, strategic, apply };

/// The patch of a request, as far as it is read without its object.
struct Patch {
  PatchType type;
  Value value = {};                          // of an apply: none yet
  std::vector<std::string> duplicates = {};  // keys that are there twice
};

/// The patch with its options. `custom`: such a resource takes no strategic patches. Errors:
/// unsupported_media_type, bad_request, invalid.
Result<Patch> read_patch(Context& context, bool custom);

/// The object after the patch, decoded; `served` is what the patch is applied to, in the version
/// of `expected` (null: there is none yet, for apply).
Result<Decoded> patched(Context& context, const Patch& patch, const Expected& expected,
                        const Resource& resource, const Value* served);

/// True when the Content-Type is the one of server-side apply.
bool is_apply(const Context& context);

/// The name and namespace of an object that is put must be those of the path.
Result<> check_place(const Context& context, const Value& object);

}  // namespace dibs::server
