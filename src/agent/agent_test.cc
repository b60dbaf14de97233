// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/agent.h"

#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/access.h"
#include "agent/byte_ranges.h"
#include "agent/gzip.h"
#include "agent/testing/agent_fixture.h"
#include "http/url.h"

namespace alcove::agent {
namespace {

using testing::AgentTest;
using testing::read_text;
using testing::write_text;

std::string form_part(std::string_view disposition, std::string_view data) {
  return cat("--bb\r\nContent-Disposition: form-data; ", disposition, "\r\n\r\n", data, "\r\n");
}

const http::Headers kForm = {{"Content-Type", "multipart/form-data; boundary=bb"}};
const http::Headers kRaw = {{"Content-Type", "application/octet-stream"}};

TEST_F(AgentTest, HealthNeedsNothing) {
  const auto response = call("GET", "/health");
  EXPECT_EQ(response.status, 204);
  EXPECT_EQ(response.headers.get("Cache-Control"), "no-store");
  const auto connection = connect();
  EXPECT_TRUE(run(check_health(*connection)));
  EXPECT_TRUE(connection->reusable());
  EXPECT_TRUE(run(check_health(*connection)));
}

TEST_F(AgentTest, InitGivesIdentityAndVariables) {
  InitRequest request;
  request.sandbox_id = "iabc";
  request.template_id = "tpl";
  request.team_id = "team";
  request.env_vars = std::map<std::string, std::string>{{"MINE", "1"}};
  request.default_workdir = "/tmp";
  init(request);
  EXPECT_EQ(run_shell("echo $E2B_SANDBOX_ID $E2B_TEMPLATE_ID $E2B_TEAM_ID $MINE; pwd").output,
            "iabc tpl team 1\n/tmp\n");
  EXPECT_EQ(
      call("GET", "/envs").body,
      R"({"E2B_SANDBOX":"true","E2B_SANDBOX_ID":"iabc","E2B_TEAM_ID":"team","E2B_TEMPLATE_ID":"tpl","MINE":"1"})");
  EXPECT_EQ(read_text(dir_ / "identity/.E2B_SANDBOX_ID"), "iabc");
}

TEST_F(AgentTest, ControlTokenKeepsTheSandboxFromInitialisingItself) {
  InitRequest request;
  request.control_token = "control";
  init(request);
  auto refused = call("POST", "/init", {}, "{}");
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(refused.headers.get("X-Envd-Version"), "0.6.13");
  EXPECT_EQ(call("POST", "/init", {{"X-Alcove-Control", "wrong"}}, "{}").status, 401);
  init({}, "control");
  const auto connection = connect();
  const auto wrong = run(initialize(*connection, {}, "wrong"));
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code(), Code::kUnauthenticated);
}

TEST_F(AgentTest, BrokenInitIs400) {
  const auto response = call("POST", "/init", {}, "nonsense");
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(response.body, "");
  EXPECT_EQ(call("POST", "/init").status, 204);
}

TEST_F(AgentTest, TokenGuardsAllButTheExemptPaths) {
  InitRequest request;
  request.access_token = "secret";
  request.control_token = "control";
  init(request);
  EXPECT_EQ(call("GET", "/health").status, 204);
  const auto refused = rpc("/process.Process/List", "{}");
  EXPECT_EQ(refused.status, 401);
  EXPECT_TRUE(refused.body.starts_with(R"({"code":401,"message":")")) << refused.body;
  EXPECT_EQ(call("GET", "/envs").status, 401);
  EXPECT_EQ(call("GET", "/metrics").status, 401);
  EXPECT_EQ(rpc("/process.Process/List", "{}", {{"X-Access-Token", "secret"}}).status, 200);
  EXPECT_EQ(call("GET", "/envs", {{"X-Access-Token", "secret"}}).status, 200);
}

TEST_F(AgentTest, FilesTakeTokenOrSignature) {
  InitRequest request;
  request.access_token = "secret";
  request.control_token = "control";
  init(request);
  const std::string path = dir_ / "f";
  write_text(path, "content");
  const std::string target = "/files?path=" + http::percent_encode(path);
  EXPECT_EQ(call("GET", target).status, 401);
  EXPECT_EQ(call("GET", target, {{"X-Access-Token", "secret"}}).body, "content");
  FileAccess access{FileOperation::kRead, path, "root", {}, {}};
  const auto signed_target = [&] {
    std::string url =
        cat(target,
            "&username=root&signature=", http::percent_encode(file_signature(access, "secret")));
    if (access.expiration) url += cat("&signature_expiration=", *access.expiration);
    return url;
  };
  EXPECT_EQ(call("GET", signed_target()).body, "content");
  EXPECT_EQ(call("POST", signed_target(), kRaw, "x").status, 401);
  access.expiration = 1;
  const auto expired = call("GET", signed_target());
  EXPECT_EQ(expired.status, 401);
  EXPECT_EQ(expired.body, "{\"code\":401,\"message\":\"signature is already expired\"}\n");
  access.expiration = 99999999999;
  EXPECT_EQ(call("GET", signed_target()).status, 200);
  EXPECT_EQ(call("GET", target + "&signature_expiration=soon").status, 400);
}

TEST_F(AgentTest, UnknownPathsAndMethods) {
  EXPECT_EQ(call("GET", "/nope").status, 404);
  EXPECT_EQ(call("POST", "/health").status, 405);
  EXPECT_EQ(call("DELETE", "/files").status, 405);
  EXPECT_EQ(call("HEAD", "/files").status, 405);
  EXPECT_EQ(call("GET", "/process.Process/List").status, 405);
  EXPECT_EQ(call("POST", "/process.Process/List", {{"Content-Type", "text/plain"}}, "{}").status,
            415);
}

TEST_F(AgentTest, BrowsersGetTheirHeaders) {
  const auto preflight =
      call("OPTIONS", "/files",
           {{"Origin", "https://a.example"}, {"Access-Control-Request-Method", "POST"}});
  EXPECT_EQ(preflight.status, 204);
  EXPECT_EQ(preflight.headers.get("Access-Control-Allow-Methods"), "POST");
  const auto actual = rpc("/process.Process/List", "{}", {{"Origin", "https://a.example"}});
  EXPECT_EQ(actual.headers.get("Access-Control-Allow-Origin"), "*");
  EXPECT_TRUE(actual.headers.has("Access-Control-Expose-Headers"));
  EXPECT_FALSE(rpc("/process.Process/List", "{}").headers.has("Access-Control-Allow-Origin"));
}

TEST_F(AgentTest, UploadAndDownloadInAllSizes) {
  for (const size_t size : {0u, 1u, 65535u, 65536u, 65537u, 262144u, 3'000'001u}) {
    std::string content(size, '\0');
    for (size_t i = 0; i < size; ++i) content[i] = static_cast<char>(i * 31 + i / 251);
    const std::string path = dir_ / cat("sub/dir/", size);
    const std::string target = "/files?path=" + http::percent_encode(path);
    const auto stored = call("POST", target, kRaw, content);
    EXPECT_EQ(stored.status, 200) << stored.body;
    EXPECT_EQ(stored.body,
              cat(R"([{"path":")", path, R"(","name":")", size, R"(","type":"file"}])"));
    EXPECT_EQ(read_text(path), content);
    const auto loaded = call("GET", target);
    EXPECT_EQ(loaded.status, 200);
    EXPECT_EQ(loaded.headers.get("Content-Length"), std::to_string(size));
    EXPECT_TRUE(loaded.headers.has("Last-Modified"));
    EXPECT_TRUE(loaded.body == content);
  }
}

TEST_F(AgentTest, OverwritingTruncates) {
  const std::string path = dir_ / "f";
  const std::string target = "/files?path=" + path;
  call("POST", target, kRaw, "a long content");
  call("POST", target, kRaw, "short");
  EXPECT_EQ(read_text(path), "short");
}

TEST_F(AgentTest, FormsHoldSeveralFiles) {
  const std::string body =
      form_part(cat(R"(name="file"; filename=")", dir_ / "a.txt", "\""), "aaa") +
      form_part(R"(name="note")", "ignored") +
      form_part(cat(R"(name="file"; filename=")", dir_ / "x/b.txt", "\""), "") + "--bb--\r\n";
  const auto stored = call("POST", "/files", kForm, body);
  EXPECT_EQ(stored.body,
            cat(R"([{"path":")", dir_ / "a.txt", R"(","name":"a.txt","type":"file"},{"path":")",
                dir_ / "x/b.txt", R"(","name":"b.txt","type":"file"}])"));
  EXPECT_EQ(read_text(dir_ / "a.txt"), "aaa");
  EXPECT_EQ(call("POST", "/files", kForm, "--bb--\r\n").body, "[]");
}

TEST_F(AgentTest, FormFieldWithoutFileNameGoesToThePath) {
  const auto stored = call("POST", "/files?path=" + (dir_ / "f"), kForm,
                           form_part(R"(name="file")", "text") + "--bb--\r\n");
  EXPECT_EQ(stored.status, 200);
  EXPECT_EQ(read_text(dir_ / "f"), "text");
}

TEST_F(AgentTest, RefusedUploads) {
  const std::string target = "/files?path=" + (dir_ / "f");
  EXPECT_EQ(call("POST", target, {{"Content-Type", "text/plain"}}, "x").status, 400);
  EXPECT_EQ(call("POST", "/files", kRaw, "x").status, 400);
  EXPECT_EQ(call("POST", "/files?path=" + dir_.path(), kRaw, "x").status, 400);
  EXPECT_EQ(call("POST", "/files?path=~root/x", kRaw, "x").status, 400);
  EXPECT_EQ(call("POST", target + "&username=nobody-here", kRaw, "x").status, 401);
  EXPECT_EQ(call("POST", target, {{"Content-Type", "multipart/form-data"}}, "x").status, 500);
  EXPECT_EQ(call("POST", target, kForm, "--bb\r\nbroken").status, 500);
  http::Headers encoded = kRaw;
  encoded.add("Content-Encoding", "br");
  EXPECT_EQ(call("POST", target, encoded, "x").status, 400);
  const std::string twice = form_part(R"(name="file")", "1") + form_part(R"(name="file")", "2");
  EXPECT_EQ(call("POST", target, kForm, twice + "--bb--\r\n").status, 400);
  EXPECT_EQ(read_text(dir_ / "f"), "1");
  EXPECT_EQ(call("POST", target + "/below", kRaw, "x").status, 500);
}

TEST_F(AgentTest, CompressedUploadsAndDownloads) {
  GzipWriter gzip;
  const std::string content(500'000, 'q');
  std::string packed = gzip.add(content);
  packed += gzip.finish();
  http::Headers headers = kRaw;
  headers.add("Content-Encoding", "gzip");
  const std::string target = "/files?path=" + (dir_ / "f");
  EXPECT_EQ(call("POST", target, headers, packed).status, 200);
  EXPECT_EQ(read_text(dir_ / "f"), content);
  EXPECT_EQ(call("POST", target, headers, "not gzip").status, 400);
  write_text(dir_ / "f", content);
  const auto zipped = call("GET", target, {{"Accept-Encoding", "gzip"}});
  EXPECT_EQ(zipped.headers.get("Content-Encoding"), "gzip");
  EXPECT_LT(zipped.body.size(), 10'000u);
  EXPECT_EQ(call("GET", target, {{"Accept-Encoding", "gzip, deflate"}}).body, content);
  EXPECT_EQ(call("GET", target, {{"Accept-Encoding", "identity;q=0"}}).status, 406);
}

TEST_F(AgentTest, RefusedDownloads) {
  const auto missing = call("GET", "/files?path=" + (dir_ / "nope"));
  EXPECT_EQ(missing.status, 404);
  EXPECT_NE(missing.body.find(cat("path '", dir_ / "nope", "' does not exist")), std::string::npos);
  EXPECT_EQ(call("GET", "/files?path=" + dir_.path()).status, 400);
  EXPECT_EQ(call("GET", "/files?path=x&username=nobody-here").status, 401);
  EXPECT_EQ(call("GET", "/files?path=%zz").status, 400);
}

TEST_F(AgentTest, RangesAndConditions) {
  const std::string target = "/files?path=" + (dir_ / "f");
  std::string content;
  for (int i = 0; i < 30'000; ++i) content += std::to_string(i);
  write_text(dir_ / "f", content);
  const auto part = call("GET", target, {{"Range", "bytes=100000-100009"}});
  EXPECT_EQ(part.status, 206);
  EXPECT_EQ(part.body, content.substr(100'000, 10));
  EXPECT_EQ(part.headers.get("Content-Range"), cat("bytes 100000-100009/", content.size()));
  const auto parts = call("GET", target, {{"Range", "bytes=100000-100009,-3"}});
  EXPECT_EQ(parts.status, 206);
  EXPECT_FALSE(parts.headers.has("Content-Range"));
  const std::string type(parts.headers.get("Content-Type").value_or(""));
  ASSERT_TRUE(type.starts_with("multipart/byteranges; boundary=")) << type;
  const std::string boundary = type.substr(type.find('=') + 1);
  const RangeParts expected({{100000, 10}, {content.size() - 3, 3}}, content.size(),
                            "text/plain; charset=utf-8", boundary);
  EXPECT_EQ(parts.body, cat(expected.head(0), content.substr(100000, 10), expected.head(1),
                            content.substr(content.size() - 3), expected.end()));
  const auto outside = call("GET", target, {{"Range", "bytes=99999999-"}});
  EXPECT_EQ(outside.status, 416);
  EXPECT_EQ(outside.headers.get("Content-Range"), cat("bytes */", content.size()));
  const auto whole = call("GET", target);
  const std::string date(*whole.headers.get("Last-Modified"));
  EXPECT_EQ(call("GET", target, {{"If-Modified-Since", date}}).status, 304);
}

TEST_F(AgentTest, SpecialFilesAreReadToTheirEnd) {
  EXPECT_EQ(call("GET", "/files?path=/proc/sys/kernel/random/boot_id").body.size(), 37u);
  EXPECT_GT(call("GET", "/files?path=/proc/self/status").body.size(), 100u);
  ASSERT_EQ(::mkfifo((dir_ / "fifo").c_str(), 0600), 0);
  const auto fifo = call("GET", "/files?path=" + (dir_ / "fifo"));
  EXPECT_EQ(fifo.status, 200);
  EXPECT_EQ(fifo.body, "");
  EXPECT_EQ(call("POST", "/files?path=" + (dir_ / "fifo"), kRaw, "x").status, 500);
}

TEST_F(AgentTest, WatchersOfASmallNewFileSeeThreeEvents) {
  const UniqueFd watch(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  ASSERT_GE(::inotify_add_watch(watch.get(), dir_.path().c_str(),
                                IN_CREATE | IN_MODIFY | IN_ATTRIB | IN_DELETE | IN_MOVE),
            0);
  const auto events = [&] {
    std::vector<uint32_t> masks;
    alignas(inotify_event) char buffer[4096];
    const ssize_t size = ::read(watch.get(), buffer, sizeof buffer);
    for (ssize_t at = 0; at < size;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
      masks.push_back(event->mask);
      at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
    }
    return masks;
  };
  call("POST", "/files?path=" + (dir_ / "new"), kRaw, "hello");
  EXPECT_EQ(events(), (std::vector<uint32_t>{IN_CREATE, IN_ATTRIB, IN_MODIFY}));
  call("POST", "/files?path=" + (dir_ / "new"), kRaw, "again");
  const auto second = events();
  ASSERT_GE(second.size(), 2u);
  EXPECT_EQ(second[0], uint32_t{IN_ATTRIB});
  EXPECT_EQ(second[1], uint32_t{IN_MODIFY});
}

TEST_F(AgentTest, MetadataIsStoredAndCleared) {
  http::Headers headers = kRaw;
  headers.add("X-Metadata-Author", "me");
  const std::string target = "/files?path=" + (dir_ / "f");
  const auto stored = call("POST", target, headers, "x");
  if (stored.body.find("metadata") == std::string::npos) {
    GTEST_SKIP() << "no user attributes on this file system";
  }
  EXPECT_NE(stored.body.find(R"("metadata":{"author":"me"})"), std::string::npos);
  const std::string stat = cat(R"({"path":")", dir_ / "f", "\"}");
  EXPECT_NE(rpc("/filesystem.Filesystem/Stat", stat).body.find(R"("metadata":{"author":"me"})"),
            std::string::npos);
  EXPECT_EQ(call("POST", target, kRaw, "y").body.find("metadata"), std::string::npos);
  headers.set("X-Metadata-Author", std::string(5000, 'x'));
  EXPECT_EQ(call("POST", target, headers, "x").status, 400);
}

TEST_F(AgentTest, FilesystemCalls) {
  const auto fs = [&](const std::string& method, const std::string& message) {
    return rpc("/filesystem.Filesystem/" + method, message);
  };
  const std::string path = cat(R"({"path":")", dir_ / "d/e", "\"}");
  EXPECT_EQ(fs("Stat", path).status, 404);
  EXPECT_EQ(fs("MakeDir", path).status, 200);
  EXPECT_EQ(fs("MakeDir", path).status, 409);
  EXPECT_NE(fs("Stat", path).body.find("FILE_TYPE_DIRECTORY"), std::string::npos);
  const auto moved =
      fs("Move", cat(R"({"source":")", dir_ / "d/e", R"(","destination":")", dir_ / "q/r", "\"}"));
  EXPECT_NE(moved.body.find(dir_ / "q/r"), std::string::npos);
  const auto list = fs("ListDir", cat(R"({"path":")", dir_.path(), R"(","depth":2})"));
  const size_t first = list.body.find(dir_ / "d");
  const size_t second = list.body.find(dir_ / "q");
  EXPECT_LT(first, second);
  EXPECT_NE(second, std::string::npos);
  const std::string root = cat(R"({"path":")", dir_ / "q", "\"}");
  EXPECT_EQ(fs("Remove", root).body, "{}");
  EXPECT_EQ(fs("Remove", root).body, "{}");
  EXPECT_EQ(fs("Stat", root).status, 404);
  EXPECT_EQ(fs("Stat", R"({"path":"~root"})").status, 400);
  EXPECT_EQ(fs("Nope", "{}").status, 501);
  EXPECT_EQ(fs("MoveWatcher", "{}").status, 501);
}

TEST_F(AgentTest, ManyCommandsRunAtOnce) {
  std::vector<Stream> running;
  for (int i = 0; i < 40; ++i) running.push_back(start("exec sleep 0.5"));
  EXPECT_EQ(call("GET", "/health").status, 204);
  for (Stream& stream : running) EXPECT_EQ(finish(stream).end, testing::kGoodEnd);
}

}  // namespace
}  // namespace alcove::agent
