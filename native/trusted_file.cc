// The rule on systems whose files have an owner and a mode; system/trust_windows.cc has it for the other.
#if !defined(_WIN32)

#include "trusted_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <vector>

namespace xyntra {
namespace {

using Verdict = TrustedFile::Verdict;

// To look at what has a name, itself where it is a link, without opening it.
#if defined(O_PATH)
constexpr int kLook = O_PATH | O_NOFOLLOW | O_CLOEXEC;
#else
constexpr int kLook = O_EVTONLY | O_SYMLINK | O_NONBLOCK | O_CLOEXEC;
#endif
constexpr int kFolder = kLook | O_DIRECTORY;
constexpr int kRead = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;
constexpr int kMostLinks = 40;  // as the kernel has it

// Why a file is not to be used.
struct Refusal {
  Verdict verdict;
  std::string error;
};

[[noreturn]] void distrust(const std::string& where, const std::string& why) {
  throw Refusal{Verdict::kDistrusted, where + ": " + why};
}

[[noreturn]] void fail(const std::string& where, int code) {
  const bool missing = code == ENOENT || code == ENOTDIR;
  throw Refusal{missing ? Verdict::kMissing : Verdict::kUnusable, where + ": " + std::strerror(code)};
}

std::string foreign(const struct stat& status) { return "belongs to user " + std::to_string(status.st_uid); }

std::string writable(const struct stat& status) {
  char mode[16];
  std::snprintf(mode, sizeof mode, "%o", static_cast<unsigned>(status.st_mode & 07777));
  return std::string("others may write to it (mode ") + mode + ")";
}

struct stat status_of(const FileDescriptor& descriptor, const std::string& where) {
  struct stat status = {};
  if (fstat(descriptor.get(), &status) != 0) fail(where, errno);
  return status;
}

void check_file(const struct stat& status, const std::string& where) {
  if (status.st_uid != geteuid() && status.st_uid != 0) distrust(where, foreign(status));
  if (!S_ISREG(status.st_mode)) throw Refusal{Verdict::kUnusable, where + ": is not a regular file"};
  if ((status.st_mode & kOthersWrite) != 0) distrust(where, writable(status));
}

// The way to a file, folder by folder. Afterwards `name` in `folder` is the file, and `where` its path without links.
class Walk {
 public:
  explicit Walk(const std::string& path) : asked_(path) {
    add(path);
    if (path.empty() || path.front() != '/') {
      char here[PATH_MAX];
      if (getcwd(here, sizeof here) == nullptr) fail(path, errno);
      add(here);
    }
    start();
    root_owner_ = status.st_uid;
    check_folder();
    while (!todo_.empty()) {
      const std::string next = std::move(todo_.back());
      todo_.pop_back();
      step(next.empty() ? "." : next);
    }
    if (where.empty()) where = "/";
  }

  FileDescriptor folder;
  std::string name, where;
  struct stat status = {};

 private:
  // Puts the parts of a path before what is to be done yet.
  void add(const std::string& path) {
    std::size_t end = path.size();
    for (;;) {
      const std::size_t slash = end == 0 ? std::string::npos : path.rfind('/', end - 1);
      const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
      todo_.push_back(path.substr(begin, end - begin));
      if (slash == std::string::npos) return;
      end = slash;
    }
  }

  void start() {
    FileDescriptor root(open("/", kFolder));
    if (root.get() < 0) fail("/", errno);
    status = status_of(root, "/");
    folder = std::move(root);
    where.clear();
  }

  std::string inner(const std::string& next) const {
    if (next == ".") return where;
    if (next == "..") return where.substr(0, where.empty() ? 0 : where.rfind('/'));
    return where + '/' + next;
  }

  void step(const std::string& next) {
    const std::string place = inner(next);
    FileDescriptor found(openat(folder.get(), next.c_str(), kLook));
    if (found.get() < 0) fail(place, errno);
    status = status_of(found, place);
    if (S_ISLNK(status.st_mode)) return follow(next, place);
    where = place;
    name = next;
    if (!S_ISDIR(status.st_mode)) {
      if (!todo_.empty()) fail(place, ENOTDIR);
      return;
    }
    check_folder();
    folder = std::move(found);
    name = ".";
  }

  // By its name: nobody else can exchange a link of ours in a folder that has been checked.
  void follow(const std::string& link, const std::string& place) {
    if (!is_owner(status.st_uid)) distrust(place, "is a link of user " + std::to_string(status.st_uid));
    if (++links_ > kMostLinks) fail(asked_, ELOOP);
    char target[PATH_MAX];
    const ssize_t n = readlinkat(folder.get(), link.c_str(), target, sizeof target);
    if (n < 0) fail(place, errno);
    add(std::string(target, static_cast<std::size_t>(n)));
    if (n > 0 && target[0] == '/') start();
  }

  bool is_owner(uid_t user) const { return user == geteuid() || user == 0 || user == root_owner_; }

  void check_folder() const {
    const std::string shown = where.empty() ? "/" : where;
    if (!is_owner(status.st_uid)) distrust(shown, foreign(status));
    if ((status.st_mode & kOthersWrite) != 0 && (status.st_mode & S_ISVTX) == 0) distrust(shown, writable(status));
  }

  std::string asked_;
  std::vector<std::string> todo_;  // the next one last
  uid_t root_owner_ = 0;
  int links_ = 0;
};

std::string content(const FileDescriptor& descriptor, std::size_t bytes, const std::string& where) {
  std::string read_bytes(bytes, '\0');
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t n = read(descriptor.get(), read_bytes.data() + done, bytes - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(where, errno);
    if (n == 0) throw Refusal{Verdict::kUnusable, where + ": cannot be read to its end"};
    done += static_cast<std::size_t>(n);
  }
  return read_bytes;
}

TrustedFile opened(const std::string& path, std::size_t most_bytes) {
  TrustedFile file;
  const Walk found(path);
  check_file(found.status, found.where);  // before it is opened: to open a device can do something
  file.descriptor = FileDescriptor(openat(found.folder.get(), found.name.c_str(), kRead));
  if (file.descriptor.get() < 0) fail(found.where, errno);
  const struct stat status = status_of(file.descriptor, found.where);
  check_file(status, found.where);
  const auto bytes = static_cast<std::size_t>(status.st_size);
  if (bytes > most_bytes)
    throw Refusal{Verdict::kUnusable, found.where + ": is larger than " + std::to_string(most_bytes) + " bytes"};
  file.bytes = content(file.descriptor, bytes, found.where);
  return file;
}

}  // namespace

TrustedFile read_trusted_file(const std::string& path, std::size_t most_bytes) {
  try {
    return opened(path, most_bytes);
  } catch (const Refusal& refusal) {
    TrustedFile file;
    file.verdict = refusal.verdict;
    file.error = refusal.error;
    return file;
  }
}

}  // namespace xyntra

#endif
