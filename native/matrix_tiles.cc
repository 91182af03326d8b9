#include "matrix_tiles.h"

#include <cerrno>
#include <cstring>

#if defined(__linux__) && defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace xyntra {
namespace {

std::string request() {
#if defined(__linux__) && defined(__x86_64__)
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr unsigned long kTileData = 18;     // Documentation/arch/x86/xstate.rst
  if (syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0) return {};
  return std::string("the operating system does not permit matrix tiles: ") + std::strerror(errno);
#else
  return "matrix tiles are not known to this system";
#endif
}

}  // namespace

const std::string& permit_matrix_tiles() {
  static const auto* const answer = new std::string(request());
  return *answer;
}

}  // namespace xyntra
