// What a compiled model's ONNX file holds, as far as it is needed to run it without ONNX Runtime: nodes, constants, what inputs and
// outputs are. The file format is that of protobuf's encoding guide and of onnx.proto3; of foreign bytes nothing is believed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace xyntra {

// A tensor as its model declares it. A size is -1 where it is not fixed, and may have a name then.
struct OnnxTensorType {
  std::string name;
  int32_t elem_type = 0;  // 0: not declared, or no tensor
  bool has_shape = false;
  std::vector<int64_t> dims;
  std::vector<std::string> symbols;  // as many, "" for none
};

struct OnnxConstant {
  OnnxTensorType type;
  const void* data = nullptr;  // within the file, or owned by it
  std::size_t bytes = 0;
};

struct OnnxAttribute {
  std::string name;
  int64_t number = 0;
  std::string_view text;
};

struct OnnxNode {
  std::string op_type, domain, name;
  std::vector<std::string> inputs, outputs;
  std::vector<OnnxAttribute> attributes;

  // -- of one that may be missing
  int64_t number(std::string_view attribute, int64_t otherwise) const;
  std::string_view text(std::string_view attribute) const;
};

class OnnxFile {
 public:
  // Throws FormatError for what is no model, Error for what of it cannot be had: weights in other files lie in `folder`. `bytes` live
  // longer than this.
  OnnxFile(std::string_view bytes, const std::string& folder);
  OnnxFile(const OnnxFile&) = delete;
  OnnxFile& operator=(const OnnxFile&) = delete;

  const std::vector<OnnxNode>& nodes() const noexcept { return nodes_; }
  const std::vector<OnnxTensorType>& inputs() const noexcept { return inputs_; }  // without those that are constants
  const std::vector<OnnxTensorType>& outputs() const noexcept { return outputs_; }
  const OnnxConstant* constant(const std::string& name) const;
  // What is declared of a tensor; null where nothing is.
  const OnnxTensorType* type(const std::string& name) const;

 private:
  void read_graph(std::string_view bytes, const std::string& folder);
  void read_constant(std::string_view bytes, const std::string& folder);

  std::vector<OnnxNode> nodes_;
  std::vector<OnnxTensorType> inputs_, outputs_, others_;
  std::unordered_map<std::string, OnnxConstant> constants_;
  std::unordered_map<std::string, const OnnxTensorType*> types_;
  std::deque<std::string> owned_;  // constants that the file has number by number, or that are in other files
};

}  // namespace xyntra
