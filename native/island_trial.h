// An island of a plan by itself, as devices are tried: no model, no session.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "evaluation.h"

namespace xyntra {

// Runs island `island` of the plan in a file, which must be for a device and have no constants. `outputs` have room for what the
// plan writes at these shapes. Throws what is wrong with the plan, and what the device reports.
void run_island(const std::string& path, std::size_t island, const std::vector<InputView>& inputs,
                const std::vector<void*>& outputs);

}  // namespace xyntra
