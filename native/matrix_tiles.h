// Permission to use matrix tiles (Intel AMX). Linux gives it to processes that ask, once, before their first tile instruction;
// it holds for all threads of the process.
#pragma once

#include <string>

namespace xyntra {

// Empty, or why there is none. Asks only once.
const std::string& permit_matrix_tiles();

}  // namespace xyntra
