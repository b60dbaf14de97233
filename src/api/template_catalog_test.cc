// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/template_catalog.h"

#include <gtest/gtest.h>

#include <string>

namespace alcove::api {
namespace {

class Catalog : public ::testing::Test {
 protected:
  void put(const std::string& id, const std::string& name, const std::string& team = "",
           std::vector<std::string> aliases = {}) {
    CatalogEntry entry;
    entry.record.id = TemplateId(id);
    entry.record.name = name;
    entry.record.team = TeamId(team);
    entry.record.aliases = std::move(aliases);
    entry.record.created_at = WallTime(std::chrono::microseconds(++count_));
    catalog_.put(std::move(entry));
  }
  // The id that the reference leads to, "" if none.
  std::string find(std::string_view text, const std::string& team = "t1") {
    const auto entry = catalog_.find(parse_template_reference(text).value(),
                                     {.team = TeamId(team), .team_name = "Red"});
    return entry == nullptr ? "" : entry->record.id.str();
  }

  TemplateCatalog catalog_;
  int count_ = 0;
};

TEST_F(Catalog, FindsByNameAliasAndIdWithoutCase) {
  put("id1", "Base", "", {"Start"});
  EXPECT_EQ(find("base"), "id1");
  EXPECT_EQ(find("BASE:default"), "id1");
  EXPECT_EQ(find("start"), "id1");
  EXPECT_EQ(find("id1"), "id1");
  EXPECT_EQ(find("other"), "");
}

TEST_F(Catalog, OwnTemplateGoesBeforeTheCommonOne) {
  put("id1", "base");
  put("id2", "base", "t1");
  put("id3", "base", "t2");
  EXPECT_EQ(find("base"), "id2");
  EXPECT_EQ(find("base", "t3"), "id1");
}

TEST_F(Catalog, NamespaceMeansTheTeamsOwn) {
  put("id1", "base");
  EXPECT_EQ(find("red/base"), "");
  put("id2", "base", "t1");
  EXPECT_EQ(find("red/base"), "id2");
  EXPECT_EQ(find("blue/base"), "");
  EXPECT_EQ(find("red/id2"), "") << "an id has no namespace";
}

TEST_F(Catalog, OthersTemplatesAreInvisible) {
  put("id1", "own", "t2");
  EXPECT_EQ(find("own"), "");
  EXPECT_EQ(find("id1"), "");
  EXPECT_TRUE(catalog_.list({.team = TeamId("t1"), .team_name = ""}).empty());
}

TEST_F(Catalog, PutReplacesTheTemplateOfThatId) {
  put("id1", "base", "", {"old"});
  put("id1", "base", "", {"new"});
  EXPECT_EQ(find("old"), "");
  EXPECT_EQ(find("new"), "id1");
  EXPECT_EQ(catalog_.list({.team = TeamId("t1"), .team_name = ""}).size(), 1u);
}

TEST_F(Catalog, TeamWithoutNameOrIdSeesNoMoreThanTheCommonOnes) {
  put("id1", "own", "t2");
  EXPECT_EQ(find("own", ""), "");
}

TEST(CatalogEntry, TagsAreDefaultAndTheBuild) {
  CatalogEntry entry;
  entry.record.build = BuildId("b1");
  EXPECT_TRUE(entry.has_tag("default"));
  EXPECT_TRUE(entry.has_tag("b1"));
  EXPECT_FALSE(entry.has_tag("v1"));
}

}  // namespace
}  // namespace alcove::api
