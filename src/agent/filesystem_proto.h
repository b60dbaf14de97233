// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/filesystem_messages.h"
#include "base/result.h"

// The messages of filesystem.Filesystem as protobuf; filesystem_messages.h says what they are.
namespace alcove::agent::proto_codec {

Result<std::string> decode_path(std::string_view message);
Result<ListDirRequest> decode_list_dir(std::string_view message);
Result<MoveRequest> decode_move(std::string_view message);
Result<WatchRequest> decode_watch(std::string_view message);
Result<std::string> decode_watcher_id(std::string_view message);

std::string encode_entry(const EntryInfo& entry);
std::string encode_entries(const std::vector<EntryInfo>& entries);
std::string encode_watcher_id(std::string_view id);
std::string encode_events(const std::vector<FilesystemEvent>& events);
void append_watch_start(std::string& out);
void append_watch_event(const FilesystemEvent& event, std::string& out);
void append_watch_keepalive(std::string& out);

}  // namespace alcove::agent::proto_codec
