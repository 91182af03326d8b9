// Files that decide what is executed: kernels, plans, options. They are trusted through who can have made them; the rule, with its
// reasons, is that of xyntra_ep/trusted_file.py, and a test holds both to the same answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "system.h"

namespace xyntra {

// An open file, closed with its owner.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd = -1) noexcept : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor() {
    if (fd_ >= 0) system::close_file(fd_);
  }
  int get() const noexcept { return fd_; }

 private:
  int fd_;
};

struct TrustedFile {
  enum class Verdict {
    kTrusted,
    kMissing,
    kDistrusted,  // somebody else can have made it, or can exchange it
    kUnusable,    // it cannot be read, is no file or too large
  };
  Verdict verdict = Verdict::kTrusted;
  std::string error;  // where and why not; empty when it can be used
  FileDescriptor descriptor;
  std::string bytes;
};

// Opens a file once, looks at all that can decide about its content through descriptors, and reads it through its own, which stays
// open for who wants to load from it.
TrustedFile read_trusted_file(const std::string& path, std::size_t most_bytes = SIZE_MAX);

}  // namespace xyntra
