// The version that ORT shows for this provider; the Python package has the same one.
#pragma once

namespace xyntra {

inline constexpr const char* kVersion = "0.1.0";

}  // namespace xyntra
