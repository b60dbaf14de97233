// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/process_proto.h"

#include <protozero/varint.hpp>

#include "connect/connect.h"
#include "connect/proto_codec.h"

namespace alcove::agent::proto_codec {
namespace {

using connect::length_field;
using connect::ProtoReader;
using connect::varint_field;
using protozero::pbf_writer;

ProcessConfig read_config(ProtoReader reader) {
  ProcessConfig config;
  while (reader.next()) {
    switch (reader.key()) {
      case length_field(1):
        config.command = reader.text();
        break;
      case length_field(2):
        config.arguments.push_back(reader.text());
        break;
      case length_field(3): {
        auto [name, value] = reader.map_entry();
        config.environment[std::move(name)] = std::move(value);
        break;
      }
      case length_field(4):
        config.directory = reader.text();
        break;
      default:
        reader.skip();
    }
  }
  return config;
}

TerminalSize read_size(ProtoReader reader) {
  TerminalSize size;
  while (reader.next()) {
    switch (reader.key()) {
      case varint_field(1):
        size.cols = static_cast<uint16_t>(reader.number());
        break;
      case varint_field(2):
        size.rows = static_cast<uint16_t>(reader.number());
        break;
      default:
        reader.skip();
    }
  }
  return size;
}

// The size inside a PTY message; nothing if it has none.
std::optional<TerminalSize> read_terminal(ProtoReader reader) {
  std::optional<TerminalSize> size;
  while (reader.next()) {
    if (reader.key() == length_field(1)) {
      size = read_size(reader.message());
    } else {
      reader.skip();
    }
  }
  return size;
}

ProcessSelector read_selector(ProtoReader reader) {
  ProcessSelector selector;
  while (reader.next()) {
    switch (reader.key()) {
      case varint_field(1):
        selector = ByPid{reader.number()};
        break;
      case length_field(2):
        selector = ByTag{reader.text()};
        break;
      default:
        reader.skip();
    }
  }
  return selector;
}

std::optional<ProcessInput> read_input(ProtoReader reader) {
  std::optional<ProcessInput> input;
  while (reader.next()) {
    switch (reader.key()) {
      case length_field(1):
        input = ProcessInput{InputKind::kStdin, reader.bytes()};
        break;
      case length_field(2):
        input = ProcessInput{InputKind::kTerminal, reader.bytes()};
        break;
      default:
        reader.skip();
    }
  }
  return input;
}

// StreamInputRequest.StartEvent, and the requests that are nothing but a selector.
ProcessSelector read_process(ProtoReader reader) {
  ProcessSelector selector;
  while (reader.next()) {
    if (reader.key() == length_field(1)) {
      selector = read_selector(reader.message());
    } else {
      reader.skip();
    }
  }
  return selector;
}

SendInputRequest read_send_input(ProtoReader reader) {
  SendInputRequest request;
  while (reader.next()) {
    switch (reader.key()) {
      case length_field(1):
        request.process = read_selector(reader.message());
        break;
      case length_field(2):
        request.input = read_input(reader.message());
        break;
      default:
        reader.skip();
    }
  }
  return request;
}

void add_config(pbf_writer& writer, const ProcessConfig& config) {
  writer.add_string(1, config.command);
  for (const std::string& argument : config.arguments) writer.add_string(2, argument);
  connect::add_map(writer, 3, config.environment);
  if (config.directory) writer.add_string(4, *config.directory);
}

// Appends StartResponse or ConnectResponse { event { <field> { ... } } }, which `fill` writes.
template <typename Fill>
void append_event(uint32_t field, std::string& out, Fill fill) {
  std::string message;
  {
    pbf_writer response(message);
    pbf_writer event(response, 1);
    pbf_writer content(event, field);
    fill(content);
  }
  connect::append_envelope(out, message);
}

// The head of a length-delimited field.
void append_head(std::string& out, uint32_t number, size_t length) {
  protozero::add_varint_to_buffer(&out, length_field(number));
  protozero::add_varint_to_buffer(&out, length);
}

size_t field_size(size_t length) {
  // All numbers here are below 16, so the key is one byte.
  return 1 + static_cast<size_t>(protozero::length_of_varint(length)) + length;
}

}  // namespace

Result<StartRequest> decode_start(std::string_view message) {
  return connect::read_proto(message, [](ProtoReader reader) {
    StartRequest request;
    while (reader.next()) {
      switch (reader.key()) {
        case length_field(1):
          request.process = read_config(reader.message());
          break;
        case length_field(2):
          request.terminal = read_terminal(reader.message()).value_or(TerminalSize{});
          break;
        case length_field(3):
          request.tag = reader.text();
          break;
        case varint_field(4):
          request.input = reader.boolean() ? SpawnSpec::Input::kPipe : SpawnSpec::Input::kNull;
          break;
        default:
          reader.skip();
      }
    }
    return request;
  });
}

Result<ProcessSelector> decode_selector(std::string_view message) {
  return connect::read_proto(message, read_process);
}

Result<SendInputRequest> decode_send_input(std::string_view message) {
  return connect::read_proto(message, read_send_input);
}

Result<StreamInputRequest> decode_stream_input(std::string_view message) {
  return connect::read_proto(message, [](ProtoReader reader) {
    StreamInputRequest request;
    while (reader.next()) {
      switch (reader.key()) {
        case length_field(1):
          request.start = read_process(reader.message());
          break;
        case length_field(2):
          request.has_data = true;
          // Its only field has the same number as in SendInputRequest.
          request.input = read_send_input(reader.message()).input;
          break;
        default:
          reader.skip();
      }
    }
    return request;
  });
}

Result<SendSignalRequest> decode_send_signal(std::string_view message) {
  return connect::read_proto(message, [](ProtoReader reader) {
    SendSignalRequest request;
    while (reader.next()) {
      switch (reader.key()) {
        case length_field(1):
          request.process = read_selector(reader.message());
          break;
        case varint_field(2):
          request.signal = static_cast<int>(reader.number());
          break;
        default:
          reader.skip();
      }
    }
    return request;
  });
}

Result<UpdateRequest> decode_update(std::string_view message) {
  return connect::read_proto(message, [](ProtoReader reader) {
    UpdateRequest request;
    while (reader.next()) {
      switch (reader.key()) {
        case length_field(1):
          request.process = read_selector(reader.message());
          break;
        case length_field(2):
          request.terminal = read_terminal(reader.message());
          break;
        default:
          reader.skip();
      }
    }
    return request;
  });
}

std::string encode_process_list(const std::vector<ProcessInfo>& processes) {
  std::string out;
  pbf_writer list(out);
  for (const ProcessInfo& info : processes) {
    pbf_writer process(list, 1);
    {
      pbf_writer config(process, 1);
      add_config(config, info.config);
    }
    process.add_uint32(2, info.pid);
    if (info.tag) process.add_string(3, *info.tag);
  }
  return out;
}

void append_start_event(uint32_t pid, std::string& out) {
  append_event(/*field=*/1, out, [pid](pbf_writer& start) { start.add_uint32(1, pid); });
}

// Written straight into `out`, with all lengths known before.
void append_output_event(OutputKind kind, std::string_view data, std::string& out) {
  const uint32_t output = kind == OutputKind::kStdout ? 1 : kind == OutputKind::kStderr ? 2 : 3;
  const size_t data_event = field_size(data.size());
  const size_t event = field_size(data_event);
  const size_t message = field_size(event);
  connect::append_envelope_head(out, message);
  append_head(out, /*number=*/1, event);
  append_head(out, /*number=*/2, data_event);
  append_head(out, output, data.size());
  out += data;
}

void append_end_event(const EndEvent& end, std::string& out) {
  append_event(/*field=*/3, out, [&end](pbf_writer& fields) {
    if (end.exit_code != 0) fields.add_sint32(1, end.exit_code);
    if (end.exited) fields.add_bool(2, true);
    fields.add_string(3, end.status);
    if (end.error) fields.add_string(4, *end.error);
  });
}

void append_keepalive_event(std::string& out) {
  std::string message;
  {
    pbf_writer response(message);
    pbf_writer event(response, 1);
    // An empty sub-writer would write nothing.
    event.add_message(4, "", 0);
  }
  connect::append_envelope(out, message);
}

}  // namespace alcove::agent::proto_codec
