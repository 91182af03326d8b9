// What this processor can do, in the words of /proc/cpuinfo, which are those of xyntra_ep/tracea/doctor/profile.py.
#pragma once

#include <string>
#include <vector>

namespace xyntra {

// The first of `wanted` that the processor lacks, that the operating system does not grant (matrix tiles), or that lies beyond the
// instruction set which XYNTRA_ISA names; empty when all are there.
std::string lacking_feature(const std::vector<std::string>& wanted);

}  // namespace xyntra
