// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/filesystem_messages.h"

#include "agent/filesystem_json.h"
#include "agent/filesystem_proto.h"

namespace alcove::agent {

using connect::Codec;

Result<std::string> decode_path(Codec codec, std::string_view message) {
  return codec == Codec::kJson ? json_codec::decode_path(message)
                               : proto_codec::decode_path(message);
}

Result<ListDirRequest> decode_list_dir(Codec codec, std::string_view message) {
  return codec == Codec::kJson ? json_codec::decode_list_dir(message)
                               : proto_codec::decode_list_dir(message);
}

Result<MoveRequest> decode_move(Codec codec, std::string_view message) {
  return codec == Codec::kJson ? json_codec::decode_move(message)
                               : proto_codec::decode_move(message);
}

Result<WatchRequest> decode_watch(Codec codec, std::string_view message) {
  return codec == Codec::kJson ? json_codec::decode_watch(message)
                               : proto_codec::decode_watch(message);
}

Result<std::string> decode_watcher_id(Codec codec, std::string_view message) {
  return codec == Codec::kJson ? json_codec::decode_watcher_id(message)
                               : proto_codec::decode_watcher_id(message);
}

std::string encode_entry(Codec codec, const EntryInfo& entry) {
  return codec == Codec::kJson ? json_codec::encode_entry(entry) : proto_codec::encode_entry(entry);
}

std::string encode_entries(Codec codec, const std::vector<EntryInfo>& entries) {
  return codec == Codec::kJson ? json_codec::encode_entries(entries)
                               : proto_codec::encode_entries(entries);
}

std::string encode_watcher_id(Codec codec, std::string_view id) {
  return codec == Codec::kJson ? json_codec::encode_watcher_id(id)
                               : proto_codec::encode_watcher_id(id);
}

std::string encode_events(Codec codec, const std::vector<FilesystemEvent>& events) {
  return codec == Codec::kJson ? json_codec::encode_events(events)
                               : proto_codec::encode_events(events);
}

void append_watch_start(Codec codec, std::string& out) {
  return codec == Codec::kJson ? json_codec::append_watch_start(out)
                               : proto_codec::append_watch_start(out);
}

void append_watch_event(Codec codec, const FilesystemEvent& event, std::string& out) {
  return codec == Codec::kJson ? json_codec::append_watch_event(event, out)
                               : proto_codec::append_watch_event(event, out);
}

void append_watch_keepalive(Codec codec, std::string& out) {
  return codec == Codec::kJson ? json_codec::append_watch_keepalive(out)
                               : proto_codec::append_watch_keepalive(out);
}

}  // namespace alcove::agent
