// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/content_sniff.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace alcove::agent {
namespace {

using namespace std::string_view_literals;

TEST(ContentSniff, KnowsFilesByTheirFirstBytes) {
  const std::vector<std::pair<std::string_view, std::string_view>> kFiles = {
      {"%PDF-1.7\n%\xe2\xe3", "application/pdf"},
      {"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"sv, "image/png"},
      {"\xff\xd8\xff\xe0\0\x10JFIF"sv, "image/jpeg"},
      {"GIF89a\1\0"sv, "image/gif"},
      {"RIFF\x24\0\0\0WEBPVP8 "sv, "image/webp"},
      {"RIFF\x24\0\0\0WAVEfmt "sv, "audio/wave"},
      {"RIFF\x24\0\0\0what"sv, "application/octet-stream"},
      {"\x1f\x8b\x08\0\0"sv, "application/x-gzip"},
      {"PK\3\4\x14\0"sv, "application/zip"},
      {"\0asm\1\0\0\0"sv, "application/wasm"},
      {"\0\0\0\x18"
       "ftypmp42\0\0\0\0mp42isom"sv,
       "video/mp4"},
      {"\0\0\0\x18"
       "ftypheic\0\0\0\0heicmif1"sv,
       "application/octet-stream"},
      {"\xff\xfeh\0i\0"sv, "text/plain; charset=utf-16le"},
      {"\x7f"
       "ELF\2\1\1\0"sv,
       "application/octet-stream"},
  };
  for (const auto& [bytes, type] : kFiles) EXPECT_EQ(sniff_type(bytes), type) << bytes;
}

TEST(ContentSniff, KnowsMarkupAndText) {
  EXPECT_EQ(sniff_type(" \n<!doctype html>\n"), "text/html; charset=utf-8");
  EXPECT_EQ(sniff_type("<div class=x>"), "text/html; charset=utf-8");
  EXPECT_EQ(sniff_type("<!-- x"), "text/html; charset=utf-8");
  EXPECT_EQ(sniff_type("<divan>"), "text/plain; charset=utf-8");
  EXPECT_EQ(sniff_type("<html"), "text/plain; charset=utf-8");
  EXPECT_EQ(sniff_type("\t<?xml version='1.0'?>"), "text/xml; charset=utf-8");
  EXPECT_EQ(sniff_type("plain\ttext \xc3\xa4\n"), "text/plain; charset=utf-8");
  EXPECT_EQ(sniff_type(""), "text/plain; charset=utf-8");
  EXPECT_EQ(sniff_type("a\0b"sv), "application/octet-stream");
}

TEST(ContentSniff, OnlyTheBeginningCounts) {
  EXPECT_EQ(sniff_type(std::string(512, 'a') + '\0'), "text/plain; charset=utf-8");
  EXPECT_EQ(sniff_type(std::string(511, 'a') + '\0'), "application/octet-stream");
}

}  // namespace
}  // namespace alcove::agent
