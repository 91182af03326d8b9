// A library that the machine may lack: opened at run time, never closed.
#pragma once

#include <string>

#include "system.h"

namespace xyntra {

class SharedLibrary {
 public:
  explicit SharedLibrary(const char* name) : name_(name), handle_(system::open_library(name, why_not_)) {}

  template <class F>
  void find(const char* symbol, F& function) {
    function = handle_ != nullptr ? reinterpret_cast<F>(system::symbol(handle_, symbol)) : nullptr;
    if (function == nullptr && missing_.empty()) missing_ = symbol;
  }

  // Why what was to be found cannot be used; empty when it can.
  std::string why() const {
    if (handle_ == nullptr) return name_ + " is not on this machine";
    return missing_.empty() ? std::string() : name_ + " has no function " + missing_;
  }

 private:
  std::string name_, why_not_, missing_;
  void* handle_;
};

}  // namespace xyntra
