# A room is a folder that becomes one static library, tenure_NAME, of every .c file in it.

function(tenure_room name)
    cmake_parse_arguments(ROOM "" "" "USES;LIBRARIES" ${ARGN})
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${name}/*.c)
    get_property(generated GLOBAL PROPERTY tenure_generated_${name})
    list(TRANSFORM ROOM_USES PREPEND tenure_)
    if(sources)
        add_library(tenure_${name} STATIC ${sources} ${generated})
        target_link_libraries(tenure_${name} PUBLIC ${ROOM_USES} ${ROOM_LIBRARIES})
    else()
        add_library(tenure_${name} INTERFACE)
        target_link_libraries(tenure_${name} INTERFACE ${ROOM_USES} ${ROOM_LIBRARIES})
    endif()
endfunction()

# Every .sql file of a folder as a C string: <build>/NAME_sql.h declares SQL_<FILE>, NAME_sql.c defines them.
function(tenure_sql name folder)
    file(GLOB_RECURSE files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${name}/${folder}/*.sql)
    set(stem ${CMAKE_BINARY_DIR}/generated/${name}_sql)
    add_custom_command(
        OUTPUT ${stem}.c ${stem}.h
        COMMAND ${CMAKE_COMMAND} -DSTEM=${stem} -DROOT=${CMAKE_SOURCE_DIR}/${name} "-DFILES=${files}"
                -P ${CMAKE_SOURCE_DIR}/tools/cmake/embed_sql.cmake
        DEPENDS ${files} ${CMAKE_SOURCE_DIR}/tools/cmake/embed_sql.cmake VERBATIM)
    set_property(GLOBAL APPEND PROPERTY tenure_generated_${name} ${stem}.c ${stem}.h)
endfunction()

# A room that holds nothing but SQL.
function(tenure_sql_room name)
    tenure_sql(${name} "")
    get_property(generated GLOBAL PROPERTY tenure_generated_${name})
    add_library(tenure_${name} STATIC ${generated})
endfunction()

# A program: the room of everything in the folder but main.c, so that tests can be linked with it, and main.c.
function(tenure_program program folder)
    cmake_parse_arguments(PROGRAM "" "" "USES" ${ARGN})
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.c)
    list(FILTER sources EXCLUDE REGEX "/main\\.c$")
    list(TRANSFORM PROGRAM_USES PREPEND tenure_)
    add_library(tenure_${folder} STATIC ${sources})
    target_link_libraries(tenure_${folder} PUBLIC ${PROGRAM_USES})
    add_executable(${program} ${CMAKE_SOURCE_DIR}/${folder}/main.c)
    target_link_libraries(${program} PRIVATE tenure_${folder})
    install(TARGETS ${program})
endfunction()
