// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "template/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "image/files.h"
#include "image/testing/temp_dir.h"

namespace alcove::templates {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(ParseRecipe, ReadsEveryField) {
  const auto recipe = parse_recipe(R"(
name = "base"
aliases = ["default", "debian-13"]
description = "Debian"
user = "user"
workdir = "/home/user"
hostname = "e2b.local"
steps = ["useradd user", '''
echo one
echo two''']

[resources]
vcpu = 4
memory_mb = 4096
pids = 100
disk_mb = 2048

[from]
debian = "trixie"
packages = ["sudo", "git", "g++"]
slim = true

[modes]
"etc/sudoers.d/user" = "0440"

[env]
LANG = "C.UTF-8"
)",
                                   "/recipes/base");
  ASSERT_TRUE(recipe) << recipe.error().message();
  EXPECT_EQ(recipe->name, "base");
  EXPECT_THAT(recipe->aliases, ElementsAre("default", "debian-13"));
  EXPECT_EQ(recipe->user, "user");
  EXPECT_EQ(recipe->workdir, "/home/user");
  EXPECT_THAT(recipe->steps, ElementsAre("useradd user", "echo one\necho two"));
  EXPECT_EQ(recipe->limits.vcpu_count, 4u);
  EXPECT_EQ(recipe->limits.memory_bytes, 4096ull << 20);
  EXPECT_EQ(recipe->limits.pids, 100u);
  EXPECT_EQ(recipe->limits.disk_bytes, 2048ull << 20);
  EXPECT_EQ(recipe->from.kind, From::Kind::kDebian);
  EXPECT_EQ(recipe->from.source, "trixie");
  EXPECT_THAT(recipe->from.packages, ElementsAre("g++", "git", "sudo"));
  EXPECT_EQ(recipe->from.docs, From::Docs::kSlim);
  EXPECT_THAT(recipe->modes, ElementsAre(Pair("etc/sudoers.d/user", 0440)));
  EXPECT_THAT(recipe->envs, ElementsAre(Pair("LANG", "C.UTF-8")));
}

TEST(ParseRecipe, ReadsPythonPackagesInterpreterAndReplacement) {
  const auto recipe = parse_recipe(
      "name = \"big\"\ninterpreter = true\nreplaces = \"small\"\nroot = \"../small/root\"\n"
      "[from]\ntemplate = \"small\"\n[python]\nversion = \"3.13\"\nlock = \"wheels.lock\"\n",
      "/recipes/big");
  ASSERT_TRUE(recipe) << recipe.error().message();
  EXPECT_TRUE(recipe->interpreter);
  EXPECT_EQ(recipe->replaces, "small");
  ASSERT_TRUE(recipe->python);
  EXPECT_EQ(recipe->python->version, "3.13");
  EXPECT_EQ(recipe->python->lock, "/recipes/big/wheels.lock");
}

TEST(ParseRecipe, HasDefaults) {
  const auto recipe = parse_recipe("name = \"x\"\n[from]\ntar = \"root.tar\"\n", "/recipes/x");
  ASSERT_TRUE(recipe) << recipe.error().message();
  EXPECT_EQ(recipe->limits.vcpu_count, 2u);
  EXPECT_EQ(recipe->limits.memory_bytes, 1024ull << 20);
  EXPECT_EQ(recipe->limits.pids, 2048u);
  EXPECT_EQ(recipe->limits.disk_bytes, 10240ull << 20);
  EXPECT_EQ(recipe->from.source, "/recipes/x/root.tar");
  EXPECT_FALSE(recipe->user);
}

struct Refusal {
  const char* text;
  const char* message;
};

class ParseRecipeRefuses : public ::testing::TestWithParam<Refusal> {};

TEST_P(ParseRecipeRefuses, AndSaysWhy) {
  const auto recipe = parse_recipe(GetParam().text, "/recipes/x");
  ASSERT_FALSE(recipe);
  EXPECT_EQ(recipe.error().code(), Code::kInvalidArgument);
  EXPECT_THAT(recipe.error().message(), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, ParseRecipeRefuses,
    ::testing::Values(
        Refusal{"name = ", "line 1"}, Refusal{"[from]\ndebian = \"trixie\"", "\"name\" is missing"},
        Refusal{"name = \"a/b\"\n[from]\ndebian = \"trixie\"", "\"name\" must be"},
        Refusal{"name = \"a\"", "exactly one of"},
        Refusal{"name = \"a\"\n[from]\ndebian = \"trixie\"\ntar = \"x\"", "exactly one of"},
        Refusal{"name = \"a\"\ncolour = 1\n[from]\ndebian = \"x\"", "unknown key \"colour\""},
        Refusal{"name = \"a\"\n[from]\ndebian = \"x\"\npackage = []", "\"from.package\""},
        Refusal{"name = \"a\"\n[from]\ndebian = \"--evil\"", "not a suite"},
        Refusal{"name = \"a\"\n[from]\ndebian = \"x\"\npackages = [\"-o\"]", "not a package"},
        Refusal{"name = \"a\"\n[from]\ntar = \"x\"\npackages = [\"git\"]", "debian only"},
        Refusal{"name = \"a\"\nuser = 1\n[from]\ntar = \"x\"", "\"user\" must be a string"},
        Refusal{"name = \"a\"\nworkdir = \"home\"\n[from]\ntar = \"x\"", "absolute path"},
        Refusal{"name = \"a\"\n[from]\ntar = \"x\"\n[modes]\nf = \"9\"", "octal"},
        Refusal{"name = \"a\"\n[from]\ntar = \"x\"\n[resources]\nvcpu = 0", "\"resources.vcpu\""},
        Refusal{"name = \"a\"\nreplaces = \"a\"\n[from]\ntar = \"x\"", "another template"},
        Refusal{"name = \"a\"\naliases = [\"b\"]\nreplaces = \"c\"\n[from]\ntar = \"x\"",
                "no aliases of its own"},
        Refusal{"name = \"a\"\n[from]\ntar = \"x\"\n[python]\nlock = \"l\"", "python.version"},
        Refusal{"name = \"a\"\n[from]\ntar = \"x\"\n[python]\nversion = \"3.13; ls\"",
                "python.version"},
        Refusal{"name = \"a\"\n[from]\ntar = \"x\"\n[python]\nversion = \"3.13\"", "python.lock"},
        Refusal{"name = \"a\"\nsteps = \"ls\"\n[from]\ntar = \"x\"", "\"steps\" must be a list"}));

class RecipeBookTest : public ::testing::Test {
 protected:
  void write_recipe(const std::string& folder, const std::string& head) {
    ASSERT_TRUE(image::make_directories(dir_ / folder));
    image::write_text(dir_ / (folder + "/recipe.toml"), head + "\n[from]\ntar = \"r.tar\"\n");
  }
  image::TempDir dir_;
};

TEST_F(RecipeBookTest, FindsByNameAndAliasAndLetsLaterFoldersWin) {
  write_recipe("one/base", "name = \"base\"\naliases = [\"b\"]");
  write_recipe("two/mine", "name = \"base\"\ndescription = \"mine\"\naliases = [\"b\", \"c\"]");
  ASSERT_TRUE(image::make_directories(dir_ / "two/not-a-recipe"));
  const auto book = RecipeBook::load({dir_ / "one", dir_ / "two"});
  ASSERT_TRUE(book) << book.error().message();
  ASSERT_EQ(book->recipes().size(), 1u);
  ASSERT_NE(book->find("c"), nullptr);
  EXPECT_EQ(book->find("b")->description, "mine");
  EXPECT_EQ(book->find("nope"), nullptr);
}

TEST_F(RecipeBookTest, RefusesTwoOwnersOfOneAlias) {
  write_recipe("one/a", "name = \"a\"\naliases = [\"x\"]");
  write_recipe("one/b", "name = \"b\"\naliases = [\"x\"]");
  const auto book = RecipeBook::load({dir_ / "one"});
  ASSERT_FALSE(book);
  EXPECT_THAT(book.error().message(), HasSubstr("the name x is claimed by"));
}

TEST_F(RecipeBookTest, NamesTheBrokenFile) {
  write_recipe("one/a", "name = \"a\"\nbad = 1");
  const auto book = RecipeBook::load({dir_ / "one"});
  ASSERT_FALSE(book);
  EXPECT_THAT(book.error().message(), HasSubstr("one/a/recipe.toml"));
}

}  // namespace
}  // namespace alcove::templates
