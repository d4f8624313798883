#pragma once
// Links of pages that come through a proxy (pods/…/proxy): a server behind it does not know the
// path that it is reached by, so links and redirects to its own root are led through the proxy
// again.

#include <memory>
#include <string>
#include <string_view>

#include "net/stream_client.h"

namespace dibs::server {

struct ProxiedPage {
  std::string prefix;       // "/api/v1/namespaces/n/pods/p/proxy"
  std::string server_host;  // "10.1.2.3:80": links to it are to the page's own server
  std::string client_host;  // as the client calls the proxy
};

/// The link as it must be where the client stands; the same where it is relative or another's.
std::string proxied_link(std::string_view link, const ProxiedPage& page);

/// Reads HTML piece by piece and changes nothing but the values of attributes that hold links.
class LinkRewriter {
 public:
  explicit LinkRewriter(ProxiedPage page) : page_(std::move(page)) {}
  /// What can be told by now of what has come; what may be half of a tag is kept.
  std::string take(std::string_view piece);
  /// What is left at the end.
  std::string finish();

  /// Of what is kept, a tag or comment without an end, how much was looked at: nothing is looked at
  /// again with every piece, or a page could be made that takes all of a thread.
  struct Looked {
    std::size_t at = 0;
    char quote = 0;
    char last = 0;  // that is no blank
  };

 private:
  std::size_t step(std::string_view text, std::string& out);
  std::string rewritten(std::string_view tag);

  ProxiedPage page_;
  std::string kept_;
  Looked looked_;
  std::string inside_;  // "script" or "style": no tag counts there but its end
};

/// The body with its links rewritten.
std::shared_ptr<net::BodySource> with_proxied_links(std::shared_ptr<net::BodySource> body,
                                                    ProxiedPage page);

}  // namespace dibs::server
