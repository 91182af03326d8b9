#include "trusted_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace xyntra {
namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const noexcept { return fd_; }

 private:
  int fd_;
};

std::string describe(const char* what, const std::string& path) { return path + ": " + what; }

}  // namespace

TrustedFile read_trusted_file(const std::string& path) {
  TrustedFile file;
  const FileDescriptor fd(path);
  if (fd.get() < 0) {
    file.missing = errno == ENOENT || errno == ENOTDIR;
    file.error = describe(std::strerror(errno), path);
    return file;
  }
  // On the open descriptor, so that what was checked is what is read.
  struct stat status {};
  if (fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    file.error = describe("not a regular file", path);
  } else if (status.st_uid != geteuid() && status.st_uid != 0) {
    file.error = describe("belongs to another user", path);
  } else if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    file.error = describe("others may write to it", path);
  }
  if (!file.error.empty()) return file;

  file.bytes.resize(static_cast<std::size_t>(status.st_size));
  std::size_t done = 0;
  while (done < file.bytes.size()) {
    const ssize_t n = read(fd.get(), file.bytes.data() + done, file.bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      file.error = describe("cannot be read to its end", path);
      break;
    }
    done += static_cast<std::size_t>(n);
  }
  return file;
}

}  // namespace xyntra
