# The libraries outside, as targets. The small ones are linked statically where that is possible: a short command
# spends most of its life in the dynamic loader.
find_package(PkgConfig REQUIRED)

function(tenure_library target module archive)
    pkg_check_modules(${target}_PC REQUIRED IMPORTED_TARGET ${module})
    add_library(${target} INTERFACE)
    target_include_directories(${target} SYSTEM INTERFACE ${${target}_PC_INCLUDE_DIRS})
    if(archive AND TENURE_STATIC_LIBS)
        find_library(${target}_ARCHIVE NAMES ${archive} HINTS ${${target}_PC_LIBDIR})
        if(${target}_ARCHIVE)
            target_link_libraries(${target} INTERFACE ${${target}_ARCHIVE} ${ARGN})
            return()
        endif()
    endif()
    target_link_libraries(${target} INTERFACE PkgConfig::${target}_PC)
endfunction()

tenure_library(tenure_sodium libsodium libsodium.a)
tenure_library(tenure_json json-c libjson-c.a)
tenure_library(tenure_sqlite sqlite3 libsqlite3.a m dl)
# Fetched when it is needed (supervisor/systemd.c): its headers are enough.
pkg_check_modules(tenure_systemd_PC REQUIRED libsystemd)
add_library(tenure_systemd INTERFACE)
target_include_directories(tenure_systemd SYSTEM INTERFACE ${tenure_systemd_PC_INCLUDE_DIRS})
# Only its headers: the library itself costs 11 ms of loading, and is loaded when a store is at postgresql://.
pkg_check_modules(tenure_libpq_PC REQUIRED libpq)
add_library(tenure_libpq INTERFACE)
target_include_directories(tenure_libpq SYSTEM INTERFACE ${tenure_libpq_PC_INCLUDE_DIRS})
target_link_libraries(tenure_libpq INTERFACE dl)
if(TENURE_TESTS)
    tenure_library(tenure_cmocka cmocka "")
endif()
