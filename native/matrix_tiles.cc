#include "matrix_tiles.h"

#include "system.h"

namespace xyntra {

const std::string& permit_matrix_tiles() {
  static const auto* const answer = new std::string(system::permit_matrix_tiles());
  return *answer;
}

}  // namespace xyntra
