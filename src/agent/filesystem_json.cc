// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/filesystem_json.h"

#include "agent/json_map.h"
#include "base/strings.h"
#include "connect/json_codec.h"
#include "connect/json_writer.h"

namespace alcove::agent::json_codec {
namespace {

namespace json = boost::json;

std::string_view type_name(FileType type) {
  switch (type) {
    case FileType::kFile:
      return "FILE_TYPE_FILE";
    case FileType::kDirectory:
      return "FILE_TYPE_DIRECTORY";
    case FileType::kSymlink:
      return "FILE_TYPE_SYMLINK";
    case FileType::kUnspecified:
      break;
  }
  return "FILE_TYPE_UNSPECIFIED";
}

void append_text(std::string& out, std::string_view name, std::string_view value) {
  out += ",\"";
  out += name;
  out += "\":";
  connect::append_json_string(out, value);
}

void append_entry(std::string& out, const EntryInfo& entry) {
  out += "{\"name\":";
  connect::append_json_string(out, entry.name);
  if (entry.type != FileType::kUnspecified) append_text(out, "type", type_name(entry.type));
  append_text(out, "path", entry.path);
  if (entry.size != 0) append_text(out, "size", std::to_string(entry.size));
  if (entry.mode != 0) out += cat(",\"mode\":", entry.mode);
  append_text(out, "permissions", entry.permissions);
  append_text(out, "owner", entry.owner);
  append_text(out, "group", entry.group);
  if (entry.modified.tv_sec != 0 || entry.modified.tv_nsec != 0) {
    append_text(out, "modifiedTime", timestamp_text(entry.modified));
  }
  if (entry.symlink_target) append_text(out, "symlinkTarget", *entry.symlink_target);
  if (!entry.metadata.empty()) {
    out += ",\"metadata\":";
    append_json_map(out, entry.metadata);
  }
  if (entry.is_symlink) out += ",\"isSymlink\":true";
  out += '}';
}

std::string_view type_name(EventType type) {
  switch (type) {
    case EventType::kCreate:
      return "EVENT_TYPE_CREATE";
    case EventType::kWrite:
      return "EVENT_TYPE_WRITE";
    case EventType::kRemove:
      return "EVENT_TYPE_REMOVE";
    case EventType::kRename:
      return "EVENT_TYPE_RENAME";
    case EventType::kChmod:
      return "EVENT_TYPE_CHMOD";
    case EventType::kUnspecified:
      break;
  }
  return "EVENT_TYPE_UNSPECIFIED";
}

void append_event(std::string& out, const FilesystemEvent& event) {
  out += "{\"name\":";
  connect::append_json_string(out, event.name);
  append_text(out, "type", type_name(event.type));
  if (event.entry) {
    out += ",\"entry\":";
    append_entry(out, *event.entry);
  }
  out += '}';
}

}  // namespace

Result<std::string> decode_path(std::string_view message) {
  ALCOVE_TRY_ASSIGN(const json::object object, connect::parse_message(message));
  return connect::read_string(object, "path");
}

Result<ListDirRequest> decode_list_dir(std::string_view message) {
  ALCOVE_TRY_ASSIGN(const json::object object, connect::parse_message(message));
  ListDirRequest request;
  ALCOVE_TRY_ASSIGN(request.path, connect::read_string(object, "path"));
  ALCOVE_TRY_ASSIGN(request.depth, connect::read_uint32(object, "depth"));
  return request;
}

Result<MoveRequest> decode_move(std::string_view message) {
  ALCOVE_TRY_ASSIGN(const json::object object, connect::parse_message(message));
  MoveRequest request;
  ALCOVE_TRY_ASSIGN(request.source, connect::read_string(object, "source"));
  ALCOVE_TRY_ASSIGN(request.destination, connect::read_string(object, "destination"));
  return request;
}

std::string encode_entry(const EntryInfo& entry) {
  std::string out = "{\"entry\":";
  append_entry(out, entry);
  out += '}';
  return out;
}

std::string encode_entries(const std::vector<EntryInfo>& entries) {
  if (entries.empty()) return "{}";
  std::string out = "{\"entries\":[";
  constexpr size_t kUsualEntry = 256;
  out.reserve(entries.size() * kUsualEntry);
  for (size_t i = 0; i < entries.size(); ++i) {
    if (i > 0) out += ',';
    append_entry(out, entries[i]);
  }
  out += "]}";
  return out;
}

Result<WatchRequest> decode_watch(std::string_view message) {
  ALCOVE_TRY_ASSIGN(const json::object object, connect::parse_message(message));
  WatchRequest request;
  ALCOVE_TRY_ASSIGN(request.path, connect::read_string(object, "path"));
  ALCOVE_TRY_ASSIGN(request.options.recursive, connect::read_bool(object, "recursive"));
  ALCOVE_TRY_ASSIGN(request.options.include_entry, connect::read_bool(object, "includeEntry"));
  ALCOVE_TRY_ASSIGN(request.options.allow_network_mounts,
                    connect::read_bool(object, "allowNetworkMounts"));
  return request;
}

Result<std::string> decode_watcher_id(std::string_view message) {
  ALCOVE_TRY_ASSIGN(const json::object object, connect::parse_message(message));
  return connect::read_string(object, "watcherId");
}

std::string encode_watcher_id(std::string_view id) {
  std::string out = "{\"watcherId\":";
  connect::append_json_string(out, id);
  out += '}';
  return out;
}

std::string encode_events(const std::vector<FilesystemEvent>& events) {
  if (events.empty()) return "{}";
  std::string out = "{\"events\":[";
  for (size_t i = 0; i < events.size(); ++i) {
    if (i > 0) out += ',';
    append_event(out, events[i]);
  }
  out += "]}";
  return out;
}

void append_watch_start(std::string& out) { connect::append_envelope(out, R"({"start":{}})"); }

void append_watch_event(const FilesystemEvent& event, std::string& out) {
  std::string message = "{\"filesystem\":";
  append_event(message, event);
  message += '}';
  connect::append_envelope(out, message);
}

void append_watch_keepalive(std::string& out) {
  connect::append_envelope(out, R"({"keepalive":{}})");
}

}  // namespace alcove::agent::json_codec
