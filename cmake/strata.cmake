# Build rules that every module shares: one static target a module, one test binary a module.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
# Debug information costs build time and disk; line tables are enough for a backtrace.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG -g1")
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1 -fno-omit-frame-pointer")

find_program(CCACHE ccache)
if(CCACHE)
  # Paths below the sources count as relative, so that another checkout finds the same objects.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()
find_package(Threads REQUIRED)

add_library(strata_options INTERFACE)
# Contraction off: a fused multiply-add is written where it is meant, so every backend rounds alike.
# Designated initialisers leave the rest alone.
target_compile_options(
  strata_options INTERFACE "$<$<COMPILE_LANGUAGE:C,CXX>:-Wall;-Wextra;-Wshadow;-Wpedantic;-Werror;\
-ffp-contract=off;-Wno-missing-field-initializers>")
target_include_directories(strata_options INTERFACE ${PROJECT_SOURCE_DIR})
if(STRATA_SANITIZE)
  target_compile_options(strata_options INTERFACE -fsanitize=${STRATA_SANITIZE}
                                                  -fno-sanitize-recover=all)
  target_link_options(strata_options INTERFACE -fsanitize=${STRATA_SANITIZE})
endif()
if(STRATA_FUZZ)
  # Every module counts its branches, not the target's own file alone; without this libFuzzer is blind.
  target_compile_options(strata_options INTERFACE -fsanitize=fuzzer-no-link)
  add_custom_target(fuzzers)
endif()

# strata_module(NAME SOURCES a.cpp ... HEADERS a.h ... [PUBLIC libs] [PRIVATE libs])
function(strata_module name)
  cmake_parse_arguments(ARG "" "" "SOURCES;HEADERS;PUBLIC;PRIVATE" ${ARGN})
  add_library(strata_${name} STATIC ${ARG_SOURCES})
  add_library(strata::${name} ALIAS strata_${name})
  target_sources(strata_${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES
                                       ${ARG_HEADERS})
  # Each header compiles alone: `cmake --build ... --target all_verify_interface_header_sets`.
  set_target_properties(strata_${name} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
  target_link_libraries(strata_${name} PUBLIC strata_options ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE})
endfunction()

# strata_test(NAME SOURCES a_test.cpp ... LABEL unit LIBS strata::x ... [DATA dir])
# One binary; ctest sees one entry a binary, labelled.
function(strata_test name)
  if(NOT STRATA_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "SOURCES;LIBS;ARGS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE strata_options ${ARG_LIBS} GTest::gtest GTest::gmock
                                        GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE STRATA_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                             STRATA_SEED_DIR="${CMAKE_BINARY_DIR}/seeds")
  add_test(NAME ${name} COMMAND ${name} ${ARG_ARGS} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT})
endfunction()

# strata_golden(TEST FOLDER/FILE): unpacks tests/golden/FOLDER/FILE.tar.xz (tools/pack_golden.py) for
# TEST, which finds it as STRATA_GOLDEN_DIR "/FOLDER/FILE".
function(strata_golden test file)
  if(NOT STRATA_TESTS)
    return()
  endif()
  set(archive ${PROJECT_SOURCE_DIR}/tests/golden/${file}.tar.xz)
  cmake_path(GET file PARENT_PATH folder)
  file(ARCHIVE_EXTRACT INPUT ${archive} DESTINATION ${CMAKE_BINARY_DIR}/golden/${folder})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${archive})
  target_compile_definitions(${test} PRIVATE STRATA_GOLDEN_DIR="${CMAKE_BINARY_DIR}/golden")
endfunction()

# strata_seeds(NAME SCRIPT): runs SCRIPT FOLDER, which fills ${CMAKE_BINARY_DIR}/seeds/NAME.
function(strata_seeds name script)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  execute_process(COMMAND ${Python3_EXECUTABLE} ${script} ${CMAKE_BINARY_DIR}/seeds/${name}
                  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${script})
endfunction()

# strata_fuzz(NAME SOURCES x_fuzz.cpp LIBS strata::x CORPUS dir): a libFuzzer target; labelled fuzz;slow.
function(strata_fuzz name)
  if(NOT STRATA_FUZZ)
    return()
  endif()
  cmake_parse_arguments(ARG "" "CORPUS" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE strata_options ${ARG_LIBS})
  target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  target_compile_definitions(${name} PRIVATE STRATA_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  add_dependencies(fuzzers ${name})
  set(work ${CMAKE_BINARY_DIR}/corpus/${name})
  file(MAKE_DIRECTORY ${work})
  # New inputs go to the build folder; the seeds in the repository stay as they are.
  add_test(NAME ${name} COMMAND ${name} -max_total_time=60 -rss_limit_mb=2048 -timeout=10 ${work}
                                ${ARG_CORPUS})
  # A crashing input is left in the corpus, so the next run fails too until it is mended.
  set_tests_properties(${name} PROPERTIES LABELS "fuzz;slow" TIMEOUT 200
                                          WORKING_DIRECTORY ${work})
endfunction()
