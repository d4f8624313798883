#pragma once
// Parts of the rules of Jobs, shared by job*.cc.

#include <cstdint>
#include <string>
#include <string_view>

#include "api/schema/field_error.h"
#include "api/schema/kind.h"
#include "base/result.h"

namespace dibs::api {

/// "1,3-5,7": indexes below `completions`, rising. How many they are, or bad_request with what is
/// wrong.
Result<std::int64_t> parse_job_indexes(std::string_view text, std::int64_t completions);

/// The spec of a Job or of the template of a CronJob, without its selector.
void validate_job_spec(const Value& spec, const Path& path, FieldErrors& errors,
                       const Value* old_spec = nullptr);
/// What the controller of jobs, whoever it is, may write into a Job's status.
void validate_job_status(const Value& job, const Value& old, FieldErrors& errors);

}  // namespace dibs::api
