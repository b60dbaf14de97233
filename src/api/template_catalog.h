// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "api/template_reference.h"
#include "base/ids.h"
#include "sandbox/driver.h"
#include "store/records.h"

namespace alcove::api {

struct CatalogEntry {
  store::Template record;
  // What sandboxes of its present build get.
  sandbox::Limits limits;

  // True for `default` and for the id of the present build, the tags there are so far.
  bool has_tag(std::string_view tag) const;
};

using CatalogEntryPtr = std::shared_ptr<const CatalogEntry>;

// The templates a create can name, in memory. Thread-safe.
class TemplateCatalog {
 public:
  TemplateCatalog();
  ~TemplateCatalog();

  // Adds a template, or replaces the one with the same id.
  void put(CatalogEntry entry);

  // Who asks: sees the team's own templates and those that are nobody's. The team's name is the
  // namespace of its templates.
  struct Viewer {
    TeamId team;
    std::string_view team_name;
  };
  // The team's own template of that name or alias goes before a common one, and a name before a
  // template id. Does not look at the tag. Null if there is none.
  CatalogEntryPtr find(const TemplateReference& reference, const Viewer& viewer) const;

  // All that the viewer sees, oldest first.
  std::vector<CatalogEntryPtr> list(const Viewer& viewer) const;

 private:
  struct Index;
  std::shared_ptr<const Index> snapshot() const;

  mutable std::mutex mutex_;
  // Never changed, only replaced: readers hold the lock for one pointer copy.
  std::shared_ptr<const Index> index_;
};

}  // namespace alcove::api
