// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "agent/entry_info.h"
#include "agent/tree_watch.h"
#include "base/result.h"
#include "connect/connect.h"

namespace alcove::agent {

// The messages of filesystem.Filesystem (protocol/envd.md 2B.1) and how they are read and written
// in a codec (filesystem_json.h, filesystem_proto.h).

struct ListDirRequest {
  std::string path;
  uint32_t depth = 0;
};

struct MoveRequest {
  std::string source;
  std::string destination;
};

// WatchDirRequest and CreateWatcherRequest.
struct WatchRequest {
  std::string path;
  WatchOptions options;
};

// StatRequest, MakeDirRequest and RemoveRequest are nothing but a path.
Result<std::string> decode_path(connect::Codec codec, std::string_view message);
Result<ListDirRequest> decode_list_dir(connect::Codec codec, std::string_view message);
Result<MoveRequest> decode_move(connect::Codec codec, std::string_view message);
Result<WatchRequest> decode_watch(connect::Codec codec, std::string_view message);
// GetWatcherEventsRequest and RemoveWatcherRequest are nothing but an id.
Result<std::string> decode_watcher_id(connect::Codec codec, std::string_view message);

// {"entry": ...}
std::string encode_entry(connect::Codec codec, const EntryInfo& entry);
// {"entries": [...]}
std::string encode_entries(connect::Codec codec, const std::vector<EntryInfo>& entries);
std::string encode_watcher_id(connect::Codec codec, std::string_view id);
// {"events": [...]}
std::string encode_events(connect::Codec codec, const std::vector<FilesystemEvent>& events);

// Events of WatchDir, appended with their envelope.
void append_watch_start(connect::Codec codec, std::string& out);
void append_watch_event(connect::Codec codec, const FilesystemEvent& event, std::string& out);
void append_watch_keepalive(connect::Codec codec, std::string& out);

}  // namespace alcove::agent
