// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "main/log_sink.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "base/log.h"

namespace alcove {

void use_server_log() {
  auto logger = spdlog::stderr_logger_mt("alcove");
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %v", spdlog::pattern_time_type::utc);
  logger->set_level(spdlog::level::debug);
  logger->flush_on(spdlog::level::info);
  set_log_sink([logger](LogLevel level, std::string_view message) {
    constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info,
                                                     spdlog::level::warn, spdlog::level::err};
    logger->log(kLevels[static_cast<size_t>(level)], message);
  });
}

}  // namespace alcove
