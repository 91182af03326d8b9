#include "open_nodes.h"

#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "byte_io.h"
#include "ort.h"
#include "plan_fit.h"
#include "planner_link.h"
#include "sha256.h"
#include "trusted_file.h"

namespace xyntra {
namespace {

constexpr std::size_t kMostFileBytes = std::size_t{1} << 31;

// Why a compiled model is not executed, for its user.
class Refusal : public Error {
 public:
  explicit Refusal(const std::string& why) : Error(kInvalidArgument, "XyntraEP does not execute this compiled model: " + why) {}
};

[[noreturn]] void refuse(const std::string& why) { throw Refusal(why); }

// Where folders are parted by backslashes, colons name drives and streams; elsewhere both may be in a name.
bool is_plain_name(const std::string& name) {
  constexpr std::string_view kApart = std::filesystem::path::preferred_separator == '/' ? std::string_view("/\0", 2) : std::string_view("/\\:\0", 4);
  return !name.empty() && name != "." && name != ".." && name.find_first_of(kApart) == std::string::npos;
}

std::string read_beside(const std::string& model_path, const std::string& name) {
  if (!is_plain_name(name)) refuse("the file that it names is not one beside the model");
  if (model_path.empty()) refuse("it was given from memory, and its compiled part is in the file " + name + " beside a model");
  TrustedFile file = read_trusted_file(folder_of(model_path) + '/' + name, kMostFileBytes);
  if (!file.error.empty()) refuse(file.error);
  return std::move(file.bytes);
}

std::shared_ptr<const CompiledModel> read_compiled(const std::string& model_path, bool embedded, std::string content,
                                                   const std::string& digests) {
  std::string bytes = embedded ? std::move(content) : read_beside(model_path, content);
  if (!digests.empty()) {
    const TrustedFile file = read_trusted_file(expanded(digests), kMostFileBytes);
    if (!file.error.empty()) refuse("compiled_digest: " + file.error);
    const std::string digest = sha256_hex(bytes);
    std::istringstream words(file.bytes);
    bool listed = false;
    for (std::string word; words >> word;) listed = listed || word == digest;
    if (!listed) refuse("its SHA-256 is " + digest + ", which " + digests + " does not list");
  }
  try {
    return CompiledModel::read(std::move(bytes));
  } catch (const FormatError& error) {
    refuse(error.what());
  }
}

// Kernels take for granted what the model said of its tensors when it was compiled.
void check_tensor(const NodeTensor& now, const CompiledModel::Tensor& then) {
  const std::string name = "'" + then.name + "'";
  if (now.is_constant != then.is_constant) refuse(name + (then.is_constant ? " is no constant" : " is a constant"));
  if (now.elem_type != then.elem_type) refuse(name + " has another type");
  if (!then.has_shape) return;
  bool same = now.has_shape && now.dims.size() == then.dims.size();
  for (std::size_t i = 0; same && i < then.dims.size(); ++i) same = then.dims[i] < 0 || then.dims[i] == now.dims[i];
  if (!same) refuse(name + " has another shape");
}

using Tensors = std::unordered_map<std::string, const NodeTensor*>;  // by the names that plans have for them

// Gives an island of a plan the names that tensors have now: which one it is is told by its place, since ONNX Runtime may have given
// it another name.
void adapt_island(PlanIsland& island, const CompiledNode& node, const CompiledModel& compiled, const std::vector<uint32_t>& reads,
                  Tensors& all) {
  if (node.inputs.size() != reads.size())
    refuse("its node reads " + std::to_string(node.inputs.size()) + " tensors, not " + std::to_string(reads.size()));
  if (node.outputs.size() != island.outputs.size()) refuse("its node does not make what its island does");
  Tensors tensors;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    const CompiledModel::Tensor& then = compiled.tensors()[reads[i]];
    check_tensor(node.inputs[i], then);
    tensors.emplace(then.name, &node.inputs[i]);
    all.emplace(then.name, &node.inputs[i]);
  }
  const auto now = [&](const std::string& name) -> const NodeTensor& {
    const auto found = tensors.find(name);
    if (found == tensors.end()) refuse("its node does not read '" + name + "'");
    return *found->second;
  };
  const auto check_type = [](const PlanTensor& planned, const NodeTensor& tensor) {
    if (planned.elem_type != tensor.elem_type) refuse("its plan has another type for '" + planned.name + "'");
  };
  for (PlanTensor& input : island.inputs) {
    const NodeTensor& tensor = now(input.name);
    if (tensor.is_constant) refuse("'" + input.name + "' is a constant");
    check_type(input, tensor);
    input.name = tensor.name;
  }
  std::vector<uint64_t> bytes;
  for (std::string& name : island.constants) {
    const NodeTensor& tensor = now(name);
    if (!tensor.is_constant) refuse("'" + name + "' is no constant");
    bytes.push_back(tensor.bytes);
    name = tensor.name;
  }
  for (std::size_t i = 0; i < island.outputs.size(); ++i) {
    check_type(island.outputs[i], node.outputs[i]);
    island.outputs[i].name = node.outputs[i].name;
  }
  for (const Alternative& plan : island.alternatives) {
    if (!begins_inside(plan, bytes)) refuse("an init step begins outside of a constant");
  }
}

void check_depends(const Plan& plan, const Tensors& tensors) {
  for (const PlanDepend& depend : plan.depends) {
    const auto found = tensors.find(depend.value);
    const NodeTensor* const now = found == tensors.end() ? nullptr : found->second;
    if (now == nullptr || !now->is_constant || hash128(now->data, now->bytes) != depend.hash)
      refuse("the constant '" + depend.value + "' is another one than it was compiled for");
  }
}

struct Opened {
  std::shared_ptr<const CompiledModel> compiled;
  std::vector<const CompiledNode*> nodes;  // by island; null where none was found yet
  std::shared_ptr<const UsablePlan> usable;
};

void open_plan(Opened& model) {
  Tensors tensors;
  const CompiledModel& compiled = *model.compiled;
  const auto adapt = [&](Plan& plan) {
    if (plan.islands.size() != model.nodes.size()) refuse("its plan is for other islands");
    for (std::size_t i = 0; i < model.nodes.size(); ++i) {
      if (model.nodes[i] == nullptr) continue;  // ONNX Runtime has dropped what nobody reads
      adapt_island(plan.islands[i], *model.nodes[i], compiled, compiled.islands()[i], tensors);
    }
    check_depends(plan, tensors);
  };
  try {
    UsablePlan usable = plan_of(model.compiled, true, adapt);
    usable.from_model = true;
    usable.compiled = nullptr;  // some megabytes that the model's reader may have, too
    model.usable = std::make_shared<const UsablePlan>(std::move(usable));
  } catch (const Refusal&) {
    throw;
  } catch (const Error& error) {
    refuse(error.what());
  }
}

}  // namespace

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1));
}

std::string partition_of(const CompiledModel& compiled, std::size_t island) {
  return compiled.name() + '/' + std::to_string(island);
}

std::vector<OpenedNode> open_nodes(std::vector<CompiledNode> nodes, const std::string& model_path, const std::string& digests) {
  std::map<std::string, Opened> opened;  // by the name of the compiled model
  for (CompiledNode& node : nodes) {
    if (!node.is_main) continue;
    auto compiled = read_compiled(model_path, node.is_embedded, std::move(node.content), digests);
    const std::size_t islands = compiled->islands().size();
    const std::string name = compiled->name();
    opened.emplace(name, Opened{std::move(compiled), std::vector<const CompiledNode*>(islands), nullptr});
  }
  std::vector<OpenedNode> found;
  std::vector<Opened*> models;
  for (const CompiledNode& node : nodes) {
    const std::size_t slash = node.partition.find('/');
    const auto model = opened.find(node.partition.substr(0, slash));
    if (slash == std::string::npos || model == opened.end()) refuse("a node names a compiled model that is not there");
    char* end = nullptr;
    const std::string digits = node.partition.substr(slash + 1);
    const unsigned long island = std::strtoul(digits.c_str(), &end, 10);
    if (digits.empty() || *end != '\0' || island >= model->second.nodes.size()) refuse("a node names an island that is not there");
    if (model->second.nodes[island] != nullptr) refuse("two nodes name the same island");
    model->second.nodes[island] = &node;
    found.push_back({island, nullptr});
    models.push_back(&model->second);
  }
  for (auto& [name, model] : opened) open_plan(model);
  for (std::size_t i = 0; i < found.size(); ++i) found[i].usable = models[i]->usable;
  return found;
}

}  // namespace xyntra
