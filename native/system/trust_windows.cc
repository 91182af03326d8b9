// The rule of trusted_file.h where files have lists of rights and no modes: whoever may change a file, or put another in its place,
// must be its user, an administrator or the system itself. Folders above it are looked at for the right to remove what is in them.
#if defined(_WIN32)

#define WIN32_LEAN_AND_MEAN
#define NOMINMAX
#include <aclapi.h>
#include <fcntl.h>
#include <io.h>
#include <sddl.h>
#include <windows.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include "system.h"
#include "trusted_file.h"

namespace xyntra {
namespace {

using Verdict = TrustedFile::Verdict;

constexpr DWORD kChanges = FILE_WRITE_DATA | FILE_APPEND_DATA | DELETE | WRITE_DAC | WRITE_OWNER | GENERIC_WRITE | GENERIC_ALL;
constexpr DWORD kExchanges = FILE_DELETE_CHILD | DELETE | WRITE_DAC | WRITE_OWNER | GENERIC_ALL;

// Why a file is not to be used.
struct Refusal {
  Verdict verdict;
  std::string error;
};

struct Local {
  void operator()(void* data) const noexcept { LocalFree(data); }
};

class Handle {
 public:
  explicit Handle(HANDLE handle) noexcept : handle_(handle) {}
  ~Handle() {
    if (handle_ != INVALID_HANDLE_VALUE) CloseHandle(handle_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  HANDLE get() const noexcept { return handle_; }
  bool is_open() const noexcept { return handle_ != INVALID_HANDLE_VALUE; }
  HANDLE release() noexcept { return std::exchange(handle_, INVALID_HANDLE_VALUE); }

 private:
  HANDLE handle_;
};

std::string shown(const std::filesystem::path& path) { return path.generic_u8string(); }

[[noreturn]] void fail(const std::filesystem::path& where) {
  const DWORD code = GetLastError();
  const bool missing = code == ERROR_FILE_NOT_FOUND || code == ERROR_PATH_NOT_FOUND || code == ERROR_INVALID_NAME;
  throw Refusal{missing ? Verdict::kMissing : Verdict::kUnusable,
                shown(where) + ": " + std::system_category().message(static_cast<int>(code))};
}

std::string name_of(PSID user) {
  char* text = nullptr;
  if (ConvertSidToStringSidA(user, &text) == 0) return "unknown";
  const std::unique_ptr<char, Local> owned(text);
  return text;
}

bool is_user(PSID user) {
  HANDLE token = nullptr;
  if (OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &token) == 0) return false;
  const Handle owned(token);
  alignas(TOKEN_USER) char room[sizeof(TOKEN_USER) + SECURITY_MAX_SID_SIZE];
  DWORD bytes = 0;
  return GetTokenInformation(token, TokenUser, room, sizeof room, &bytes) != 0 &&
         EqualSid(reinterpret_cast<TOKEN_USER*>(room)->User.Sid, user) != 0;
}

// Who could read and change our memory anyway.
bool is_trusted(PSID user) {
  constexpr const char* kInstaller = "S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464";  // TrustedInstaller
  return IsWellKnownSid(user, WinLocalSystemSid) != 0 || IsWellKnownSid(user, WinBuiltinAdministratorsSid) != 0 || is_user(user) ||
         name_of(user) == kInstaller;
}

void check(HANDLE opened, const std::filesystem::path& where, DWORD rights) {
  PSID owner = nullptr;
  PACL list = nullptr;
  PSECURITY_DESCRIPTOR descriptor = nullptr;
  const DWORD code = GetSecurityInfo(opened, SE_FILE_OBJECT, OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION, &owner, nullptr,
                                     &list, nullptr, &descriptor);
  const std::unique_ptr<void, Local> owned(descriptor);
  if (code != ERROR_SUCCESS) throw Refusal{Verdict::kUnusable, shown(where) + ": its owner is not told"};
  if (!is_trusted(owner)) throw Refusal{Verdict::kDistrusted, shown(where) + ": belongs to user " + name_of(owner)};
  if (list == nullptr) throw Refusal{Verdict::kDistrusted, shown(where) + ": everybody may do everything to it"};
  for (DWORD i = 0; i < list->AceCount; ++i) {
    void* entry = nullptr;
    if (GetAce(list, i, &entry) == 0) throw Refusal{Verdict::kUnusable, shown(where) + ": its rights are not told"};
    const auto* const head = static_cast<const ACE_HEADER*>(entry);
    if ((head->AceFlags & INHERIT_ONLY_ACE) != 0 || head->AceType == ACCESS_DENIED_ACE_TYPE) continue;
    if (head->AceType != ACCESS_ALLOWED_ACE_TYPE) throw Refusal{Verdict::kDistrusted, shown(where) + ": has rights of an unknown kind"};
    auto* const allowed = static_cast<ACCESS_ALLOWED_ACE*>(entry);
    PSID const user = &allowed->SidStart;
    if ((allowed->Mask & rights) != 0 && !is_trusted(user))
      throw Refusal{Verdict::kDistrusted, shown(where) + ": user " + name_of(user) + " may change it"};
  }
}

// What a path leads to when all links on its way have been followed.
std::filesystem::path final_path(HANDLE opened, const std::filesystem::path& asked) {
  std::wstring path(1 << 15, L'\0');
  const DWORD n = GetFinalPathNameByHandleW(opened, path.data(), static_cast<DWORD>(path.size()), FILE_NAME_NORMALIZED);
  if (n == 0 || n >= path.size()) fail(asked);
  path.resize(n);
  return path;
}

// While it is open nobody can write to it, remove it or rename a folder above it: so the folders are looked at afterwards.
TrustedFile opened(const std::string& path, std::size_t most_bytes) {
  std::error_code problem;
  const std::filesystem::path asked = std::filesystem::absolute(system::to_system(path), problem);
  Handle file(CreateFileW(asked.c_str(), GENERIC_READ | READ_CONTROL, FILE_SHARE_READ, nullptr, OPEN_EXISTING,
                          FILE_ATTRIBUTE_NORMAL | SECURITY_SQOS_PRESENT | SECURITY_ANONYMOUS, nullptr));
  if (!file.is_open()) fail(asked);
  if (GetFileType(file.get()) != FILE_TYPE_DISK) throw Refusal{Verdict::kUnusable, shown(asked) + ": is not a regular file"};
  check(file.get(), asked, kChanges);
  const std::filesystem::path found = final_path(file.get(), asked);
  for (std::filesystem::path folder = found.parent_path(); !folder.empty() && folder != folder.root_path(); folder = folder.parent_path()) {
    const Handle above(CreateFileW(folder.c_str(), READ_CONTROL, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr,
                                   OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, nullptr));
    if (!above.is_open()) fail(folder);
    check(above.get(), folder, kExchanges);
  }
  LARGE_INTEGER size = {};
  if (GetFileSizeEx(file.get(), &size) == 0) fail(asked);
  const auto bytes = static_cast<std::size_t>(size.QuadPart);
  if (bytes > most_bytes) throw Refusal{Verdict::kUnusable, shown(asked) + ": is larger than " + std::to_string(most_bytes) + " bytes"};
  TrustedFile trusted;
  trusted.bytes.resize(bytes);
  for (std::size_t done = 0; done < bytes;) {
    DWORD n = 0;
    const auto wanted = static_cast<DWORD>(std::min<std::size_t>(bytes - done, std::size_t{1} << 30));
    if (ReadFile(file.get(), trusted.bytes.data() + done, wanted, &n, nullptr) == 0) fail(asked);
    if (n == 0) throw Refusal{Verdict::kUnusable, shown(asked) + ": cannot be read to its end"};
    done += n;
  }
  trusted.descriptor = FileDescriptor(_open_osfhandle(reinterpret_cast<intptr_t>(file.get()), _O_RDONLY | _O_BINARY | _O_NOINHERIT));
  if (trusted.descriptor.get() >= 0) file.release();
  return trusted;
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
