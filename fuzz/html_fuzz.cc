// Any bytes as a page that a pod sends through the proxy: its links are the same in whatever pieces
// it comes, and what is no link stays.
#include <string>

#include "fuzz/pieces.h"
#include "fuzz/targets.h"
#include "server/proxied_links.h"

namespace dibs::fuzz {

int fuzz_html(const std::uint8_t* data, std::size_t size) {
  const server::ProxiedPage page = {"/proxy", "10.1.2.3:80", "localhost:8001"};
  std::string whole;
  std::string came;
  server::LinkRewriter rewriter(page);
  in_pieces(data, size, [&](std::string_view piece) {
    came += piece;
    whole += rewriter.take(piece);
    return true;
  });
  whole += rewriter.finish();
  server::LinkRewriter at_once(page);
  // What is longer than any tag may be cut elsewhere.
  constexpr std::size_t kShort = 60 << 10;
  if (came.size() < kShort) {
    std::string once = at_once.take(came);
    once += at_once.finish();
    require(whole == once, "pieces make no difference");
  }
  // A link to the server itself may get shorter.
  if (came.find("10.1.2.3") == std::string::npos) {
    require(whole.size() >= came.size(), "nothing is lost");
  }
  if (came.find('<') == std::string::npos) require(whole == came, "text stays");
  return 0;
}

}  // namespace dibs::fuzz

DIBS_FUZZ_ENTRY(dibs::fuzz::fuzz_html)
