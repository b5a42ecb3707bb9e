# The language, the warnings and the hardening: once, for every target.
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()

add_compile_definitions(_GNU_SOURCE TENURE_VERSION="${PROJECT_VERSION}")
add_compile_options(
    -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wswitch-enum -Wconversion -Wformat=2
    -Wundef -Wpointer-arith -Wvla -Werror=implicit-function-declaration -fno-common
    -ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)
# The program works, and so do its threads, with a stack of 128 KiB (ulimit -s 128): larger buffers are the heap's.
if(NOT TENURE_SANITIZE)
    add_compile_options(-Wframe-larger-than=20000)
endif()
include_directories(${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
add_link_options(-pthread)
add_compile_options(-pthread)

if(CMAKE_BUILD_TYPE STREQUAL "Release")
    add_compile_options(-D_FORTIFY_SOURCE=2 -fstack-protector-strong -fstack-clash-protection -fPIE)
    add_link_options($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-pie> -Wl,-z,relro,-z,now -Wl,--as-needed)
endif()
if(TENURE_SANITIZE)
    add_compile_options(-fsanitize=${TENURE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
    add_link_options(-fsanitize=${TENURE_SANITIZE})
endif()
if(TENURE_FAILPOINTS)
    add_compile_definitions(TENURE_FAILPOINTS)
endif()
if(TENURE_MUTANTS)
    add_compile_definitions(TENURE_MUTANTS)
endif()
