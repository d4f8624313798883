#include "server/list_pieces.h"

#include "api/print/table.h"
#include "api/schema/protobuf_encode.h"
#include "base/strings.h"
#include "json/parse.h"
#include "json/yaml.h"
#include "net/gzip.h"
#include "server/answer_forms.h"
#include "server/custom_kinds.h"
#include "server/stored.h"

namespace dibs::server {
namespace {

/// Large enough to be packed well, small beside what a client may leave waiting.
constexpr std::size_t kPiece = 256 * 1024;

/// The text of a list, item by item.
class ListPieces final : public Pieces {
 public:
  ListPieces(const Context& context, const Resource& resource,
             std::vector<store::RecordPtr> records, const ListMeta& meta, bool packed)
      : context_(context), resource_(resource), records_(std::move(records)) {
    if (packed) pack_.emplace();
    const Value frame = frame_of(context, resource, meta);
    std::string text;
    std::string mark;
    if (context.answer.media == Media::yaml) {
      style_ = Style::yaml;
      text = json::write_yaml(frame);
      mark = cat("- ", kItems, "\n");
    } else if (context.answer.pretty) {
      style_ = Style::pretty;
      text = json::write_pretty(frame) + '\n';
      mark = cat("\n    \"", kItems, '"');
    } else {
      text = json::write(frame) + '\n';
      mark = cat('"', kItems, '"');
    }
    const auto at = text.rfind(mark);
    end_ = text.substr(at + mark.size());
    text_ = text.substr(0, at);
  }

  Result<bool> next(std::string& out) override {
    const std::size_t before = out.size();
    bool last = false;
    while (out.size() == before && !last) {
      while (at_ < records_.size() && text_.size() < kPiece) {
        DIBS_CHECK(convert());
        if (at_ > 0 && style_ != Style::yaml) text_.push_back(',');
        DIBS_CHECK(append_item(*records_[at_]));
        records_[at_++].reset();
      }
      last = at_ == records_.size();
      if (last) text_.append(end_);
      out.append(pack_ ? pack_->add(text_, last) : text_);
      text_.clear();
    }
    return !last;
  }
  bool calls_out() const override { return resource_.calls_out(); }

  /// Has a webhook, where one converts, make what comes next. Errors: its own, after which this may
  /// be tried again.
  Result<> convert() {
    if (!resource_.conversion || at_ < converted_ || at_ == records_.size()) return success();
    std::vector<Value> objects;
    std::size_t bytes = 0;
    std::size_t end = at_;
    for (; end < records_.size() && bytes < kPiece; ++end) {
      DIBS_TRY(Value object, read_record(context_, *records_[end]));
      objects.push_back(std::move(object));
      bytes += records_[end]->value->size();
    }
    DIBS_TRY(served_, to_served_all(resource_, std::move(objects)));
    first_served_ = at_;
    converted_ = end;
    return success();
  }

 private:
  enum class Style : char { compact, pretty, yaml };
  /// Stands where the items go. What users may have chosen, as descriptions of columns, comes
  /// before.
  static constexpr std::string_view kItems = "the-items-of-the-list";

  static Value frame_of(const Context& context, const Resource& resource, const ListMeta& meta) {
    const Form form = context.answer.form;
    const bool plain = form == Form::object || form == Form::stored;
    Value frame =
        Value::object({{"kind", plain                 ? resource.list_kind
                                : form == Form::table ? "Table"
                                                      : "PartialObjectMetadataList"},
                       {"apiVersion", plain ? resource.api_version()
                                            : cat("meta.k8s.io/", context.answer.form_version)},
                       {"metadata", list_metadata(meta, plain && resource.custom)}});
    if (form == Form::table) {
      frame.set("columnDefinitions", api::column_definitions(columns_of(resource)));
    }
    Value items = Value::array();
    items.push(kItems);
    frame.set(form == Form::table ? "rows" : "items", std::move(items));
    return frame;
  }

  Result<> append_item(const store::Record& record) {
    if (is_sent_as_stored(context_, resource_, record.value)) {
      bytes_.clear();
      record.value->append_to(bytes_);
      const auto add = names_items(context_, resource_) ? append_wire : append_wire_item;
      if (add(text_, bytes_, cat(record.modified))) return success();
    }
    if (resource_.conversion) {
      append_value(in_list(std::move(served_[at_ - first_served_])));
      return success();
    }
    DIBS_TRY(const Value object, read_record(context_, record));
    DIBS_TRY(Value served, shown_form(context_, resource_, object));
    append_value(in_list(std::move(served)));
    return success();
  }

  Value in_list(Value served) const {
    switch (context_.answer.form) {
      case Form::table:
        return table_row(context_, resource_, served);
      case Form::metadata_list:
        return metadata_only(context_.answer, served);
      default:
        return as_item(context_, resource_, std::move(served));
    }
  }

  void append_value(Value item) {
    switch (style_) {
      case Style::compact:
        return json::write_to(text_, item);
      case Style::yaml: {
        Value alone = Value::array();
        alone.push(std::move(item));
        text_.append(json::write_yaml(alone));
        return;
      }
      case Style::pretty:
        // Below the list, and its key. No string has a line break of its own.
        text_.append("\n    ");
        for (const char c : json::write_pretty(item)) {
          text_.push_back(c);
          if (c == '\n') text_.append("    ");
        }
    }
  }

  const Context& context_;
  const Resource& resource_;
  std::vector<store::RecordPtr> records_;
  std::size_t at_ = 0;
  // Where a webhook converts: what it made of some records, and where these begin and end.
  std::vector<Value> served_;
  std::size_t first_served_ = 0;
  std::size_t converted_ = 0;
  std::string text_;   // not yet packed or sent
  std::string bytes_;  // of one record
  std::string end_;    // what comes after the last item
  Style style_ = Style::compact;
  std::optional<net::Gzip> pack_;
};

/// The same in protobuf. Each item is made twice (api::encode_list_item).
class ProtobufPieces final : public Pieces {
 public:
  /// `schema` of the list; null: of metadata alone.
  static Result<std::shared_ptr<ProtobufPieces>> make(const Context& context,
                                                      const Resource& resource,
                                                      std::vector<store::RecordPtr> records,
                                                      const ListMeta& meta,
                                                      const api::Schema* schema, bool packed) {
    std::shared_ptr<ProtobufPieces> out(
        new ProtobufPieces(context, resource, std::move(records), schema, packed));
    for (const auto& record : out->records_) {
      DIBS_TRY(const std::string item, out->item_of(*record));
      out->left_ += item.size();
    }
    Value frame =
        Value::object({{"kind", schema ? resource.list_kind : "PartialObjectMetadataList"},
                       {"apiVersion", schema ? resource.api_version()
                                             : cat("meta.k8s.io/", context.answer.form_version)},
                       {"metadata", list_metadata(meta, false)}});
    out->text_ = api::encode_list_begin(frame, out->left_);
    return out;
  }

  Result<bool> next(std::string& out) override {
    const std::size_t before = out.size();
    bool last = false;
    while (out.size() == before && !last) {
      while (at_ < records_.size() && text_.size() < kPiece) {
        DIBS_TRY(const std::string item, item_of(*records_[at_]));
        records_[at_++].reset();
        if (item.size() > left_) return Error::internal("an item of the list has changed");
        left_ -= item.size();
        text_.append(item);
      }
      last = at_ == records_.size();
      if (last && left_ != 0) return Error::internal("items of the list have changed");
      if (last) text_.append(api::encode_list_end());
      out.append(pack_ ? pack_->add(text_, last) : text_);
      text_.clear();
    }
    return !last;
  }

 private:
  ProtobufPieces(const Context& context, const Resource& resource,
                 std::vector<store::RecordPtr> records, const api::Schema* schema, bool packed)
      : context_(context), resource_(resource), schema_(schema), records_(std::move(records)) {
    if (packed) pack_.emplace();
  }

  Result<std::string> item_of(const store::Record& record) const {
    DIBS_TRY(const Value object, read_record(context_, record));
    DIBS_TRY(const Value served, shown_form(context_, resource_, object));
    return api::encode_list_item(schema_ ? served : metadata_only(context_.answer, served),
                                 schema_);
  }

  const Context& context_;
  const Resource& resource_;
  const api::Schema* const schema_;
  std::vector<store::RecordPtr> records_;
  std::size_t at_ = 0;
  std::uint64_t left_ = 0;  // bytes of items that are to come
  std::string text_;        // not yet packed or sent
  std::optional<net::Gzip> pack_;
};

}  // namespace

Result<std::shared_ptr<Pieces>> list_pieces(const Context& context, const Resource& resource,
                                            std::vector<store::RecordPtr> records,
                                            const ListMeta& meta, bool packed) {
  auto pieces = std::make_shared<ListPieces>(context, resource, std::move(records), meta, packed);
  DIBS_CHECK(pieces->convert());
  return std::shared_ptr<Pieces>(std::move(pieces));
}

Result<std::shared_ptr<Pieces>> protobuf_pieces(const Context& context, const Resource& resource,
                                                std::vector<store::RecordPtr> records,
                                                const ListMeta& meta, const api::Schema* schema,
                                                bool packed) {
  DIBS_TRY(auto pieces,
           ProtobufPieces::make(context, resource, std::move(records), meta, schema, packed));
  return std::shared_ptr<Pieces>(std::move(pieces));
}

}  // namespace dibs::server
