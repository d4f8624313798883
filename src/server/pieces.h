#pragma once
// Bodies that are made while they are sent, so that a list of a hundred megabytes is never in
// memory as text: the next piece is made when the client has taken the last.

#include <memory>
#include <string>

#include "base/result.h"
#include "net/http.h"
#include "runtime/runtime.h"

namespace dibs::server {

class Pieces {
 public:
  virtual ~Pieces() = default;
  /// Appends the next piece, at least a byte; false: it is the last one. Errors: of what the body
  /// is made of, which comes too late for the client to be told.
  virtual Result<bool> next(std::string& out) = 0;
};

/// Sends all of it, on the executor, and ends the stream; breaks it off where a piece cannot be
/// made. `kept` lives as long as the pieces are asked for more.
void send_pieces(runtime::Executor& executor, std::shared_ptr<net::BodyStream> stream,
                 std::shared_ptr<Pieces> pieces, std::shared_ptr<const void> kept);

}  // namespace dibs::server
