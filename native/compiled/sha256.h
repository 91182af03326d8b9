// SHA-256 (FIPS 180-4). Plans and kernels are told apart by a faster hash (native/hash128.h); this one is for who forges files.
#pragma once

#include <string>
#include <string_view>

namespace xyntra {

// Of the bytes, in 64 hexadecimal digits.
std::string sha256_hex(std::string_view bytes);

}  // namespace xyntra
