// EPContext nodes as whoever reads a model sees them, made ready to be executed (docs/compiled-models.md). Knows neither ONNX Runtime
// nor a file of a model: context_nodes.h and native/capi/ read those.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compiled_model.h"
#include "plan_source.h"

namespace xyntra {

// A tensor that a node reads or makes, and what the model says of it now.
struct NodeTensor {
  std::string name;
  int32_t elem_type = 0;
  bool is_constant = false;
  bool has_shape = false;
  std::vector<int64_t> dims;   // -1: not declared
  const void* data = nullptr;  // of a constant
  std::size_t bytes = 0;
};

struct CompiledNode {
  bool is_main = true;
  bool is_embedded = true;
  std::string content;    // of a main node: a compiled model, or the name of a file
  std::string partition;  // the name of a compiled model, and the number of an island
  std::vector<NodeTensor> inputs, outputs;
};

// An island of a plan whose kernels are loaded and whose tensors have the names that they have now.
struct OpenedNode {
  std::size_t island = 0;
  std::shared_ptr<const UsablePlan> usable;
};

std::string folder_of(const std::string& path);

// `partition_name` of a node.
std::string partition_of(const CompiledModel& compiled, std::size_t island);

// All nodes of a graph, or none: throws Error with the reason why not. `model_path`: "" for a model in memory; `digests`: a file with
// the SHA-256 of what may be executed, "" where that is not asked for.
std::vector<OpenedNode> open_nodes(std::vector<CompiledNode> nodes, const std::string& model_path, const std::string& digests);

}  // namespace xyntra
