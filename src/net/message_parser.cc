// Beast asserts that the last chunk's line and one byte more have come together, which a network
// need not do; without the assertion the parser waits for more, as it should.
#define BOOST_DISABLE_ASSERTS

#include "net/message_parser.h"

#include <boost/beast/http/basic_parser.hpp>
#include <optional>

namespace dibs::net {
namespace {

namespace http = boost::beast::http;
using boost::beast::error_code;
using BeastView = boost::beast::string_view;

std::string copy(BeastView text) { return std::string(text.data(), text.size()); }

/// What requests and responses have in common: collecting fields and body within the limits.
template <bool is_request>
class Collector : public http::basic_parser<is_request> {
 public:
  explicit Collector(ParseLimits limits) : limits_(limits) {
    this->header_limit(static_cast<std::uint32_t>(limits.max_header_bytes));
    this->body_limit(boost::none);
    this->eager(false);
  }

  Parsed feed(std::string_view bytes, std::size_t& consumed) {
    consumed = 0;
    while (true) {
      error_code error;
      const bool had_head = this->is_header_done();
      const auto used = this->put(
          boost::asio::const_buffer(bytes.data() + consumed, bytes.size() - consumed), error);
      consumed += used;
      if (!had_head) header_bytes_ += used;
      if (failure_ != Parsed::need_more) return failure_;
      if (error == http::error::need_more) {
        // What stays unused is a head, a chunk line or trailers in the making.
        return header_bytes_ + bytes.size() - consumed > limits_.max_header_bytes && !had_head
                   ? Parsed::header_too_large
               : bytes.size() - consumed > limits_.max_header_bytes ? Parsed::malformed
                                                                    : Parsed::need_more;
      }
      if (error == http::error::header_limit) return Parsed::header_too_large;
      if (error) return Parsed::malformed;
      if (!had_head && this->is_header_done()) {
        if (header_bytes_ > limits_.max_header_bytes) return Parsed::header_too_large;
        if (!this->is_done()) return Parsed::head;
      }
      if (this->is_done()) return Parsed::complete;
      if (consumed == bytes.size()) return Parsed::need_more;
    }
  }

  Parsed failure_ = Parsed::need_more;
  Headers* headers_ = nullptr;
  std::string* body_ = nullptr;

 protected:
  void fail(Parsed how, error_code& error) {
    failure_ = how;
    error = http::make_error_code(http::error::bad_value);
  }

  void on_request_impl(http::verb, BeastView, BeastView, int, error_code&) override {}
  void on_response_impl(int, BeastView, int, error_code&) override {}

  void on_field_impl(http::field field, BeastView name, BeastView value,
                     error_code& error) override {
    // Trailers come here too; they are not part of the head and are dropped.
    if (this->is_header_done()) return;
    // "chunked" must be the whole of it: with anything else the end of the body is anyone's guess,
    // which is how requests are smuggled.
    if (field == http::field::transfer_encoding && !boost::beast::iequals(value, "chunked")) {
      return fail(Parsed::unsupported, error);
    }
    headers_->add(copy(name), copy(value));
  }
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>& length, error_code& error) override {
    if (!length) return;
    if (*length > limits_.max_body) return fail(Parsed::body_too_large, error);
    body_->reserve(static_cast<std::size_t>(std::min<std::uint64_t>(*length, 1024 * 1024)));
  }
  std::size_t on_body_impl(BeastView piece, error_code& error) override {
    return take(piece, error);
  }
  void on_chunk_header_impl(std::uint64_t size, BeastView, error_code& error) override {
    if (size > limits_.max_body || taken_ + size > limits_.max_body) {
      fail(Parsed::body_too_large, error);
    }
  }
  std::size_t on_chunk_body_impl(std::uint64_t, BeastView piece, error_code& error) override {
    return take(piece, error);
  }
  void on_finish_impl(error_code&) override {}

 private:
  std::size_t take(BeastView piece, error_code& error) {
    taken_ += piece.size();
    if (taken_ > limits_.max_body) {
      fail(Parsed::body_too_large, error);
      return piece.size();
    }
    body_->append(piece.data(), piece.size());
    return piece.size();
  }

  ParseLimits limits_;
  std::size_t header_bytes_ = 0;
  std::uint64_t taken_ = 0;
};

class RequestCollector final : public Collector<true> {
 public:
  explicit RequestCollector(ParseLimits limits) : Collector(limits) {
    headers_ = &request.headers;
    body_ = &request.body;
    request.headers.reserve(10);
  }
  Request request;
  bool http_1_1 = false;

 protected:
  void on_request_impl(http::verb, BeastView method, BeastView target, int version,
                       error_code&) override {
    http_1_1 = version == 11;
    request.method.assign(method.data(), method.size());
    request.target.assign(target.data(), target.size());
  }
};

class ResponseCollector final : public Collector<false> {
 public:
  ResponseCollector(ParseLimits limits, bool to_head) : Collector(limits) {
    headers_ = &response.headers;
    body_ = &response.body;
    this->skip(to_head);
  }
  Response response;

 protected:
  void on_response_impl(int code, BeastView, int, error_code&) override { response.status = code; }
};

}  // namespace

class RequestParser::Impl {
 public:
  explicit Impl(ParseLimits limits) : limits_(limits) { collector_.emplace(limits); }
  ParseLimits limits_;
  std::optional<RequestCollector> collector_;
};

RequestParser::RequestParser(ParseLimits limits) : impl_(std::make_unique<Impl>(limits)) {}
RequestParser::~RequestParser() = default;

Parsed RequestParser::feed(std::string_view bytes, std::size_t& consumed) {
  return impl_->collector_->feed(bytes, consumed);
}
void RequestParser::reset() { impl_->collector_.emplace(impl_->limits_); }
Request& RequestParser::request() { return impl_->collector_->request; }
bool RequestParser::http_1_1() const { return impl_->collector_->http_1_1; }
bool RequestParser::keep_alive() const { return impl_->collector_->keep_alive(); }
bool RequestParser::has_body() const {
  return impl_->collector_->chunked() || impl_->collector_->content_length().value_or(0) > 0;
}
std::uint64_t RequestParser::content_length() const {
  return impl_->collector_->content_length().value_or(0);
}

class ResponseParser::Impl {
 public:
  Impl(ParseLimits limits, bool to_head) : limits_(limits), to_head_(to_head) {
    collector_.emplace(limits, to_head);
  }
  ParseLimits limits_;
  bool to_head_;
  std::optional<ResponseCollector> collector_;
};

ResponseParser::ResponseParser(ParseLimits limits, bool to_head)
    : impl_(std::make_unique<Impl>(limits, to_head)) {}
ResponseParser::~ResponseParser() = default;

Parsed ResponseParser::feed(std::string_view bytes, std::size_t& consumed) {
  consumed = 0;
  while (true) {
    std::size_t used = 0;
    const Parsed parsed = impl_->collector_->feed(bytes.substr(consumed), used);
    consumed += used;
    const int status = impl_->collector_->response.status;
    // 100 and its kin come before the answer; 101 is the answer.
    if (parsed == Parsed::complete && status / 100 == 1 && status != 101) {
      impl_->collector_.emplace(impl_->limits_, impl_->to_head_);
      if (consumed < bytes.size()) continue;
      return Parsed::need_more;
    }
    return parsed;
  }
}

Parsed ResponseParser::feed_end() {
  if (!impl_->collector_->got_some()) return Parsed::malformed;
  error_code error;
  impl_->collector_->put_eof(error);
  return error ? Parsed::malformed : Parsed::complete;
}

Response& ResponseParser::response() { return impl_->collector_->response; }
bool ResponseParser::keep_alive() const { return impl_->collector_->keep_alive(); }

}  // namespace dibs::net
