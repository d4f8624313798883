#pragma once
// Messages to the kernel's network, and the talk with it. Only netlink.cc includes this.

#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace dibs::drivers::net {

/// A request. The header of its kind comes first (extra), attributes after it.
class Message {
 public:
  Message(std::uint16_t type, std::uint16_t flags) : header_(mnl_nlmsg_put_header(buffer_.data())) {
    header_->nlmsg_type = type;
    header_->nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  template <typename T>
  T& extra() {
    return *static_cast<T*>(mnl_nlmsg_put_extra_header(header_, sizeof(T)));
  }
  /// The header that extra() made.
  template <typename T>
  T& again() {
    return *static_cast<T*>(mnl_nlmsg_get_payload(header_));
  }
  /// A header inside of an attribute.
  template <typename T>
  T& more() {
    return extra<T>();
  }
  void put(std::uint16_t type, const void* bytes, std::size_t size) {
    mnl_attr_put(header_, type, size, bytes);
  }
  void put_text(std::uint16_t type, std::string_view text) {
    mnl_attr_put_strz(header_, type, std::string(text).c_str());
  }
  void put_u8(std::uint16_t type, std::uint8_t value) { mnl_attr_put_u8(header_, type, value); }
  void put_u16(std::uint16_t type, std::uint16_t value) { mnl_attr_put_u16(header_, type, value); }
  void put_u32(std::uint16_t type, std::uint32_t value) { mnl_attr_put_u32(header_, type, value); }

  nlmsghdr* header() { return header_; }

 private:
  alignas(nlmsghdr) std::array<char, 8192> buffer_ = {};
  nlmsghdr* header_;
};

/// Attributes put during its life are part of one attribute.
class Nest {
 public:
  Nest(Message& message, std::uint16_t type)
      : message_(message), start_(mnl_attr_nest_start(message.header(), type)) {}
  ~Nest() { end(); }
  void end() const {
    if (start_ != nullptr) mnl_attr_nest_end(message_.header(), start_);
    start_ = nullptr;
  }

 private:
  Message& message_;
  mutable nlattr* start_;
};

/// Attributes of a message or of another attribute, by their type.
class Attributes {
 public:
  Attributes(const nlmsghdr* header, std::size_t extra) {
    mnl_attr_parse(header, static_cast<unsigned>(extra), &keep, this);
  }
  explicit Attributes(const nlattr* nest) { mnl_attr_parse_nested(nest, &keep, this); }
  const nlattr* operator[](std::size_t type) const {
    return type < known_.size() ? known_[type] : nullptr;
  }

 private:
  static int keep(const nlattr* attribute, void* self) {
    auto& known = static_cast<Attributes*>(self)->known_;
    const std::size_t type = mnl_attr_get_type(attribute);
    if (type < known.size()) known[type] = attribute;
    return MNL_CB_OK;
  }
  std::array<const nlattr*, 128> known_ = {};
};

/// One socket, in the namespace in which it was opened.
class Talker {
 public:
  static Result<Talker> open();

  /// Waits for the answer. `fine` is an error of the kernel that counts as success.
  Result<> change(Message& message, std::string_view what, int fine = 0);
  Result<> dump(Message& message, std::string_view what,
                const std::function<void(const nlmsghdr*)>& each);

 private:
  struct Close {
    void operator()(mnl_socket* socket) const { mnl_socket_close(socket); }
  };
  explicit Talker(mnl_socket* socket) : socket_(socket) {}
  std::unique_ptr<mnl_socket, Close> socket_;
  std::uint32_t sequence_ = 0;
};

}  // namespace dibs::drivers::net
