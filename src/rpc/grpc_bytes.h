#pragma once
// Between gRPC's types and ours. Only for the .cc files of this folder.

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include <string>
#include <string_view>

#include "rpc/channel.h"

namespace dibs::rpc::internal {

grpc::ByteBuffer to_buffer(std::string_view bytes);
std::string to_bytes(const grpc::ByteBuffer& buffer);
Status from_grpc(const grpc::Status& status);
grpc::Status to_grpc(const Status& status);

/// As Go's default: what an unmodified plugin accepts and sends.
inline constexpr int kMaxMessage = 4 * 1024 * 1024;
/// What is read before it is refused: gRPC would let a call that passes its limit hang until the
/// deadline.
inline constexpr int kMaxRead = 64 * 1024 * 1024;
/// Bytes of sun_path without its end.
inline constexpr std::size_t kMaxPath = 107;

/// gRPC's name of a socket: a URI, in which a path may not hold all that a folder's name may.
/// may.
std::string unix_target(const std::string& path);

/// gRPC's own log goes into ours, as debug lines. Cheap when done already.
void quiet_grpc();
/// Does nothing (tsan.cc).
void name_tsan();

/// Why nobody can be reached at the socket, as Go words it, or "" when somebody can.
std::string probe_socket(const std::string& path);

}  // namespace dibs::rpc::internal
