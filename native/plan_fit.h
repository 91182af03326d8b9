// Whether an island speaks of the tensors that a graph has. The plan says of which type its inputs and outputs are and where init
// steps begin in constants; kernels take that for granted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph_buffer.h"
#include "plan.h"

namespace xyntra {

// Whether init steps begin inside of their constants, which have so many bytes.
bool begins_inside(const Alternative& plan, const std::vector<uint64_t>& constant_bytes);

// Why it does not; empty when it does. Names that the graph does not have are not looked at (claims.h).
std::string why_unfit(const PlanIsland& island, const GraphBuffer& graph);

}  // namespace xyntra
