# Zig's Clang for any system from any other: cmake -DCMAKE_TOOLCHAIN_FILE=release/zig.cmake -DZIG=... -DZIG_TARGET=aarch64-macos
# It brings the headers and libraries of each, and links its own C++ library into what it makes.
set(ZIG "" CACHE FILEPATH "Zig's program, as `pip install ziglang` has it")
set(ZIG_TARGET "" CACHE STRING "Architecture, system, ABI with the least version of its C library")
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ZIG ZIG_TARGET)
if(ZIG_TARGET MATCHES "windows")
  set(CMAKE_SYSTEM_NAME Windows)
elseif(ZIG_TARGET MATCHES "macos")
  set(CMAKE_SYSTEM_NAME Darwin)
else()
  set(CMAKE_SYSTEM_NAME Linux)
endif()
string(REGEX MATCH "^[a-z0-9_]+" CMAKE_SYSTEM_PROCESSOR "${ZIG_TARGET}")
# Names for debuggers would be nine tenths of a library.
if(NOT CMAKE_SYSTEM_NAME STREQUAL "Darwin")
  set(CMAKE_SHARED_LINKER_FLAGS_RELEASE_INIT "-s")
endif()
# A program that Zig links depends on nothing that it could not find here; CMake's own trial would.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_CXX_COMPILER "${ZIG}" c++ -target "${ZIG_TARGET}")
