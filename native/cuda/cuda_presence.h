// Counts the CUDA devices of a process from files: no driver is loaded, so the process may still fork.
#pragma once

#include <string>

namespace xyntra {

// 0 where there is no sign of one. XYNTRA_CUDA_DEVICES says it where the files do not (Jetson); CUDA_VISIBLE_DEVICES takes
// devices away. It may be more than the driver will admit to: what opens a device finds out. `gpus`: where the driver shows a
// folder for each device.
int cuda_devices_at_hand(const std::string& gpus = "/proc/driver/nvidia/gpus");

// Whether only the driver knows: its library is there, but not the folder, which sandboxes hide, and nothing says or takes away
// devices. The library is looked for where the loader would, and not loaded. Who then asks the driver does so in another process.
bool only_the_driver_knows(const std::string& gpus = "/proc/driver/nvidia/gpus",
                           const std::string& known_libraries = "/etc/ld.so.cache");

}  // namespace xyntra
