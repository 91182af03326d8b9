#include "metal_api.h"

#include <memory>

#include "shared_library.h"

namespace xyntra::metal {
namespace {

struct Opened {
  std::unique_ptr<Api> api;
  std::string why;
};

Opened open() {
  // Programs without windows are shown devices only with CoreGraphics beside them (MTLCreateSystemDefaultDevice).
  const SharedLibrary graphics("/System/Library/Frameworks/CoreGraphics.framework/CoreGraphics");
  SharedLibrary objc("/usr/lib/libobjc.A.dylib"), metal("/System/Library/Frameworks/Metal.framework/Metal");
  auto api = std::make_unique<Api>();
  objc.find("objc_getClass", api->getClass);
  objc.find("sel_registerName", api->registerName);
  objc.find("objc_msgSend", api->msgSend);
  objc.find("objc_retain", api->retain);
  objc.find("objc_release", api->release);
  objc.find("objc_autoreleasePoolPush", api->autoreleasePoolPush);
  objc.find("objc_autoreleasePoolPop", api->autoreleasePoolPop);
  metal.find("MTLCopyAllDevices", api->CopyAllDevices);
  for (const SharedLibrary* library : {&metal, &objc})
    if (std::string why = library->why(); !why.empty()) return {nullptr, std::move(why)};
  return {std::move(api), {}};
}

}  // namespace

const Api* api(std::string* why) {
  static const auto* const opened = new Opened(open());
  if (why != nullptr) *why = opened->why;
  return opened->api.get();
}

std::string Api::text(Id string) const {
  const char* const text = send<const char*>(string, "UTF8String");
  return text != nullptr ? text : "";
}

Id Api::string(const std::string& text) const {
  return send(getClass("NSString"), "stringWithUTF8String:", text.c_str());
}

std::string error_name(long code) {
  switch (code) {
    case 1: return "MTLCommandBufferErrorInternal";
    case 2: return "MTLCommandBufferErrorTimeout";
    case 3: return "MTLCommandBufferErrorPageFault";
    case 4: return "MTLCommandBufferErrorAccessRevoked";
    case 7: return "MTLCommandBufferErrorNotPermitted";
    case 8: return "MTLCommandBufferErrorOutOfMemory";
    case 9: return "MTLCommandBufferErrorInvalidResource";
    case 11: return "MTLCommandBufferErrorDeviceRemoved";
    case 12: return "MTLCommandBufferErrorStackOverflow";
    default: return "MTLCommandBufferError " + std::to_string(code);
  }
}

// A fault or a timeout ends one command buffer. The system takes the device from who has had too many of them.
FailureKind kind_of(long code) {
  switch (code) {
    case 4:   // access revoked
    case 7:   // not permitted, as in the background of a phone
    case 11:  // device removed
      return FailureKind::kFatal;
    default:
      return FailureKind::kRecoverable;
  }
}

}  // namespace xyntra::metal
