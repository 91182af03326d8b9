#include "compiled_file.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "element_bytes.h"
#include "open_nodes.h"
#include "ort.h"
#include "shared_threads.h"

namespace xyntra {
namespace {

NodeTensor tensor_of(const OnnxFile& file, const std::string& name) {
  NodeTensor tensor;
  tensor.name = name;
  if (const OnnxTensorType* type = file.type(name)) {
    tensor.elem_type = type->elem_type;
    tensor.has_shape = type->has_shape;
    tensor.dims = type->dims;
  }
  if (const OnnxConstant* constant = file.constant(name)) {
    tensor.is_constant = true;
    tensor.data = constant->data;
    tensor.bytes = constant->bytes;
  }
  return tensor;
}

CompiledNode compiled_node(const OnnxFile& file, const OnnxNode& node) {
  if (node.op_type != "EPContext" || node.domain != "com.microsoft" || node.text("source") != "XyntraEP")
    throw Error(kNotImplemented, "node '" + node.name + "' (" + node.op_type +
                                     ") was not compiled: such a model runs in ONNX Runtime, with XyntraEP as its provider");
  CompiledNode compiled;
  compiled.is_main = node.number("main_context", 1) != 0;
  compiled.is_embedded = node.number("embed_mode", 1) != 0;
  compiled.content = node.text("ep_cache_context");
  compiled.partition = node.text("partition_name");
  for (const std::string& name : node.inputs) compiled.inputs.push_back(tensor_of(file, name));
  for (const std::string& name : node.outputs) compiled.outputs.push_back(tensor_of(file, name));
  return compiled;
}

// The constants of an island, while it packs them. Kernels read elements where their type wants them, and a file has them anywhere:
// so each is copied when it is asked for.
class FileConstants {
 public:
  FileConstants(const OnnxFile& file, const PlanIsland& island) : copies_(island.constants.size()) {
    for (const std::string& name : island.constants) constants_.push_back(file.constant(name));
  }

  Constants view() {
    return {[this](std::size_t i) { return data(i); }, [this](std::size_t i) { return constants_[i]->bytes; },
            [this](std::size_t i) { copies_[i] = MemoryBlock(); }};
  }

 private:
  const void* data(std::size_t i) {
    const OnnxConstant& constant = *constants_[i];
    if (reinterpret_cast<uintptr_t>(constant.data) % kAlignment == 0) return constant.data;
    MemoryBlock& copy = copies_[i];
    if (copy.data() == nullptr) {
      copy = MemoryBlock(constant.bytes + kSpareBytes, "a constant");
      if (constant.bytes != 0) std::memcpy(copy.data(), constant.data, constant.bytes);
    }
    return copy.data();
  }

  std::vector<const OnnxConstant*> constants_;
  std::vector<MemoryBlock> copies_;
};

std::string dims_text(const std::vector<int64_t>& dims) {
  std::string text = "[";
  for (std::size_t i = 0; i < dims.size(); ++i) text += (i != 0 ? "," : "") + std::to_string(dims[i]);
  return text + "]";
}

// What ONNX Runtime would refuse to be fed: plans rely on the sizes that the model fixes.
void check_input(const OnnxTensorType& declared, const CallersTensor& given) {
  const std::string name = "input '" + declared.name + "'";
  if (given.elem_type != declared.elem_type)
    throw Error(kInvalidArgument, name + " has elements of type " + std::to_string(given.elem_type) + ", the model wants " +
                                      std::to_string(declared.elem_type));
  if (!declared.has_shape) return;
  bool same = given.dims.size() == declared.dims.size();
  for (std::size_t i = 0; same && i < given.dims.size(); ++i)
    same = declared.dims[i] < 0 || declared.dims[i] == given.dims[i];
  if (!same) throw Error(kInvalidArgument, name + " is " + dims_text(given.dims) + ", the model wants " + dims_text(declared.dims));
}

}  // namespace

CompiledFile::CompiledFile(std::string_view bytes, const std::string& folder, const std::string& digests) {
  const OnnxFile file(bytes, folder);
  inputs_ = file.inputs();
  outputs_ = file.outputs();
  std::unordered_map<std::string, std::size_t> number;  // of tensors that there are so far
  const auto add = [&](const std::string& name, int32_t elem_type) {
    if (!number.emplace(name, elem_types_.size()).second) throw Error(kInvalidArgument, "two tensors are named '" + name + "'");
    elem_types_.push_back(elem_type);
  };
  for (const OnnxTensorType& input : inputs_) add(input.name, input.elem_type);

  std::vector<CompiledNode> compiled;
  for (const OnnxNode& node : file.nodes()) compiled.push_back(compiled_node(file, node));
  if (compiled.empty()) throw Error(kNotImplemented, "the model has no node that was compiled");
  const std::string model_path = folder.empty() ? "" : folder + "/model.onnx";
  const std::vector<OpenedNode> opened = open_nodes(std::move(compiled), model_path, digests);

  for (std::size_t i = 0; i < opened.size(); ++i) {
    const PlanIsland& planned = opened[i].usable->plan->islands[opened[i].island];
    Node& node = nodes_.emplace_back();
    for (const PlanTensor& input : planned.inputs) {
      const auto found = number.find(input.name);
      if (found == number.end()) throw Error(kInvalidArgument, "'" + input.name + "' is read before it is made");
      node.reads.push_back(found->second);
    }
    for (const PlanTensor& output : planned.outputs) {
      node.makes.push_back(elem_types_.size());
      add(output.name, output.elem_type);
    }
    FileConstants constants(file, planned);
    node.island = std::make_unique<OpenedIsland>(opened[i].usable, opened[i].island, constants.view());
  }
  for (const OnnxTensorType& output : outputs_) {
    const auto found = number.find(output.name);
    if (found == number.end() || found->second < inputs_.size())
      throw Error(kNotImplemented, "output '" + output.name + "' is made by no node that was compiled");
    if (std::find(output_of_.begin(), output_of_.end(), found->second) != output_of_.end())
      throw Error(kInvalidArgument, "two outputs are named '" + output.name + "'");
    output_of_.push_back(found->second);
  }
}

std::vector<CompiledFile::Value> CompiledFile::values_of(const std::vector<CallersTensor>& inputs) const {
  if (inputs.size() != inputs_.size())
    throw Error(kInvalidArgument, "the model has " + std::to_string(inputs_.size()) + " inputs, " + std::to_string(inputs.size()) + " are given");
  std::vector<Value> values(elem_types_.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    check_input(inputs_[i], inputs[i]);
    values[i].data = inputs[i].data;
    values[i].dims = inputs[i].dims;
  }
  return values;
}

// `outputs`: the caller's; null where only their sizes are asked for, which the last node finds without computing anything.
std::vector<CompiledFile::Value> CompiledFile::carried_out(const std::vector<CallersTensor>& inputs,
                                                           const std::vector<CallersTensor>* outputs, const Tasks& tasks) const {
  std::vector<Value> values = values_of(inputs);
  for (const Node& node : nodes_) {
    std::vector<InputView> views;
    for (const std::size_t i : node.reads) views.push_back({values[i].data, values[i].dims.data(), values[i].dims.size()});
    OpenedIsland::Run run(*node.island, views);
    for (std::size_t k = 0; k < node.makes.size(); ++k) values[node.makes[k]].dims = run.output_dims(k);
    if (outputs == nullptr && &node == &nodes_.back()) break;
    std::vector<void*> made;
    for (const std::size_t i : node.makes) made.push_back(room_for(i, values[i], outputs));
    run.bind(made);
    run.carry_out(tasks);
    run.end();
  }
  return values;
}

void* CompiledFile::room_for(std::size_t tensor, Value& value, const std::vector<CallersTensor>* outputs) const {
  const auto output = std::find(output_of_.begin(), output_of_.end(), tensor);
  if (outputs == nullptr || output == output_of_.end()) {
    value.owned = MemoryBlock(tensor_bytes(elem_types_[tensor], value.dims.data(), value.dims.size()) + kSpareBytes, "a tensor");
    value.data = value.owned.data();
    return value.owned.data();
  }
  const auto place = static_cast<std::size_t>(output - output_of_.begin());
  const CallersTensor& given = (*outputs)[place];
  const std::string name = "output '" + outputs_[place].name + "'";
  if (given.elem_type != elem_types_[tensor]) throw Error(kInvalidArgument, name + " has elements of another type");
  if (given.dims != value.dims)
    throw Error(kInvalidArgument, name + " is " + dims_text(value.dims) + ", the one that is given " + dims_text(given.dims));
  value.data = given.data;
  return given.data;
}

std::vector<std::vector<int64_t>> CompiledFile::output_dims(const std::vector<CallersTensor>& inputs) const {
  const std::vector<Value> values = carried_out(inputs, nullptr, SharedThreads(1));
  std::vector<std::vector<int64_t>> dims;
  for (const std::size_t i : output_of_) dims.push_back(values[i].dims);
  return dims;
}

void CompiledFile::run(const std::vector<CallersTensor>& inputs, const std::vector<CallersTensor>& outputs, const Tasks& tasks) const {
  if (outputs.size() != outputs_.size())
    throw Error(kInvalidArgument, "the model has " + std::to_string(outputs_.size()) + " outputs, " + std::to_string(outputs.size()) + " are given");
  carried_out(inputs, &outputs, tasks);
}

}  // namespace xyntra
