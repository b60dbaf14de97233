// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <atomic>

#include "base/result.h"
#include "image/layer_store.h"
#include "template/recipe.h"
#include "template/step_runner.h"

namespace alcove::templates {

// Fills a stage with a template's first layer: mmdebstrap, a copied directory or an unpacked tar
// file. Not for kTemplate. Installing packages ends early when `canceled` (may be null) is set.
Result<void> make_from_layer(const From& from, const image::LayerStage& stage,
                             const Progress& progress, const std::atomic<bool>* canceled);

}  // namespace alcove::templates
