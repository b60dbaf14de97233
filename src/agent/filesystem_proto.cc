// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/filesystem_proto.h"

#include "connect/connect.h"
#include "connect/proto_codec.h"

namespace alcove::agent::proto_codec {
namespace {

using connect::add_text;
using connect::length_field;
using connect::ProtoReader;
using connect::varint_field;
using protozero::pbf_writer;

void add_entry(pbf_writer& writer, const EntryInfo& entry) {
  add_text(writer, 1, entry.name);
  if (entry.type != FileType::kUnspecified) writer.add_enum(2, static_cast<int32_t>(entry.type));
  add_text(writer, 3, entry.path);
  if (entry.size != 0) writer.add_int64(4, entry.size);
  if (entry.mode != 0) writer.add_uint32(5, entry.mode);
  add_text(writer, 6, entry.permissions);
  add_text(writer, 7, entry.owner);
  add_text(writer, 8, entry.group);
  if (entry.modified.tv_sec != 0 || entry.modified.tv_nsec != 0) {
    pbf_writer time(writer, 9);
    if (entry.modified.tv_sec != 0) time.add_int64(1, entry.modified.tv_sec);
    if (entry.modified.tv_nsec != 0) {
      time.add_int32(2, static_cast<int32_t>(entry.modified.tv_nsec));
    }
  }
  if (entry.symlink_target) add_text(writer, 10, *entry.symlink_target);
  connect::add_map(writer, 11, entry.metadata);
  if (entry.is_symlink) writer.add_bool(12, true);
}

void add_event(pbf_writer& writer, const FilesystemEvent& event) {
  add_text(writer, 1, event.name);
  writer.add_enum(2, static_cast<int32_t>(event.type));
  if (event.entry) {
    pbf_writer entry(writer, 3);
    add_entry(entry, *event.entry);
  }
}

// The request's only field that matters is a string with number 1.
Result<std::string> read_only_text(std::string_view message) {
  return connect::read_proto(message, [](ProtoReader reader) {
    std::string text;
    while (reader.next()) {
      if (reader.key() == length_field(1)) {
        text = reader.text();
      } else {
        reader.skip();
      }
    }
    return text;
  });
}

// WatchDirResponse { <field> {} }
void append_empty(uint32_t field, std::string& out) {
  std::string message;
  pbf_writer(message).add_message(field, "", 0);
  connect::append_envelope(out, message);
}

}  // namespace

Result<std::string> decode_path(std::string_view message) { return read_only_text(message); }

Result<ListDirRequest> decode_list_dir(std::string_view message) {
  return connect::read_proto(message, [](ProtoReader reader) {
    ListDirRequest request;
    while (reader.next()) {
      switch (reader.key()) {
        case length_field(1):
          request.path = reader.text();
          break;
        case varint_field(2):
          request.depth = reader.number();
          break;
        default:
          reader.skip();
      }
    }
    return request;
  });
}

Result<MoveRequest> decode_move(std::string_view message) {
  return connect::read_proto(message, [](ProtoReader reader) {
    MoveRequest request;
    while (reader.next()) {
      switch (reader.key()) {
        case length_field(1):
          request.source = reader.text();
          break;
        case length_field(2):
          request.destination = reader.text();
          break;
        default:
          reader.skip();
      }
    }
    return request;
  });
}

Result<WatchRequest> decode_watch(std::string_view message) {
  return connect::read_proto(message, [](ProtoReader reader) {
    WatchRequest request;
    while (reader.next()) {
      switch (reader.key()) {
        case length_field(1):
          request.path = reader.text();
          break;
        case varint_field(2):
          request.options.recursive = reader.boolean();
          break;
        case varint_field(3):
          request.options.include_entry = reader.boolean();
          break;
        case varint_field(4):
          request.options.allow_network_mounts = reader.boolean();
          break;
        default:
          reader.skip();
      }
    }
    return request;
  });
}

Result<std::string> decode_watcher_id(std::string_view message) { return read_only_text(message); }

std::string encode_entry(const EntryInfo& entry) {
  std::string out;
  pbf_writer response(out);
  pbf_writer field(response, 1);
  add_entry(field, entry);
  field.commit();
  return out;
}

std::string encode_entries(const std::vector<EntryInfo>& entries) {
  std::string out;
  pbf_writer response(out);
  for (const EntryInfo& entry : entries) {
    pbf_writer field(response, 1);
    add_entry(field, entry);
  }
  return out;
}

std::string encode_watcher_id(std::string_view id) {
  std::string out;
  pbf_writer response(out);
  add_text(response, 1, id);
  return out;
}

std::string encode_events(const std::vector<FilesystemEvent>& events) {
  std::string out;
  pbf_writer response(out);
  for (const FilesystemEvent& event : events) {
    pbf_writer field(response, 1);
    add_event(field, event);
  }
  return out;
}

void append_watch_start(std::string& out) { append_empty(/*field=*/1, out); }

void append_watch_event(const FilesystemEvent& event, std::string& out) {
  std::string message;
  {
    pbf_writer response(message);
    pbf_writer field(response, 2);
    add_event(field, event);
  }
  connect::append_envelope(out, message);
}

void append_watch_keepalive(std::string& out) { append_empty(/*field=*/3, out); }

}  // namespace alcove::agent::proto_codec
