#include "cel/parse/syntax_terminals.h"

namespace dibs::cel {

Terminal terminal_of(const Token& token) {
  switch (token.kind) {
    case TokenKind::end:
      return kEnd;
    case TokenKind::ident:
      return kIdent;
    case TokenKind::quoted_ident:
      return kQuotedIdent;
    case TokenKind::integer:
      return kInt;
    case TokenKind::uinteger:
      return kUint;
    case TokenKind::real:
      return kFloat;
    case TokenKind::string:
      return kString;
    case TokenKind::bytes:
      return kBytes;
    default:
      break;
  }
  for (int i = kEquals; i <= kNull; ++i) {
    const std::string_view name = kTerminalNames[i];
    if (name.substr(1, name.size() - 2) == token.text) return static_cast<Terminal>(i);
  }
  return kEnd;
}

}  // namespace dibs::cel
