// Pages of mapped files that were read and are not needed any more. ONNX Runtime maps weights that lie in files of their own, so
// each that is packed would otherwise be in memory twice until all of a session's are.
#pragma once

#include <cstddef>

namespace xyntra {

// Takes the whole pages within these bytes out of the process where they come from a file and are as in the file: who reads them
// again has them from the system's cache or from the file, as after any want of memory. All other memory stays untouched. How many
// bytes went; 0 where the system does not tell what a page is.
//
// Nobody may write to these bytes meanwhile: a page that is written to becomes the process's own, and would be lost.
std::size_t give_back_file_pages(const void* data, std::size_t bytes) noexcept;

}  // namespace xyntra
