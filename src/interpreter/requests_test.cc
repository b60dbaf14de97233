// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "interpreter/requests.h"

#include <gtest/gtest.h>

namespace alcove::interpreter {
namespace {

std::string refusal(std::string_view body) {
  const auto request = parse_execute_request(body);
  return request ? "" : request.error().message();
}

TEST(ExecuteRequest, ReadsWhatIsThere) {
  const auto request = parse_execute_request(
      R"({"code":"x","context_id":"c","language":"js","env_vars":{"A":"1","B":""},"more":[]})");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->code, "x");
  EXPECT_EQ(request->context_id, "c");
  EXPECT_EQ(request->language, "js");
  EXPECT_EQ(request->env_vars, (std::map<std::string, std::string>{{"A", "1"}, {"B", ""}}));
}

TEST(ExecuteRequest, NullAndMissingAreTheSame) {
  for (const std::string_view body :
       {R"({"code":""})", R"({"code":"","context_id":null,"language":null,"env_vars":null})"}) {
    const auto request = parse_execute_request(body);
    ASSERT_TRUE(request) << body;
    EXPECT_TRUE(request->context_id.empty() && request->language.empty() &&
                request->env_vars.empty());
  }
}

TEST(ExecuteRequest, RefusalsNameTheField) {
  EXPECT_EQ(refusal(""),
            R"({"detail":[{"type":"json_invalid","loc":["body"],"msg":"JSON decode error"}]})");
  EXPECT_EQ(refusal("{}"),
            R"({"detail":[{"type":"missing","loc":["body","code"],"msg":"Field required"}]})");
  EXPECT_NE(refusal(R"({"code":"","language":5})").find(R"(["body","language"])"),
            std::string::npos);
  for (const std::string_view body :
       {"[]", R"({"code":null})", R"({"code":"","env_vars":[]})",
        R"({"code":"","env_vars":{"A":1}})", R"({"code":"","env_vars":{"":"x"}})",
        R"({"code":"","env_vars":{"A=B":"x"}})", R"({"code":"","env_vars":{"A\u0000":"x"}})",
        R"({"code":"","env_vars":{"A":"\u0000"}})"}) {
    EXPECT_FALSE(refusal(body).empty()) << body;
  }
}

TEST(ContextRequest, BothAreOptional) {
  const auto request = parse_context_request(R"({"language":"r","cwd":"/tmp"})");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->language + request->cwd, "r/tmp");
  EXPECT_TRUE(parse_context_request("{}"));
  EXPECT_FALSE(parse_context_request(R"({"cwd":1})"));
  EXPECT_FALSE(parse_context_request(""));
}

}  // namespace
}  // namespace alcove::interpreter
