# find_package(tracea): the target tracea::tracea. The folder of the package is that of `python -c "import xyntra_ep; ..."`:
#   cmake -Dtracea_DIR=$(python -c "import xyntra_ep; print(xyntra_ep.get_cmake_dir())") ...
get_filename_component(_tracea_root "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET tracea::tracea)
  add_library(tracea::tracea SHARED IMPORTED)
  if(WIN32)
    set(_tracea_suffix ".dll")
    set_target_properties(tracea::tracea PROPERTIES IMPORTED_IMPLIB "${_tracea_root}/libxyntra_ep.dll.a")
  elseif(APPLE)
    set(_tracea_suffix ".dylib")
  else()
    set(_tracea_suffix ".so")
  endif()
  set_target_properties(tracea::tracea PROPERTIES
    IMPORTED_LOCATION "${_tracea_root}/libxyntra_ep${_tracea_suffix}"
    IMPORTED_NO_SONAME TRUE
    INTERFACE_INCLUDE_DIRECTORIES "${_tracea_root}/include")
endif()
set(tracea_FOUND TRUE)
unset(_tracea_root)
unset(_tracea_suffix)
