// The file of a compiled model, as it is read without ONNX Runtime. What it holds is never executed: a checksum stands before that.
#include <string>

#include "byte_io.h"
#include "fuzz.h"
#include "onnx_file.h"
#include "ort.h"
#include "tracea/tracea.h"

namespace {

using namespace xyntra;
using fuzz::must;

void check(const OnnxTensorType& type) {
  must(type.symbols.size() == type.dims.size(), "each size has a name, or none");
  must(type.has_shape || type.dims.empty(), "what has no shape has no sizes");
  for (const int64_t size : type.dims) must(size >= -1, "no size is negative");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  try {
    const OnnxFile file(fuzz::text(data, size), "");
    for (const auto* list : {&file.inputs(), &file.outputs()}) {
      for (const OnnxTensorType& type : *list) {
        check(type);
        must(file.type(type.name) != nullptr, "what is declared is found");
      }
    }
    for (const OnnxNode& node : file.nodes()) {
      node.number("main_context", 1);
      node.text("ep_cache_context");
      for (const std::string& name : node.inputs) {
        if (const OnnxConstant* constant = file.constant(name)) {
          check(constant->type);
          must(constant->bytes == 0 || constant->data != nullptr, "a constant has data");
          volatile unsigned char read = 0;  // all of it can be
          for (std::size_t i = 0; i < constant->bytes; ++i) read = read ^ static_cast<const unsigned char*>(constant->data)[i];
        }
      }
    }
  } catch (const FormatError&) {
  } catch (const Error&) {
  }
  TraceaModel* model = nullptr;
  const TraceaStatus status = tracea_model_open_bytes(data, size, nullptr, &model);
  must((status == TRACEA_SUCCESS) == (model != nullptr), "a model that was opened is there");
  must(status == TRACEA_SUCCESS || tracea_get_last_error(nullptr, 0) > 0, "what fails says why");
  tracea_model_close(model);
  return 0;
}
