// The size of a tensor and of its elements, by ONNX's number of their type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "ort.h"

namespace xyntra {

inline std::size_t element_bytes(int32_t elem_type) {
  switch (elem_type) {
    case 2: case 3: case 9: return 1;             // uint8, int8, bool
    case 4: case 5: case 10: case 16: return 2;   // uint16, int16, float16, bfloat16
    case 1: case 6: case 12: return 4;            // float, int32, uint32
    case 7: case 11: case 13: return 8;           // int64, double, uint64
    default: throw Error(kFail, "XyntraEP: there are no elements of type " + std::to_string(elem_type));
  }
}

// Throws Error where that does not fit, whatever the other extents are: no tensor that there can be is refused.
inline std::size_t tensor_bytes(int32_t elem_type, const int64_t* dims, std::size_t rank) {
  std::size_t bytes = element_bytes(elem_type);
  bool fits = true, empty = false;
  for (std::size_t i = 0; i < rank; ++i) {
    if (dims[i] < 0) throw Error(kInvalidArgument, "XyntraEP: a size is negative");
    empty = empty || dims[i] == 0;
    fits = !__builtin_mul_overflow(bytes, static_cast<std::size_t>(dims[i]), &bytes) && fits;
  }
  if (empty) return 0;
  if (fits && bytes <= PTRDIFF_MAX) return bytes;
  std::string shape;
  for (std::size_t i = 0; i < rank; ++i) shape += (i != 0 ? "," : "") + std::to_string(dims[i]);
  throw Error(kInvalidArgument,
              "XyntraEP: a size is too large: a tensor of shape [" + shape + "] has more bytes than there are addresses");
}

}  // namespace xyntra
