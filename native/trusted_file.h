// Files from which code will run: the plan cache and the kernels. They are trusted through who owns them.
#pragma once

#include <string>

namespace xyntra {

struct TrustedFile {
  std::string bytes;
  std::string error;  // why the file cannot be used; empty when it can
  bool missing = false;
};

// Reads a regular file that belongs to us (or to root) and that nobody else may write.
TrustedFile read_trusted_file(const std::string& path);

}  // namespace xyntra
