#pragma once
// Small judgements and defaults that the rules of many kinds share.

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "api/schema/field_error.h"
#include "api/schema/kind.h"

namespace dibs::api {

/// "must be greater than or equal to 0", of the member `key`; an absent one counts as 0.
void check_nonnegative(const Value& object, std::string_view key, const Path& path,
                       FieldErrors& errors);
/// The same of a value whose path is not that of its member.
void check_nonnegative_value(const Value& value, const Path& path, FieldErrors& errors);

/// A count or a percentage, neither below zero.
void check_int_or_percent(const Value& value, const Path& path, FieldErrors& errors);
void check_at_most_100_percent(const Value& value, const Path& path, FieldErrors& errors);
/// The number of a count or of a valid percentage; 0 for other texts.
std::int64_t int_or_percent_value(const Value& value);

/// An Invalid error that shows no value: "Invalid value: <detail>".
void invalid_without_value(const Path& path, std::string_view detail, FieldErrors& errors);
/// "Invalid value: null: field is immutable", for kinds whose rules do not show the value.
void check_immutable_hidden(const Value& value, const Value& old, const Path& path,
                            FieldErrors& errors);

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> texts);

/// Sets a member that is absent or null.
void set_default(Value& object, std::string_view key, Value value);
/// Sets a member that is absent, null or the empty text.
void set_default_text(Value& object, std::string_view key, std::string_view text);
/// True when the member is there and not null: a set pointer.
bool is_set(const Value& object, std::string_view key);

/// The condition list says that `type` is True.
bool condition_is_true(const Value& conditions, std::string_view type);
/// meta/v1 conditions: type, status, reason, message, lastTransitionTime.
void validate_conditions(const Value& conditions, const Path& path, FieldErrors& errors);

/// A map in the order in which messages show it: that of its keys.
Value sorted_map(const Value& map);
/// "example.com/path": what is wrong with one of the two parts shows that part.
void check_domain_prefixed_path(const Value& value, const Path& path, FieldErrors& errors);

/// A label selector as messages show it: members and labels in order.
Value shown_selector(const Value& selector);
/// "field is immutable", with the map of the selector in order.
void check_selector_immutable(const Value& selector, const Value& old, const Path& path,
                              FieldErrors& errors);

/// Text of a label selector as the `selector` of a Scale shows it: "app=web,tier in (a,b)".
std::string selector_text(const Value& selector);

}  // namespace dibs::api
