// What an x86-64 processor can do, where no file tells it: in the words of Linux's /proc/cpuinfo, of those that kernels ask for.
#pragma once

#if defined(__x86_64__)

#include <cpuid.h>

#include <cstdint>
#include <string>
#include <vector>

namespace xyntra::system {

// The registers that the system saves for a process (XCR0). Only with OSXSAVE.
inline uint32_t saved_registers() noexcept {
  uint32_t low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

// Without matrix tiles, which only Linux says how to ask for.
inline std::vector<std::string> cpuid_features() {
  constexpr uint32_t kVectors = 0x06, kWide = 0xe6;
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  std::vector<std::string> found;
  const auto note = [&](uint32_t word, int bit, const char* name) {
    if ((word >> bit & 1) != 0) found.emplace_back(name);
  };
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || (ecx >> 27 & 1) == 0) return found;
  const uint32_t saved = saved_registers();
  if ((saved & kVectors) != kVectors) return found;
  note(ecx, 28, "avx");
  note(ecx, 12, "fma");
  note(ecx, 29, "f16c");
  const bool wide = (saved & kWide) == kWide;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return found;
  const uint32_t more = eax;  // how many further leaves there are
  note(ebx, 5, "avx2");
  if (wide) {
    note(ebx, 16, "avx512f");
    note(ebx, 17, "avx512dq");
    note(ebx, 30, "avx512bw");
    note(ebx, 31, "avx512vl");
    note(ecx, 1, "avx512vbmi");
    note(ecx, 11, "avx512_vnni");
    note(edx, 8, "avx512_vp2intersect");
  }
  if (more == 0 || __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) == 0) return found;
  note(eax, 4, "avx_vnni");
  if (wide) note(eax, 5, "avx512_bf16");
  return found;
}

}  // namespace xyntra::system

#endif
