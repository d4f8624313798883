#pragma once
// Which form a client wants its answer in, and which form it sent its body in.

#include <string>
#include <string_view>

#include "base/result.h"
#include "net/http.h"

namespace dibs::server {

enum class Media : char { json, yaml, protobuf };
/// `stored`: each object in the form it is stored in, its apiVersion and kind with it, whatever the
/// version of the path. For resources of two models, where one version shows only half of each.
enum class Form : char { object, table, metadata, metadata_list, stored };

struct Answer {
  Media media = Media::json;
  Form form = Form::object;
  std::string form_version = "v1";  // of meta.k8s.io, for tables and metadata
  bool pretty = false;
  /// Of one in protobuf: the client takes JSON as well.
  bool json_too = false;
};

/// What a resource request is, for the rules about forms.
enum class AnswerTo : char { one, list, watch };

/// Forms that not every resource has.
struct Forms {
  bool stored = false;
  bool protobuf = false;  // of whole objects; metadata of all of them has it
  bool table = true;
  /// Who asks for protobuf alone, where there is none, is refused; otherwise he gets JSON.
  bool strict = false;
};

/// Errors: not_acceptable, in the words of each case.
Result<Answer> negotiate_answer(const net::Request& request, const net::Target& target,
                                AnswerTo what, Forms forms = {});

enum class BodyFormat : char { json, yaml, protobuf };
/// Of the Content-Type; absent means JSON. Errors: unsupported_media_type.
Result<BodyFormat> body_format(std::string_view content_type);

/// The media type without parameters, in lower case.
std::string media_type(std::string_view header);

}  // namespace dibs::server
