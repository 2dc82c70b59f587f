# What find_package(Forrest CONFIG) reads: the targets Forrest::forrest and Forrest::remixdb for the shared libraries,
# Forrest::forrest_static and Forrest::remixdb_static for the archives. It finds the prefix by where it lies.

get_filename_component(_forrest_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

foreach(_forrest_library forrest remixdb)
  if(NOT TARGET Forrest::${_forrest_library})
    add_library(Forrest::${_forrest_library} SHARED IMPORTED)
    set_target_properties(Forrest::${_forrest_library} PROPERTIES
      IMPORTED_LOCATION "${_forrest_prefix}/lib/lib${_forrest_library}.so"
      INTERFACE_INCLUDE_DIRECTORIES "${_forrest_prefix}/include")
    add_library(Forrest::${_forrest_library}_static STATIC IMPORTED)
    set_target_properties(Forrest::${_forrest_library}_static PROPERTIES
      IMPORTED_LOCATION "${_forrest_prefix}/lib/lib${_forrest_library}.a"
      INTERFACE_INCLUDE_DIRECTORIES "${_forrest_prefix}/include"
      INTERFACE_LINK_LIBRARIES "pthread;dl;m")
  endif()
endforeach()

unset(_forrest_library)
unset(_forrest_prefix)
