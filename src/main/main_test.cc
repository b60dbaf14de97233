// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <thread>

#include "base/strings.h"
#include "image/layer_store.h"
#include "image/testing/temp_dir.h"
#include "main/ca_bundle.h"
#include "main/client_settings.h"
#include "main/data_dir.h"
#include "main/listen_address.h"
#include "main/request_count.h"
#include "main/tls_domain.h"
#include "store/store.h"
#include "store/testing/memory_store.h"

namespace alcove {
namespace {

using namespace std::chrono_literals;

std::string content_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(RequestCount, WaitsForTheLastRequest) {
  RequestCount count;
  EXPECT_TRUE(count.wait_for_none(0ms));
  auto request = std::make_unique<RequestCount::Mark>(count);
  EXPECT_FALSE(count.wait_for_none(5ms));
  std::thread end([&] { request.reset(); });
  EXPECT_TRUE(count.wait_for_none(10s));
  end.join();
}

TEST(DataDir, IsMadeAndLockedAgainstASecondServer) {
  const image::TempDir dir;
  {
    const auto first = DataDir::open(dir / "data");
    ASSERT_TRUE(first) << first.error().message();
    EXPECT_EQ(content_of(dir / "data/version"), "1\n");
    EXPECT_TRUE(std::filesystem::is_directory(first->agents()));
    const auto second = DataDir::open(dir / "data");
    ASSERT_FALSE(second);
    EXPECT_NE(second.error().message().find("another alcove server"), std::string::npos);
  }
  EXPECT_TRUE(DataDir::open(dir / "data"));
}

// Layers hold setuid programs of the host's root, the database holds keys.
TEST(DataDir, IsClosedToOtherUsersWhereItMatters) {
  const image::TempDir dir;
  const auto data = DataDir::open(dir.path());
  ASSERT_TRUE(data) << data.error().message();
  ASSERT_TRUE(image::LayerStore::open(dir / "layers"));
  ASSERT_TRUE(store::open_sqlite_store(data->database()));
  for (const std::string& path : {dir / "layers", data->database(), dir / "lock"}) {
    struct stat status{};
    ASSERT_EQ(::stat(path.c_str(), &status), 0) << path;
    EXPECT_EQ(status.st_mode & 077, 0u) << path;
  }
}

TEST(DataDir, OfANewerVersionIsRefusedWithTheRemedy) {
  const image::TempDir dir;
  std::ofstream(dir / "version") << "2\n";
  const auto opened = DataDir::open(dir.path());
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), Code::kFailedPrecondition);
  EXPECT_NE(opened.error().message().find("written by a newer alcove (format 2"),
            std::string::npos);
  EXPECT_NE(opened.error().message().find("--data-dir"), std::string::npos);
}

TEST(DataDir, WithAForeignVersionFileIsRefused) {
  const image::TempDir dir;
  std::ofstream(dir / "version") << "Debian";
  EXPECT_FALSE(DataDir::open(dir.path()));
}

TEST(CaBundle, IsTheFileThatTheEnvironmentNames) {
  const image::TempDir dir;
  std::ofstream(dir / "bundle") << "certificates";
  ASSERT_EQ(setenv("SSL_CERT_FILE", (dir / "bundle").c_str(), 1), 0);
  const auto copied = copy_ca_bundle(dir / "copy", dir / "own", CaUse::kBuildsOnly);
  ASSERT_TRUE(copied) << copied.error().message();
  EXPECT_EQ(*copied, dir / "copy");
  EXPECT_EQ(content_of(dir / "copy"), "certificates");

  struct stat before{};
  struct stat after{};
  ASSERT_EQ(stat((dir / "copy").c_str(), &before), 0);
  ASSERT_TRUE(copy_ca_bundle(dir / "copy", dir / "own", CaUse::kBuildsOnly));
  ASSERT_EQ(stat((dir / "copy").c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino) << "the same content is the same file";

  ASSERT_EQ(setenv("SSL_CERT_FILE", (dir / "missing").c_str(), 1), 0);
  const auto missing = copy_ca_bundle(dir / "copy", dir / "own", CaUse::kBuildsOnly);
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message().find("--no-build-ca"), std::string::npos);
  // The clients' bundle needs it all the same.
  const auto needed = copy_ca_bundle(dir / "copy", dir / "own", CaUse::kClientsToo);
  ASSERT_FALSE(needed);
  EXPECT_EQ(needed.error().message().find("--no-build-ca"), std::string::npos);
  EXPECT_NE(needed.error().message().find("SSL_CERT_FILE"), std::string::npos);
  ASSERT_EQ(unsetenv("SSL_CERT_FILE"), 0);
}

TEST(ListenAddress, IsParsed) {
  EXPECT_EQ(parse_listen_address("127.0.0.1:3000")->address, "127.0.0.1");
  EXPECT_EQ(parse_listen_address("[::1]:3000")->address, "::1");
  EXPECT_EQ(parse_listen_address(":80")->address, "0.0.0.0");
  EXPECT_EQ(parse_listen_address(":80")->port, 80);
  for (const char* bad :
       {"", "3000", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000"}) {
    EXPECT_FALSE(parse_listen_address(bad)) << bad;
  }
}

TEST(ListenAddress, BecomesAnOriginThatClientsReach) {
  EXPECT_EQ(origin_of({"127.0.0.1", 3000}), "http://127.0.0.1:3000");
  EXPECT_EQ(origin_of({"0.0.0.0", 3000}), "http://127.0.0.1:3000");
  EXPECT_EQ(origin_of({"::1", 3000}), "http://[::1]:3000");
}

TEST(ClientSettings, KeepTheFirstKeyAsLongAsItIsValid) {
  const image::TempDir dir;
  const std::string env = dir / "env";
  const std::string plain = dir / "env-plain";
  const auto settings = [&](int port) {
    return ClientSettingsFiles{.env_file = env,
                               .plain_env_file = plain,
                               .domain = cat("alcove.localhost:", port),
                               .origin = cat("http://127.0.0.1:", port),
                               .authority = "/data/tls/ca.pem",
                               .trust_bundle = "/data/tls/ca-bundle.pem"};
  };
  store::testing::MemoryStore store;
  ASSERT_TRUE(write_client_settings(store, settings(3000)));
  const std::string first = content_of(env);
  EXPECT_EQ(store.list_keys()->size(), 1u);
  EXPECT_EQ(first.substr(first.find('\n') + 1),
            "E2B_DOMAIN=alcove.localhost:3000\n"
            "NO_PROXY=127.0.0.1,localhost,::1,.alcove.localhost,${NO_PROXY-${no_proxy-}}\n"
            "no_proxy=127.0.0.1,localhost,::1,.alcove.localhost,"
            "${no_proxy-${NO_PROXY#127.0.0.1,localhost,::1,.alcove.localhost,}}\n"
            "NODE_EXTRA_CA_CERTS=/data/tls/ca.pem\n"
            "SSL_CERT_FILE=/data/tls/ca-bundle.pem\n");
  const std::string urls = content_of(plain);
  EXPECT_EQ(urls.substr(0, urls.find('\n')), first.substr(0, first.find('\n')));
  EXPECT_EQ(urls.substr(urls.find('\n') + 1),
            "E2B_API_URL=http://127.0.0.1:3000\nE2B_SANDBOX_URL=http://127.0.0.1:3000\n"
            "NO_PROXY=127.0.0.1,localhost,::1,${NO_PROXY-${no_proxy-}}\n"
            "no_proxy=127.0.0.1,localhost,::1,${no_proxy-${NO_PROXY#127.0.0.1,localhost,::1,}}\n");
  struct stat status{};
  ASSERT_EQ(::stat(env.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);

  ASSERT_TRUE(write_client_settings(store, settings(4000)));
  EXPECT_EQ(content_of(env).substr(0, 60), first.substr(0, 60));
  EXPECT_EQ(store.list_keys()->size(), 1u);

  ASSERT_TRUE(store.remove_key(store.list_keys()->front().id));
  ASSERT_TRUE(write_client_settings(store, settings(4000)));
  EXPECT_NE(content_of(env).substr(0, 60), first.substr(0, 60));
}

struct UsersProxies {
  const char* before;
  const char* upper;
  const char* lower;
};

class ClientSettingsInAShell : public testing::TestWithParam<UsersProxies> {};

TEST_P(ClientSettingsInAShell, KeepTheUsersOwnHosts) {
  const image::TempDir dir;
  const std::string env = dir / "env";
  store::testing::MemoryStore store;
  ASSERT_TRUE(write_client_settings(store, {.env_file = env,
                                            .plain_env_file = dir / "env-plain",
                                            .domain = "alcove.localhost:3000",
                                            .origin = "http://127.0.0.1:3000"}));
  // `-u`: scripts that allow no unset variables read it too.
  const std::string output = dir / "output";
  const std::string command = cat("env -i ", GetParam().before, " /bin/sh -euc '. ", env,
                                  "; echo $NO_PROXY; echo $no_proxy' > ", output);
  ASSERT_EQ(std::system(command.c_str()), 0);
  const std::string ours = "127.0.0.1,localhost,::1,.alcove.localhost,";
  EXPECT_EQ(content_of(output), cat(ours, GetParam().upper, "\n", ours, GetParam().lower, "\n"));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, ClientSettingsInAShell,
    testing::Values(UsersProxies{"", "", ""},
                    UsersProxies{"NO_PROXY=a.org,b.org", "a.org,b.org", "a.org,b.org"},
                    UsersProxies{"no_proxy=a.org", "a.org", "a.org"},
                    UsersProxies{"NO_PROXY=a.org no_proxy=b.org", "a.org", "b.org"}));

TEST(Domain, IsParsed) {
  EXPECT_EQ(parse_domain("Example.org", 3000)->authority(), "example.org:3000");
  EXPECT_EQ(parse_domain("example.org:443", 3000)->authority(), "example.org");
  EXPECT_TRUE(parse_domain("alcove.localhost", 3000)->is_local());
  EXPECT_FALSE(parse_domain("localhost.example.org", 3000)->is_local());
  for (const char* bad : {"", "localhost", "a..b", ".a.b", "a.b.", "a b.c", "-a.b", "a.b:", "a.b:0",
                          "a.b:x", "a.b:70000", "a.b:1:2", "*.a.b"}) {
    EXPECT_FALSE(parse_domain(bad, 3000)) << bad;
  }
}

TEST(TlsDomain, KeepsItsAuthorityAndRefusesOthersNames) {
  const image::TempDir dir;
  const TlsDomain::Options local{.domain = *parse_domain("alcove.localhost", 3000),
                                 .certificate = "",
                                 .key = "",
                                 .folder = dir / "tls"};
  auto first = TlsDomain::open(local);
  ASSERT_TRUE(first) << first.error().message();
  EXPECT_TRUE((*first)->identity().current()->covers("8000-abc.alcove.localhost"));
  const std::string authority = content_of((*first)->authority_file());
  for (const char* secret : {"tls/ca.key", "tls/leaf.key"}) {
    struct stat status{};
    ASSERT_EQ(::stat((dir / secret).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u) << secret;
  }
  first->reset();
  auto second = TlsDomain::open(local);
  ASSERT_TRUE(second);
  EXPECT_EQ(content_of((*second)->authority_file()), authority);
  ASSERT_TRUE(write_trust_bundle(dir / "bundle", "", (*second)->authority_file()));
  EXPECT_EQ(content_of(dir / "bundle"), authority);

  TlsDomain::Options files = local;
  files.certificate = dir / "tls/leaf.pem";
  EXPECT_FALSE(TlsDomain::open(files)) << "a certificate without its key";
  files.key = dir / "tls/leaf.key";
  ASSERT_TRUE(TlsDomain::open(files));
  files.domain = *parse_domain("example.org", 3000);
  const auto foreign = TlsDomain::open(files);
  ASSERT_FALSE(foreign);
  EXPECT_NE(foreign.error().message().find("is not for *.example.org"), std::string::npos);
  EXPECT_FALSE(
      TlsDomain::open({.domain = files.domain, .certificate = "", .key = "", .folder = ""}));
}

}  // namespace
}  // namespace alcove
