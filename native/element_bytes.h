// The size of a tensor's elements, by ONNX's number of their type.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ort.h"

namespace xyntra {

inline std::size_t element_bytes(int32_t elem_type) {
  switch (elem_type) {
    case 2: case 3: case 9: return 1;             // uint8, int8, bool
    case 4: case 5: case 10: case 16: return 2;   // uint16, int16, float16, bfloat16
    case 1: case 6: case 12: return 4;            // float, int32, uint32
    case 7: case 11: case 13: return 8;           // int64, double, uint64
    default: throw Error(kFail, "XyntraEP: no elements of type " + std::to_string(elem_type) + " on a device");
  }
}

}  // namespace xyntra
