#pragma once
// Addresses of mail, by RFC 5322 as Go's net/mail reads them.

#include <string_view>

namespace dibs::api {

/// "jane@example.com" or "Jane Doe <jane@example.com>".
bool is_mail_address(std::string_view text);

}  // namespace dibs::api
