#include "driver/command_line.h"

#include <algorithm>
#include <map>
#include <vector>

#include "base/did_you_mean.h"
#include "base/strings.h"

namespace dibs::driver {
namespace {

using Words = std::vector<std::string>;

Result<> set(const Flag& flag, const Words& words) {
  auto done = flags::set_value(flag, words);
  return done ? std::move(done) : done.error().within(name_of(flag));
}

void add_words(const Flag& flag, std::string_view value, Words& words) {
  if (!is_list(flag) || !flag.form.commas) return words.push_back(std::string(value));
  for (const std::string_view item : split(value, ',')) words.emplace_back(item);
}

Result<const Flag*> find(const Flags& flags, const std::string& name) {
  Words names = {"--help"};
  for (const Flag& flag : flags) {
    const auto own = names_of(flag);
    if (std::find(own.begin(), own.end(), name) != own.end()) return &flag;
    if (!flag.form.hidden) names.insert(names.end(), own.begin(), own.end());
  }
  return Error::bad_request(cat("unknown flag ", quoted(name), did_you_mean(name, names)));
}

std::string with_type(const Flag& flag) {
  std::string out = join(names_of(flag), ",");
  if (is_switch(flag)) return out;
  append(out, " ", type_of(flag));
  if (const std::string range = range_of(flag); !range.empty()) append(out, ":", range);
  if (!flag.form.one_of.empty()) append(out, ":{", join(flag.form.one_of, ","), "}");
  return out;
}

std::string about(const Flag& flag) {
  std::string out = flag.help;
  if (flag.form.required) append(out, " (required)");
  const std::string value = value_of(flag);
  const bool told = flag.help.find("(default: ") != std::string::npos;
  if (!told && !value.empty() && !(is_switch(flag) && value == "false")) {
    append(out, " (default: ", value, ")");
  }
  if (!flag.form.env.empty()) append(out, " [$", flag.form.env, "]");
  return out;
}

}  // namespace

Result<> parse_flags(int argc, const char* const* argv,
                     const std::function<const char*(const char*)>& variable, const Flags& flags) {
  std::map<const Flag*, Words> given;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (!argument.starts_with('-')) {
      return Error::bad_request(cat("unexpected argument ", quoted(argument)));
    }
    const std::size_t equals = argument.find('=');
    DIBS_TRY(const Flag* const flag, find(flags, argument.substr(0, equals)));
    Words& words = given[flag];
    if (!words.empty() && !is_list(*flag)) {
      return Error::bad_request(cat(name_of(*flag), ": given more than once"));
    }
    if (equals != std::string::npos) {
      add_words(*flag, argument.substr(equals + 1), words);
    } else if (is_switch(*flag)) {
      words.emplace_back("true");
    } else if (i + 1 < argc) {
      add_words(*flag, argv[++i], words);
    } else {
      return Error::bad_request(cat(name_of(*flag), ": needs a value (", type_of(*flag), ")"));
    }
  }
  for (const Flag& flag : flags) {
    const char* const set_outside =
        flag.form.env.empty() ? nullptr : variable(flag.form.env.c_str());
    const auto found = given.find(&flag);
    if (found != given.end()) {
      DIBS_CHECK(set(flag, found->second));
    } else if (set_outside != nullptr && *set_outside != '\0') {
      Words words;
      add_words(flag, set_outside, words);
      if (auto done = set(flag, words); !done) return done.error().within(cat("$", flag.form.env));
    } else if (flag.form.required) {
      return Error::bad_request(cat(name_of(flag), " is required: ", flag.help));
    }
  }
  return success();
}

std::string help_of_flags(std::string_view title, const Flags& flags) {
  // A name that is longer has its text below it.
  constexpr std::size_t kWidest = 38;
  std::string out = cat(title, ":\n");
  for (const Flag& flag : flags) {
    if (flag.form.hidden) continue;
    const std::string name = with_type(flag);
    append(out, "  ", name);
    if (name.size() > kWidest) append(out, "\n  ", std::string(kWidest, ' '));
    append(out, std::string(name.size() > kWidest ? 2 : kWidest - name.size() + 2, ' '),
           about(flag), "\n");
  }
  return out;
}

}  // namespace dibs::driver
