# libtenure: the store in PostgreSQL and what it rests on, compiled once more for a shared library that shows nothing but
# what its version script names. libpq is loaded when it is needed, as in the program.
pkg_check_modules(tenure_shared_PC REQUIRED IMPORTED_TARGET libsodium json-c)

file(GLOB sources CONFIGURE_DEPENDS library/*.c base/*.c attempts/*.c)
list(FILTER sources EXCLUDE REGEX "/store_sqlite[^/]*\\.c$")
get_property(generated_attempts GLOBAL PROPERTY tenure_generated_attempts)
get_property(generated_migrations GLOBAL PROPERTY tenure_generated_migrations)
add_library(tenure_shared SHARED ${sources} ${generated_attempts} ${generated_migrations})
add_dependencies(tenure_shared tenure_attempts tenure_migrations)
set_target_properties(tenure_shared PROPERTIES OUTPUT_NAME tenure VERSION ${PROJECT_VERSION} SOVERSION 0
    LINK_DEPENDS ${CMAKE_SOURCE_DIR}/library/tenure.map)
target_compile_options(tenure_shared PRIVATE -fPIC -fvisibility=default)
target_link_options(tenure_shared PRIVATE -Wl,--version-script=${CMAKE_SOURCE_DIR}/library/tenure.map)
target_link_libraries(tenure_shared PRIVATE PkgConfig::tenure_shared_PC tenure_libpq)
target_include_directories(tenure_shared INTERFACE ${CMAKE_SOURCE_DIR}/include)

# By its own place, so that it holds wherever the whole is moved.
file(RELATIVE_PATH TENURE_PC_UP /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(library/tenure.pc.in ${CMAKE_BINARY_DIR}/tenure.pc @ONLY)
install(TARGETS tenure_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
install(FILES include/tenure.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${CMAKE_BINARY_DIR}/tenure.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
