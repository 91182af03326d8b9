#include "onnx_file.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "element_bytes.h"
#include "ort.h"
#include "protobuf_reader.h"
#include "system.h"

namespace xyntra {
namespace {

// Fields of onnx.proto3.
namespace model_field {
constexpr uint64_t kGraph = 7;
}
namespace graph_field {
constexpr uint64_t kNode = 1, kInitializer = 5, kInput = 11, kOutput = 12, kValueInfo = 13, kSparse = 15;
}
namespace node_field {
constexpr uint64_t kInput = 1, kOutput = 2, kName = 3, kOpType = 4, kAttribute = 5, kDomain = 7;
}
namespace attribute_field {
constexpr uint64_t kName = 1, kInt = 3, kString = 4;
}
namespace tensor_field {
constexpr uint64_t kDims = 1, kDataType = 2, kFloats = 4, kInt32s = 5, kInt64s = 7, kName = 8, kRaw = 9, kDoubles = 10, kUint64s = 11,
                   kExternal = 13, kLocation = 14;
}
namespace value_field {
constexpr uint64_t kName = 1, kType = 2;
}

constexpr std::size_t kMostRank = 64;

std::string text(const ProtobufReader& field) { return std::string(field.bytes()); }

OnnxNode read_node(std::string_view bytes) {
  OnnxNode node;
  for (ProtobufReader field(bytes); field.next();) {
    switch (field.field()) {
      case node_field::kInput: node.inputs.push_back(text(field)); break;
      case node_field::kOutput: node.outputs.push_back(text(field)); break;
      case node_field::kName: node.name = text(field); break;
      case node_field::kOpType: node.op_type = text(field); break;
      case node_field::kDomain: node.domain = text(field); break;
      case node_field::kAttribute: {
        OnnxAttribute& attribute = node.attributes.emplace_back();
        for (ProtobufReader part(field.bytes()); part.next();) {
          if (part.field() == attribute_field::kName) attribute.name = text(part);
          if (part.field() == attribute_field::kInt) attribute.number = part.signed_number();
          if (part.field() == attribute_field::kString) attribute.text = part.bytes();
        }
        break;
      }
      default: break;
    }
  }
  return node;
}

void read_shape(std::string_view bytes, OnnxTensorType& type) {
  type.has_shape = true;
  for (ProtobufReader field(bytes); field.next();) {
    if (field.field() != 1) continue;  // dim
    if (type.dims.size() == kMostRank) throw FormatError("a tensor has too many axes");
    int64_t& size = type.dims.emplace_back(-1);
    std::string& symbol = type.symbols.emplace_back();
    for (ProtobufReader part(field.bytes()); part.next();) {
      if (part.field() == 1) size = part.signed_number();
      if (part.field() == 2) symbol = text(part);
    }
    if (size < -1) throw FormatError("a tensor has a negative size");
  }
}

OnnxTensorType read_value(std::string_view bytes) {
  OnnxTensorType type;
  for (ProtobufReader field(bytes); field.next();) {
    if (field.field() == value_field::kName) type.name = text(field);
    if (field.field() != value_field::kType) continue;
    for (ProtobufReader kind(field.bytes()); kind.next();) {
      if (kind.field() != 1) continue;  // tensor_type
      for (ProtobufReader part(kind.bytes()); part.next();) {
        if (part.field() == 1) type.elem_type = static_cast<int32_t>(part.number());
        if (part.field() == 2) read_shape(part.bytes(), type);
      }
    }
  }
  return type;
}

struct External {
  std::string location;
  uint64_t offset = 0, length = 0;
  bool has_length = false;
};

External read_external(const std::vector<std::string_view>& entries) {
  External external;
  for (const std::string_view entry : entries) {
    std::string key, value;
    for (ProtobufReader part(entry); part.next();) {
      if (part.field() == 1) key = text(part);
      if (part.field() == 2) value = text(part);
    }
    if (key == "location") external.location = value;
    if (key == "offset") external.offset = std::strtoull(value.c_str(), nullptr, 10);
    if (key == "length") {
      external.length = std::strtoull(value.c_str(), nullptr, 10);
      external.has_length = true;
    }
  }
  return external;
}

// Data beside the model, never anywhere else.
std::string read_beside(const External& external, const std::string& folder, std::size_t wanted) {
  const std::string& name = external.location;
  if (name.empty() || system::to_system(name).has_root_path() || name.find("..") != std::string::npos || name.find('\0') != std::string::npos)
    throw Error(kInvalidArgument, "the model's weights are not beside it: '" + name + "'");
  if (folder.empty()) throw Error(kInvalidArgument, "the model was given from memory, and its weights are in the file " + name);
  if (external.has_length && external.length != wanted) throw FormatError("a constant has another length than its shape says");
  std::ifstream file(system::to_system(folder + '/' + name), std::ios::binary | std::ios::ate);
  const auto size = static_cast<uint64_t>(std::max<std::streamoff>(file.tellg(), 0));
  if (external.offset > size || size - external.offset < wanted) throw Error(kInvalidArgument, folder + '/' + name + ": is too short, or cannot be read");
  std::string data(wanted, '\0');
  file.seekg(static_cast<std::streamoff>(external.offset));
  file.read(data.data(), static_cast<std::streamsize>(wanted));
  if (!file) throw Error(kInvalidArgument, folder + '/' + name + ": cannot be read");
  return data;
}

template <class T>
void append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Numbers of int32_data, which holds all types of up to 32 bits.
void append_narrow(std::string& out, int64_t value, std::size_t bytes) {
  out.append(reinterpret_cast<const char*>(&value), bytes);  // little-endian
}

}  // namespace

int64_t OnnxNode::number(std::string_view attribute, int64_t otherwise) const {
  for (const OnnxAttribute& one : attributes) {
    if (one.name == attribute) return one.number;
  }
  return otherwise;
}

std::string_view OnnxNode::text(std::string_view attribute) const {
  for (const OnnxAttribute& one : attributes) {
    if (one.name == attribute) return one.text;
  }
  return {};
}

OnnxFile::OnnxFile(std::string_view bytes, const std::string& folder) {
  bool has_graph = false;
  for (ProtobufReader field(bytes); field.next();) {
    if (field.field() != model_field::kGraph || !field.is_bytes()) continue;
    if (has_graph) throw FormatError("the model has two graphs");
    has_graph = true;
    read_graph(field.bytes(), folder);
  }
  if (!has_graph) throw FormatError("this is no ONNX model");
}

void OnnxFile::read_graph(std::string_view bytes, const std::string& folder) {
  std::vector<OnnxTensorType> inputs;
  for (ProtobufReader field(bytes); field.next();) {
    switch (field.field()) {
      case graph_field::kNode: nodes_.push_back(read_node(field.bytes())); break;
      case graph_field::kInitializer: read_constant(field.bytes(), folder); break;
      case graph_field::kInput: inputs.push_back(read_value(field.bytes())); break;
      case graph_field::kOutput: outputs_.push_back(read_value(field.bytes())); break;
      case graph_field::kValueInfo: others_.push_back(read_value(field.bytes())); break;
      case graph_field::kSparse: throw Error(kNotImplemented, "the model has sparse constants");
      default: break;
    }
  }
  for (OnnxTensorType& input : inputs) {
    if (constants_.count(input.name) == 0) inputs_.push_back(std::move(input));
  }
  for (const auto* list : {&inputs_, &outputs_, &others_}) {
    for (const OnnxTensorType& type : *list) types_.emplace(type.name, &type);
  }
  for (const auto& [name, constant] : constants_) types_[name] = &constant.type;
}

void OnnxFile::read_constant(std::string_view bytes, const std::string& folder) {
  OnnxConstant constant;
  OnnxTensorType& type = constant.type;
  type.has_shape = true;
  std::vector<std::string_view> external;
  std::string_view raw;
  bool is_external = false, has_raw = false;
  const auto each = [&](uint64_t wanted, auto visit) {
    for (ProtobufReader field(bytes); field.next();) {
      if (field.field() == wanted) visit(field);
    }
  };
  for (ProtobufReader field(bytes); field.next();) {
    switch (field.field()) {
      case tensor_field::kDims:
        field.varints([&](int64_t size) {
          if (size < 0 || type.dims.size() == kMostRank) throw FormatError("a constant has a size that cannot be");
          type.dims.push_back(size);
        });
        break;
      case tensor_field::kDataType: type.elem_type = static_cast<int32_t>(field.number()); break;
      case tensor_field::kName: type.name = text(field); break;
      case tensor_field::kRaw:
        raw = field.bytes();
        has_raw = true;
        break;
      case tensor_field::kExternal: external.push_back(field.bytes()); break;
      case tensor_field::kLocation: is_external = field.number() == 1; break;
      default: break;
    }
  }
  type.symbols.resize(type.dims.size());
  const std::size_t wanted = tensor_bytes(type.elem_type, type.dims.data(), type.dims.size());
  if (is_external) {
    raw = owned_.emplace_back(read_beside(read_external(external), folder, wanted));
  } else if (!has_raw) {
    std::string& data = owned_.emplace_back();
    const std::size_t element = element_bytes(type.elem_type);
    each(tensor_field::kFloats, [&](const ProtobufReader& field) {
      if (field.is_bytes()) data.append(field.bytes());
      else append(data, static_cast<uint32_t>(field.number()));
    });
    each(tensor_field::kDoubles, [&](const ProtobufReader& field) {
      if (field.is_bytes()) data.append(field.bytes());
      else append(data, field.number());
    });
    each(tensor_field::kInt32s, [&](const ProtobufReader& field) {
      field.varints([&](int64_t value) { append_narrow(data, value, element); });
    });
    for (const uint64_t wide : {tensor_field::kInt64s, tensor_field::kUint64s})
      each(wide, [&](const ProtobufReader& field) {
        field.varints([&](int64_t value) { append_narrow(data, value, element); });
      });
    raw = data;
  }
  if (raw.size() != wanted) throw FormatError("the constant '" + type.name + "' has another length than its shape says");
  constant.data = raw.data();
  constant.bytes = raw.size();
  const std::string name = type.name;
  constants_.emplace(name, std::move(constant));
}

const OnnxConstant* OnnxFile::constant(const std::string& name) const {
  const auto found = constants_.find(name);
  return found == constants_.end() ? nullptr : &found->second;
}

const OnnxTensorType* OnnxFile::type(const std::string& name) const {
  const auto found = types_.find(name);
  return found == types_.end() ? nullptr : found->second;
}

}  // namespace xyntra
