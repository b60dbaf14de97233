// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/template_catalog.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/strings.h"

namespace alcove::api {

struct TemplateCatalog::Index {
  // Ordered by creation.
  std::vector<CatalogEntryPtr> entries;
  std::unordered_multimap<std::string, CatalogEntryPtr> by_name;
  std::unordered_map<std::string, CatalogEntryPtr> by_id;
};

bool CatalogEntry::has_tag(std::string_view tag) const {
  return tag == "default" || tag == record.build.str();
}

TemplateCatalog::TemplateCatalog() : index_(std::make_shared<Index>()) {}
TemplateCatalog::~TemplateCatalog() = default;

void TemplateCatalog::put(CatalogEntry entry) {
  const auto added = std::make_shared<const CatalogEntry>(std::move(entry));
  const std::lock_guard lock(mutex_);
  auto next = std::make_shared<Index>();
  next->entries = index_->entries;
  std::erase_if(next->entries,
                [&](const CatalogEntryPtr& other) { return other->record.id == added->record.id; });
  next->entries.push_back(added);
  std::sort(next->entries.begin(), next->entries.end(), [](const auto& a, const auto& b) {
    return std::tie(a->record.created_at, a->record.id) <
           std::tie(b->record.created_at, b->record.id);
  });
  for (const CatalogEntryPtr& item : next->entries) {
    next->by_id.emplace(item->record.id.str(), item);
    next->by_name.emplace(to_lower(item->record.name), item);
    for (const std::string& alias : item->record.aliases) {
      next->by_name.emplace(to_lower(alias), item);
    }
  }
  index_ = std::move(next);
}

std::shared_ptr<const TemplateCatalog::Index> TemplateCatalog::snapshot() const {
  const std::lock_guard lock(mutex_);
  return index_;
}

CatalogEntryPtr TemplateCatalog::find(const TemplateReference& reference,
                                      const Viewer& viewer) const {
  const bool own_only = !reference.name_space.empty();
  if (own_only && reference.name_space != to_lower(viewer.team_name)) return nullptr;

  const auto index = snapshot();
  CatalogEntryPtr common;
  const auto [first, last] = index->by_name.equal_range(reference.name);
  for (auto at = first; at != last; ++at) {
    const TeamId& owner = at->second->record.team;
    if (!owner.empty() && owner == viewer.team) return at->second;
    if (owner.empty()) common = at->second;
  }
  if (own_only) return nullptr;
  if (common) return common;
  const auto by_id = index->by_id.find(reference.name);
  if (by_id == index->by_id.end()) return nullptr;
  const TeamId& owner = by_id->second->record.team;
  return owner.empty() || owner == viewer.team ? by_id->second : nullptr;
}

std::vector<CatalogEntryPtr> TemplateCatalog::list(const Viewer& viewer) const {
  std::vector<CatalogEntryPtr> visible;
  for (const CatalogEntryPtr& entry : snapshot()->entries) {
    const TeamId& owner = entry->record.team;
    if (owner.empty() || owner == viewer.team) visible.push_back(entry);
  }
  return visible;
}

}  // namespace alcove::api
