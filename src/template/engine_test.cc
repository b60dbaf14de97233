// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "template/engine.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "image/files.h"
#include "image/testing/temp_dir.h"
#include "template/testing/host_driver.h"

namespace alcove::templates {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

class TemplateEngineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(image::make_directories(dir_ / "recipes/a/rootfs/etc"));
    image::write_text(dir_ / "recipes/a/rootfs/etc/os-release", "ID=test\n");
    image::write_text(dir_ / "recipes/a/rootfs/etc/resolv.conf", "nameserver of this machine\n");
    ASSERT_TRUE(image::make_directories(dir_ / "recipes/a/rootfs/root", 0700));
  }

  std::string data_dir() const { return dir_ / "data"; }

  Recipe recipe(const std::string& head, const std::string& from = "directory = \"rootfs\"") {
    auto parsed = parse_recipe(head + "\n[from]\n" + from + "\n", dir_ / "recipes/a");
    EXPECT_TRUE(parsed) << parsed.error().message();
    return *parsed;
  }

  TemplateEngine engine(RecipeBook book = {}) {
    auto opened = TemplateEngine::open({.data_dir = data_dir(),
                                        .driver = &driver_,
                                        .step_program = ALCOVE_STEP_PROGRAM,
                                        .recipes = std::move(book)});
    EXPECT_TRUE(opened) << opened.error().message();
    return std::move(*opened);
  }

  Result<Build> ensure(const Recipe& wanted) {
    lines_.clear();
    return engine().ensure(wanted, [this](std::string_view line) { lines_.emplace_back(line); });
  }

  // The topmost file of that name.
  static std::string content(const Build& build, const std::string& path) {
    for (const std::string& layer : build.layers) {
      if (image::path_exists(layer + "/" + path)) return image::read_text(layer + "/" + path);
    }
    return "(none)";
  }

  void expect_nothing_left() {
    auto stages = image::list_directory(data_dir() + "/layers/.stages");
    ASSERT_TRUE(stages);
    EXPECT_THAT(*stages, IsEmpty());
  }

  image::TempDir dir_;
  HostDriver driver_;
  std::vector<std::string> lines_;
};

TEST_F(TemplateEngineTest, BuildsLayersFromDirectoryFilesAndSteps) {
  ASSERT_TRUE(image::make_directories(dir_ / "recipes/a/root/usr/bin"));
  ASSERT_TRUE(image::make_directories(dir_ / "recipes/a/root/root"));
  image::write_text(dir_ / "recipes/a/root/usr/bin/tool", "#!/bin/sh\n");
  ASSERT_EQ(::chmod((dir_ / "recipes/a/root/usr/bin/tool").c_str(), 0775), 0);
  image::write_text(dir_ / "recipes/a/root/root/secret", "x");
  Recipe wanted = recipe(
      "name = \"a\"\nworkdir = \"/code\"\n"
      "steps = [\"echo hello; echo $COLOUR > made\", \"mkdir tmp; touch tmp/x\"]\n"
      "[modes]\n\"root/secret\" = \"0400\"\n[env]\nCOLOUR = \"blue\"");
  const auto build = ensure(wanted);
  ASSERT_TRUE(build) << build.error().message();
  ASSERT_EQ(build->layers.size(), 4u);
  EXPECT_EQ(content(*build, "etc/os-release"), "ID=test\n");
  EXPECT_EQ(content(*build, "made"), "blue\n");
  EXPECT_FALSE(image::path_exists(build->layers[1] + "/tmp/x"));
  EXPECT_EQ(content(*build, "etc/hostname"), "e2b.local\n");
  EXPECT_THAT(content(*build, "etc/hosts"), HasSubstr("e2b.local"));
  EXPECT_EQ(content(*build, "etc/resolv.conf"), "nameserver 8.8.8.8\n");
  EXPECT_THAT(content(*build, ".e2b"), HasSubstr("TEMPLATE_ID=" + build->template_id.str() + "\n"));
  EXPECT_THAT(content(*build, ".e2b"), HasSubstr("BUILD_ID=" + build->build_id.str() + "\n"));
  const std::string files = build->layers[2];
  EXPECT_EQ(image::stat_of(files + "/usr/bin/tool").st_mode & 07777, 0755u);
  EXPECT_EQ(image::stat_of(files + "/root/secret").st_mode & 07777, 0400u);
  // A directory that exists below keeps its mode.
  EXPECT_EQ(image::stat_of(files + "/root").st_mode & 07777, 0700u);
  EXPECT_EQ(build->default_user, "user");
  EXPECT_EQ(build->workdir, "/code");
  EXPECT_THAT(build->envs, ElementsAre(Pair("COLOUR", "blue")));
  EXPECT_THAT(lines_, ::testing::Contains("hello"));
  EXPECT_THAT(lines_, ::testing::Contains(HasSubstr("step 1/2: echo hello")));
  ASSERT_EQ(driver_.boots().size(), 1u);
  EXPECT_EQ(driver_.boots()[0].layers.size(), 2u);
  expect_nothing_left();
}

TEST_F(TemplateEngineTest, FindsAFinishedBuildInALaterProcess) {
  const Recipe wanted = recipe("name = \"a\"\nsteps = [\"touch made\"]\nuser = \"root\"");
  const auto first = ensure(wanted);
  ASSERT_TRUE(first);
  const auto second = ensure(wanted);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->hash, first->hash);
  EXPECT_EQ(second->layers, first->layers);
  EXPECT_EQ(second->default_user, "root");
  EXPECT_EQ(second->limits.memory_bytes, first->limits.memory_bytes);
  EXPECT_THAT(lines_, IsEmpty());
  EXPECT_EQ(driver_.boots().size(), 1u);
  const auto listed = engine().list_builds();
  ASSERT_TRUE(listed);
  ASSERT_EQ(listed->size(), 1u);
  EXPECT_EQ(listed->front().hash, first->hash);
  // With a layer gone it is no build any more, and made again.
  ASSERT_TRUE(image::remove_tree(first->layers[1]));
  EXPECT_FALSE(engine().find_build(first->hash));
  ASSERT_TRUE(ensure(wanted));
  EXPECT_EQ(driver_.boots().size(), 2u);
}

TEST_F(TemplateEngineTest, ReusesTheLayersBelowAChange) {
  const auto first = ensure(recipe("name = \"a\"\nsteps = [\"echo 1 > made\"]"));
  const auto step = ensure(recipe("name = \"a\"\nsteps = [\"echo 2 > made\"]"));
  ASSERT_TRUE(first && step);
  EXPECT_NE(step->hash, first->hash);
  EXPECT_NE(step->build_id, first->build_id);
  EXPECT_EQ(step->template_id, first->template_id);
  EXPECT_NE(step->layers[1], first->layers[1]);
  EXPECT_EQ(step->layers[2], first->layers[2]);
  EXPECT_EQ(step->layers[3], first->layers[3]);

  const auto limits =
      ensure(recipe("name = \"a\"\nsteps = [\"echo 2 > made\"]\n[resources]\nvcpu = 1"));
  ASSERT_TRUE(limits);
  EXPECT_NE(limits->hash, step->hash);
  EXPECT_EQ(limits->layers[1], step->layers[1]);
  EXPECT_EQ(driver_.boots().size(), 2u);

  image::write_text(dir_ / "recipes/a/rootfs/etc/os-release", "ID=changed\n");
  const auto source = ensure(recipe("name = \"a\"\nsteps = [\"echo 2 > made\"]"));
  ASSERT_TRUE(source);
  EXPECT_NE(source->layers[3], step->layers[3]);
  EXPECT_EQ(content(*source, "etc/os-release"), "ID=changed\n");
}

TEST_F(TemplateEngineTest, TellsWhichStepFailedAndHow) {
  const auto build =
      ensure(recipe("name = \"a\"\nsteps = [\"true\", \"echo the reason >&2; exit 3\", \"true\"]"));
  ASSERT_FALSE(build);
  EXPECT_THAT(build.error().message(), HasSubstr("template a: step 2/3"));
  EXPECT_THAT(build.error().message(), HasSubstr("exit status 3"));
  EXPECT_THAT(build.error().message(), HasSubstr("the reason"));
  expect_nothing_left();
  EXPECT_TRUE(engine().list_builds()->empty());
}

TEST_F(TemplateEngineTest, StopsAtTheFirstFailingCommandOfAStep) {
  const auto build = ensure(recipe("name = \"a\"\nsteps = [\"false\\ntouch made\"]"));
  ASSERT_FALSE(build);
  EXPECT_THAT(build.error().message(), HasSubstr("exit status 1"));
}

TEST_F(TemplateEngineTest, ReportsAJailThatDies) {
  const auto build = ensure(recipe("name = \"a\"\nsteps = [\"kill -9 $PPID\"]"));
  ASSERT_FALSE(build);
  EXPECT_THAT(build.error().message(), HasSubstr("ended unexpectedly"));
  expect_nothing_left();
}

TEST_F(TemplateEngineTest, DoesNotWaitForBackgroundProcesses) {
  const auto build = ensure(recipe("name = \"a\"\nsteps = [\"sleep 30 & echo $! > pid\"]"));
  ASSERT_TRUE(build) << build.error().message();
  ::kill(std::stoi(content(*build, "pid")), SIGKILL);
}

TEST_F(TemplateEngineTest, KeepsUpWithMuchOutput) {
  const auto build = ensure(recipe("name = \"a\"\nsteps = [\"seq 1 200000; exit 9\"]"));
  ASSERT_FALSE(build);
  EXPECT_THAT(build.error().message(), HasSubstr("\n200000\n"));
  EXPECT_THAT(build.error().message(), Not(HasSubstr("\n199000\n")));
  EXPECT_GT(lines_.size(), 200000u);
}

TEST_F(TemplateEngineTest, StartsFromAnotherTemplate) {
  RecipeBook book;
  ASSERT_TRUE(
      book.add(recipe("name = \"base\"\nworkdir = \"/w\"\nsteps = [\"touch made\"]\n"
                      "[env]\nA = \"1\"")));
  Recipe child = recipe("name = \"large\"\n[resources]\nmemory_mb = 4096\n[env]\nB = \"2\"",
                        "template = \"base\"");
  child.folder = dir_ / "recipes/large";
  TemplateEngine made = engine(book);
  const auto parent = made.ensure(*book.find("base"), {});
  const auto build = made.ensure(child, {});
  ASSERT_TRUE(parent && build) << build.error().message();
  EXPECT_EQ(driver_.boots().size(), 1u);
  ASSERT_EQ(build->layers.size(), parent->layers.size());
  EXPECT_NE(build->layers[0], parent->layers[0]);
  EXPECT_EQ(build->layers[1], parent->layers[1]);
  EXPECT_EQ(build->limits.memory_bytes, 4096ull << 20);
  EXPECT_EQ(build->workdir, "/w");
  EXPECT_THAT(build->envs, ElementsAre(Pair("A", "1"), Pair("B", "2")));
  EXPECT_THAT(content(*build, ".e2b"), HasSubstr(build->template_id.str()));
}

TEST_F(TemplateEngineTest, RefusesCirclesAndUnknownParents) {
  RecipeBook book;
  ASSERT_TRUE(book.add(recipe("name = \"x\"", "template = \"y\"")));
  ASSERT_TRUE(book.add(recipe("name = \"y\"", "template = \"x\"")));
  EXPECT_THAT(engine(book).ensure(*book.find("x"), {}).error().message(),
              HasSubstr("start from each other"));
  EXPECT_THAT(ensure(recipe("name = \"z\"", "template = \"nope\"")).error().message(),
              HasSubstr("no recipe named nope"));
}

TEST_F(TemplateEngineTest, RefusesFilesBelowALinkOfTheRoot) {
  ASSERT_TRUE(image::make_directories(dir_ / "recipes/a/rootfs/usr/bin"));
  ASSERT_EQ(::symlink("usr/bin", (dir_ / "recipes/a/rootfs/bin").c_str()), 0);
  ASSERT_TRUE(image::make_directories(dir_ / "recipes/a/root/bin"));
  image::write_text(dir_ / "recipes/a/root/bin/tool", "x");
  const auto build = ensure(recipe("name = \"a\""));
  ASSERT_FALSE(build);
  EXPECT_THAT(build.error().message(), HasSubstr("/bin of the layers below is a link"));
}

TEST_F(TemplateEngineTest, RefusesModesOfFilesThatDoNotExist) {
  const auto build = ensure(recipe("name = \"a\"\n[modes]\n\"etc/nope\" = \"0600\""));
  ASSERT_FALSE(build);
  EXPECT_THAT(build.error().message(), HasSubstr("there is no etc/nope"));
}

TEST_F(TemplateEngineTest, MakesALayerOnceForManyWaiters) {
  const Recipe wanted = recipe("name = \"a\"\nsteps = [\"sleep 0.2; touch made\"]");
  std::vector<Result<Build>> builds(4, fail(Code::kUnknown, "not run"));
  std::vector<std::thread> threads;
  for (auto& build : builds) {
    threads.emplace_back([&] { build = engine().ensure(wanted, {}); });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& build : builds) {
    ASSERT_TRUE(build) << build.error().message();
    EXPECT_EQ(build->layers, builds[0]->layers);
  }
  EXPECT_EQ(driver_.boots().size(), 1u);
  expect_nothing_left();
}

TEST_F(TemplateEngineTest, StepsAreToldOfTheCaBundleAndHashesAreNot) {
  const Recipe wanted = recipe(
      "name = \"a\"\nsteps = ['echo $SSL_CERT_FILE $PIP_CERT $REQUESTS_CA_BUNDLE "
      "$NODE_EXTRA_CA_CERTS $GIT_SSL_CAINFO > made']\n[env]\nPIP_CERT = \"own\"");
  const auto without = ensure(wanted);
  ASSERT_TRUE(without) << without.error().message();
  EXPECT_EQ(content(*without, "made"), "own\n");
  EXPECT_EQ(driver_.boots().back().ca_bundle, "");

  auto trusting = TemplateEngine::open({.data_dir = dir_ / "other",
                                        .driver = &driver_,
                                        .step_program = ALCOVE_STEP_PROGRAM,
                                        .ca_bundle = "/bundle"});
  ASSERT_TRUE(trusting);
  const auto with = trusting->ensure(wanted, {});
  ASSERT_TRUE(with) << with.error().message();
  const std::string inside = sandbox::kCaBundleInside;
  // What the recipe itself says counts.
  EXPECT_EQ(content(*with, "made"), inside + " own " + inside + " " + inside + " " + inside + "\n");
  EXPECT_EQ(driver_.boots().back().ca_bundle, "/bundle");
  EXPECT_EQ(with->hash, without->hash);
  EXPECT_THAT(with->envs, ElementsAre(Pair("PIP_CERT", "own")));
}

TEST_F(TemplateEngineTest, AReplacementHasNameAliasesAndLimitsOfTheOther) {
  ASSERT_TRUE(image::make_directories(dir_ / "recipes/big"));
  image::write_text(dir_ / "recipes/a/recipe.toml",
                    "name = \"a\"\naliases = [\"alias\"]\ninterpreter = true\n"
                    "[resources]\nmemory_mb = 2048\n[from]\ndirectory = \"rootfs\"\n");
  image::write_text(dir_ / "recipes/big/recipe.toml",
                    "name = \"big\"\nreplaces = \"a\"\nsteps = [\"touch more\"]\n"
                    "[from]\ntemplate = \"a\"\n");
  auto book = RecipeBook::load({dir_ / "recipes"});
  ASSERT_TRUE(book) << book.error().message();
  TemplateEngine made = engine(*book);
  const auto small = made.ensure(*book->find("a"), {});
  ASSERT_TRUE(small) << small.error().message();
  EXPECT_FALSE(made.find(*book->find("big")));
  const auto big = made.ensure(*book->find("big"), {});
  ASSERT_TRUE(big) << big.error().message();
  EXPECT_TRUE(made.find(*book->find("big")));
  EXPECT_EQ(big->template_name, "a");
  EXPECT_EQ(big->template_id, small->template_id);
  EXPECT_NE(big->build_id, small->build_id);
  EXPECT_THAT(big->aliases, ElementsAre("alias"));
  EXPECT_EQ(big->limits.memory_bytes, 2048ull << 20);
  EXPECT_TRUE(big->interpreter);
  EXPECT_EQ(content(*big, "more"), "");
}

TEST_F(TemplateEngineTest, AReplacementOfNothingIsRefused) {
  const auto build = ensure(recipe("name = \"big\"\nreplaces = \"gone\""));
  ASSERT_FALSE(build);
  EXPECT_THAT(build.error().message(), HasSubstr("no recipe named gone"));
}

TEST_F(TemplateEngineTest, HasTheSameIdsEverywhere) {
  EXPECT_EQ(template_id_of("base"), template_id_of("base"));
  EXPECT_NE(template_id_of("base"), template_id_of("large"));
  EXPECT_EQ(template_id_of("base").str().size(), 20u);
  EXPECT_EQ(build_id_of("x").str().size(), 36u);
  EXPECT_NE(build_id_of("x"), build_id_of("y"));
}

TEST(ParseBuild, RefusesWhatIsNoBuild) {
  EXPECT_FALSE(parse_build("{"));
  EXPECT_FALSE(parse_build("[]"));
  EXPECT_THAT(parse_build("{\"hash\":\"x\"}").error().message(), HasSubstr("\"name\""));
}

}  // namespace
}  // namespace alcove::templates
