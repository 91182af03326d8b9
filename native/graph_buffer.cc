#include "graph_buffer.h"

#include <algorithm>
#include <cstring>

#include "graph_access.h"
#include "hash128.h"

namespace xyntra {
namespace {

constexpr uint32_t kVersion = 1;
constexpr uint64_t kSmallConstant = 1024;  // constants up to this size enter the digest with their bytes
constexpr uint64_t kLargeConstant = 65536;
constexpr uint64_t kLooks = 32;

// Whether a constant of float32 may have many zeros. Elements all over it, which are no multiple of its rows apart: what is pruned
// has them anywhere.
bool has_zeros(const GraphValue& value) {
  if (value.data == nullptr || value.bytes < kLargeConstant) return false;
  const uint64_t count = value.bytes / sizeof(float);
  uint64_t zeros = 0;
  for (uint64_t i = 0; i < kLooks; ++i) {
    const uint64_t at = i * (count / kLooks) + (i * 0x9E3779B97F4A7C15u >> 32) % (count / kLooks);
    float element = 0;
    std::memcpy(&element, static_cast<const char*>(value.data) + at * sizeof element, sizeof element);
    zeros += element == 0 ? 1 : 0;
  }
  return zeros * 4 >= kLooks;
}

}  // namespace

GraphBuffer::GraphBuffer(const Ort& ort, const OrtGraph* graph, const Options& options) : ort_(ort), scratch_(4096) {
  for (const auto* info : get_all(ort_, graph, api::kGraphGetNumInputs, api::kGraphGetInputs)) value_index(info);
  for (const auto* info : get_all(ort_, graph, api::kGraphGetNumOutputs, api::kGraphGetOutputs)) value_index(info);
  const auto nodes = get_all(ort_, graph, api::kGraphGetNumNodes, api::kGraphGetNodes);
  nodes_.reserve(nodes.size());
  ByteWriter node_bytes;  // nodes are read first because they name the values, which are written before them
  for (const auto* node : nodes) write_node(node, node_bytes);

  write_header(graph, options);
  out_.put(static_cast<uint32_t>(values_.size()));
  const std::size_t values_at = out_.size();
  out_.raw(value_bytes_.bytes().data(), value_bytes_.size());
  for (std::size_t& at : pointers_) at += values_at;
  out_.put(static_cast<uint32_t>(nodes_.size()));
  out_.raw(node_bytes.bytes().data(), node_bytes.size());
}

void GraphBuffer::write_header(const OrtGraph* graph, const Options& options) {
  out_.raw("XYGB", 4);
  out_.put(kVersion);
  out_.put(ort_.api_version());
  out_.text(ort_.version_string());
  path_span_.first = out_.size();
  out_.text(model_path_of(ort_, graph));
  path_span_.second = out_.size();
  graph_name_ = get(ort_, graph, api::kGraphGetName);
  out_.text(graph_name_);
  out_.put(static_cast<uint8_t>(get(ort_, graph, api::kGraphGetParentNode) != nullptr));

  const auto n = get(ort_, graph, api::kGraphGetNumOperatorSets);
  std::vector<Text> domains(n);
  std::vector<int64_t> versions(n);
  ort_.check(ort_[api::kGraphGetOperatorSets](graph, domains.data(), versions.data(), n));
  std::vector<std::pair<std::string_view, int64_t>> opsets;
  for (std::size_t i = 0; i < n; ++i) opsets.emplace_back(domains[i], versions[i]);
  std::sort(opsets.begin(), opsets.end());  // ORT keeps them in a hash map
  out_.put(static_cast<uint32_t>(n));
  for (const auto& [domain, version] : opsets) {
    out_.text(domain);
    out_.put(version);
  }
  out_.put(static_cast<uint32_t>(options.size()));
  for (const auto& [key, value] : options) {
    out_.text(key);
    out_.text(value);
  }
}

int32_t GraphBuffer::value_index(const OrtValueInfo* info) {
  if (info == nullptr) return -1;
  const std::string_view name = get(ort_, info, api::kGetValueInfoName);
  if (name.empty()) return -1;
  const auto [entry, is_new] = value_of_name_.try_emplace(name, static_cast<int32_t>(values_.size()));
  if (is_new) {
    values_.push_back({name});
    write_value(values_.back(), info);
  }
  return entry->second;
}

void GraphBuffer::write_value(GraphValue& value, const OrtValueInfo* info) {
  value.info = info;
  value_bytes_.text(value.name);
  write_type(info, value.elem_type);

  const bool overridable = get(ort_, info, api::kValueInfoIsOptionalGraphInput);
  if (overridable) value.flags |= kGraphInput | kOverridable;
  if (get(ort_, info, api::kValueInfoIsRequiredGraphInput)) value.flags |= kGraphInput;
  if (get(ort_, info, api::kValueInfoIsGraphOutput)) value.flags |= kGraphOutput;
  if (get(ort_, info, api::kValueInfoIsConstantInitializer)) value.flags |= kConstant;
  if (get(ort_, info, api::kValueInfoIsFromOuterScope)) value.flags |= kOuterScope;

  if ((value.flags & kConstant) != 0 && value.elem_type != kElementString) {
    const auto* tensor = get(ort_, info, api::kValueInfoGetInitializerValue);
    if (tensor != nullptr) {
      value.bytes = get(ort_, tensor, api::kGetTensorSizeInBytes);
      if (value.bytes != 0) value.data = get(ort_, tensor, api::kGetTensorData);
      if (value.elem_type == kElementFloat && has_zeros(value)) value.flags |= kZeros;
    }
  }
  value_bytes_.put(value.flags);
  value_bytes_.put(value.bytes);
  if (value.data != nullptr) pointers_.push_back(value_bytes_.size());
  value_bytes_.put(reinterpret_cast<uint64_t>(value.data));
}

void GraphBuffer::write_type(const OrtValueInfo* info, int& elem_type) {
  const auto* type = get(ort_, info, api::kGetValueInfoTypeInfo);
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;
  if (type != nullptr && get(ort_, type, api::kGetOnnxTypeFromTypeInfo) == kOnnxTypeTensor) {
    tensor = get(ort_, type, api::kCastTypeInfoToTensorInfo);
  }
  if (tensor != nullptr) elem_type = get(ort_, tensor, api::kGetTensorElementType);
  value_bytes_.put(elem_type);
  if (tensor == nullptr || !ort_[api::kTensorTypeAndShapeHasShape](tensor)) {
    value_bytes_.put(int32_t{-1});
    return;
  }
  const auto rank = get(ort_, tensor, api::kGetDimensionsCount);
  std::vector<int64_t> dims(rank);
  std::vector<Text> symbols(rank);
  ort_.check(ort_[api::kGetDimensions](tensor, dims.data(), rank));
  ort_.check(ort_[api::kGetSymbolicDimensions](tensor, symbols.data(), rank));
  value_bytes_.put(static_cast<int32_t>(rank));
  for (std::size_t i = 0; i < rank; ++i) {
    value_bytes_.put(dims[i]);
    value_bytes_.text(symbols[i] == nullptr ? "" : symbols[i]);
  }
}

void GraphBuffer::write_node(const OrtNode* node, ByteWriter& out) {
  GraphNode& entry = nodes_.emplace_back();
  entry.node = node;
  entry.id = get(ort_, node, api::kNodeGetId);
  const std::string_view ep_name = get(ort_, node, api::kNodeGetEpName);
  entry.taken = !ep_name.empty();

  out.put(entry.id);
  out.text(get(ort_, node, api::kNodeGetName));
  out.text(entry.op_type = get(ort_, node, api::kNodeGetOperatorType));
  out.text(entry.domain = get(ort_, node, api::kNodeGetDomain));
  out.put(static_cast<int32_t>(get(ort_, node, api::kNodeGetSinceVersion)));
  out.text(ep_name);
  out.put(static_cast<uint32_t>(get(ort_, node, api::kNodeGetNumSubgraphs)));

  const auto write_values = [&](auto count, auto fill, std::vector<int32_t>& used) {
    get_all(ort_, node, count, fill, infos_);
    out.put(static_cast<uint32_t>(infos_.size()));
    for (const auto* info : infos_) {
      const int32_t index = value_index(info);
      out.put(index);
      if (index >= 0) used.push_back(index);
    }
  };
  write_values(api::kNodeGetNumInputs, api::kNodeGetInputs, entry.inputs);
  write_values(api::kNodeGetNumImplicitInputs, api::kNodeGetImplicitInputs, entry.inputs);
  write_values(api::kNodeGetNumOutputs, api::kNodeGetOutputs, entry.outputs);

  const auto attributes = get_all(ort_, node, api::kNodeGetNumAttributes, api::kNodeGetAttributes);
  out.put(static_cast<uint32_t>(attributes.size()));
  for (const auto* attribute : attributes) write_attribute(attribute, out);
}

void GraphBuffer::write_attribute(const OrtOpAttr* attribute, ByteWriter& out) {
  out.text(get(ort_, attribute, api::kOpAttrGetName));
  const int type = get(ort_, attribute, api::kOpAttrGetType);
  out.put(static_cast<int32_t>(type));
  if (type == kTensor) return write_tensor(attribute, out);
  if (type < kInt || type > kStrings) return;

  std::size_t bytes = 0;
  OrtStatus* status = ort_[api::kReadOpAttr](attribute, type, scratch_.data(), scratch_.size(), &bytes);
  if (status != nullptr && bytes > scratch_.size()) {
    ort_[api::kReleaseStatus](status);
    scratch_.resize(bytes);
    status = ort_[api::kReadOpAttr](attribute, type, scratch_.data(), scratch_.size(), &bytes);
  }
  ort_.check(status);
  const std::string_view value(scratch_.data(), bytes);
  switch (type) {
    case kInts: out.put(static_cast<uint32_t>(bytes / sizeof(int64_t))); break;
    case kFloats: out.put(static_cast<uint32_t>(bytes / sizeof(float))); break;
    case kString: return out.text(value);
    case kStrings: {  // ORT gives them one after the other, each with a NUL behind it
      std::vector<std::string_view> texts;
      for (std::size_t at = 0; at < value.size();) {
        const std::size_t end = std::min(value.find('\0', at), value.size());
        texts.push_back(value.substr(at, end - at));
        at = end + 1;
      }
      out.put(static_cast<uint32_t>(texts.size()));
      for (const auto text : texts) out.text(text);
      return;
    }
    default: break;
  }
  out.raw(value.data(), value.size());
}

void GraphBuffer::write_tensor(const OrtOpAttr* attribute, ByteWriter& out) {
  const Owned tensor(ort_, get(ort_, attribute, api::kOpAttrGetTensor), api::kReleaseValue);
  const TensorShape shape = tensor_shape(ort_, tensor.get());
  out.put(static_cast<int32_t>(shape.elem_type));
  out.put(static_cast<uint32_t>(shape.rank));
  out.raw(shape.dims, shape.rank * sizeof(int64_t));
  std::size_t bytes = 0;
  if (shape.elem_type != kElementString) bytes = get(ort_, tensor.get(), api::kGetTensorSizeInBytes);
  out.put(static_cast<uint64_t>(bytes));
  if (bytes != 0) out.raw(get(ort_, tensor.get(), api::kGetTensorData), bytes);
}

int32_t GraphBuffer::find_value(std::string_view name) const {
  const auto found = value_of_name_.find(name);
  return found == value_of_name_.end() ? -1 : found->second;
}

std::string GraphBuffer::digest(std::string_view identity) const {
  std::string plain = out_.bytes();
  for (const std::size_t at : pointers_) plain.replace(at, sizeof(uint64_t), sizeof(uint64_t), '\0');
  // Not the path: a model that moves to another folder keeps its plan.
  plain.erase(path_span_.first, path_span_.second - path_span_.first);
  ByteWriter rest;
  rest.text(identity);
  for (const GraphValue& value : values_) {
    if (value.data != nullptr && value.bytes <= kSmallConstant) rest.raw(value.data, value.bytes);
  }
  std::string halves;
  for (const Hash128& part : {hash128(plain.data(), plain.size()), hash128(rest.bytes().data(), rest.size())}) {
    halves.append(reinterpret_cast<const char*>(part.data()), part.size());
  }
  return to_hex(hash128(halves.data(), halves.size()));
}

}  // namespace xyntra
