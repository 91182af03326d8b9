// Convolution of images as products of matrices: the pixels that each output pixel sees are its column.
#pragma once

#include <cstdint>

#include "tensor_argument.h"
#include "tracea/tracea.h"

namespace xyntra::capi {

// Throws what is wrong with the arguments before anything is written. `bias` may be null; 0 in `params` is as in the header.
void convolve(const TensorArgument& x, const TensorArgument& w, const TensorArgument* bias, const TensorArgument& out,
              const TraceaConv2dParams& params, const Tasks& tasks);

}  // namespace xyntra::capi
