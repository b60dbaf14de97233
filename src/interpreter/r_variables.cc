// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "interpreter/r_variables.h"

#include <string_view>

#include "base/hex.h"
#include "base/strings.h"

namespace alcove::interpreter {
namespace {

// Every byte as \xNN: nothing can end the literal, and no locale changes the bytes.
std::string r_string(std::string_view text) {
  std::string out = "\"";
  for (size_t i = 0; i < text.size(); ++i) out += cat("\\x", to_hex(text.substr(i, 1)));
  return out + "\"";
}

// In an environment below base's: functions that the user has redefined are not found.
std::string isolated(std::string_view body) {
  return cat("base::local({", body, "}, envir = base::new.env(parent = base::baseenv()))");
}

bool can_be_set(const std::string& name, const std::string& value) {
  return !name.empty() && name.find('=') == std::string::npos &&
         name.find('\0') == std::string::npos && value.find('\0') == std::string::npos;
}

}  // namespace

std::string r_code_to_set(const std::map<std::string, std::string>& variables) {
  std::string names;
  std::string values;
  for (const auto& [name, value] : variables) {
    if (!can_be_set(name, value)) continue;
    if (!names.empty()) {
      names += ", ";
      values += ", ";
    }
    names += r_string(name);
    values += r_string(value);
  }
  return isolated(cat("n <- c(", names, "); v <- list(", values,
                      "); e <- IRkernel:::runtime_env; "
                      "e$alcove_variables <- Sys.getenv(n, unset = NA, names = TRUE); "
                      "names(v) <- n; if (length(n)) do.call(Sys.setenv, v)"));
}

std::string r_code_to_restore() {
  return isolated(
      "e <- IRkernel:::runtime_env; v <- e$alcove_variables; e$alcove_variables <- NULL; "
      "for (n in names(v)) if (is.na(v[[n]])) Sys.unsetenv(n) else "
      "do.call(Sys.setenv, structure(list(v[[n]]), names = n))");
}

}  // namespace alcove::interpreter
