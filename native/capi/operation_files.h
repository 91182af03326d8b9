// The compiled models that operations of include/tracea/tracea.h are, each opened once per process
// (xyntra_ep/diagnostics/compiled/operations.py makes them).
#pragma once

#include <string>

#include "compiled_file.h"

namespace xyntra::capi {

// Opens `name` from the folder of prebuilt kernels. Throws NoFile where it is not there or somebody else can have made it, and
// FormatError where it is refused; the next call tries again.
const CompiledFile& operation(const std::string& name);

}  // namespace xyntra::capi
