# How targets are made here: one function a kind, so that warnings, language level and include paths stand in one place.

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(MC_SANITIZE "" CACHE STRING "Value of -fsanitize= for all targets")

find_program(MC_CCACHE ccache)
if(MC_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${MC_CCACHE})
endif()
find_program(MC_MOLD mold)
if(MC_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

add_library(mc_options INTERFACE)
target_compile_options(mc_options INTERFACE -Wall -Wextra -Werror -Wshadow -Wnon-virtual-dtor
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-missing-field-initializers -Wno-restrict -Wno-stringop-overflow>  # the latter two: false alarms of gcc 12 in libstdc++
  $<$<CXX_COMPILER_ID:Clang>:-Wno-missing-field-initializers>)
target_include_directories(mc_options INTERFACE ${PROJECT_SOURCE_DIR})
if(MC_SANITIZE)
  target_compile_options(mc_options INTERFACE -fsanitize=${MC_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(mc_options INTERFACE -fsanitize=${MC_SANITIZE})
endif()

# All tests that thread sanitizer must see.
add_custom_target(concurrency_tests)

# mc_library(name HEADERS ... SOURCES ... PUBLIC ... PRIVATE ...): a static library mooncake::<name>, part of the one shared core.
function(mc_library name)
  cmake_parse_arguments(ARG "" "" "HEADERS;SOURCES;PUBLIC;PRIVATE" ${ARGN})
  set(target mc_${name})
  if(ARG_SOURCES)
    add_library(${target} STATIC ${ARG_SOURCES} ${ARG_HEADERS})
    target_link_libraries(${target} PUBLIC mc_options ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE})
    if(MC_BUILD_FUZZERS)  # A fuzzer only finds its way through code that tells it which branches were taken.
      target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
    endif()
  else()
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE mc_options ${ARG_PUBLIC})
  endif()
  add_library(mooncake::${name} ALIAS ${target})
endfunction()

# The tests' own code is compiled in a third of the time, and runs no slower; with what sanitizers add, even -O1 costs more than
# it brings.
set(MC_TEST_OPTIMIZATION -O1)
if(MC_SANITIZE)
  add_compile_options(-O1)  # Of a folder, not of mc_options: those come last, and a test's own would not count.
  set(MC_TEST_OPTIMIZATION -O0)
endif()

# Seconds after which ctest ends a test: only a hang lasts as long. Slow tests are bounded by the budgets of .ci/run, together.
set(MC_TEST_TIMEOUT 600)

# mc_test(path/of/some_test LINK ... [LABELS ...]): a GoogleTest program beside its source. Label `concurrency` = also under tsan.
function(mc_test path)
  if(NOT MC_BUILD_TESTS)
    return()
  endif()
  find_package(GTest REQUIRED)
  cmake_parse_arguments(ARG "" "" "LINK;LABELS" ${ARGN})
  get_filename_component(name ${path} NAME)
  add_executable(${name} ${path}.cc)
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gmock GTest::gtest GTest::gtest_main)
  target_compile_options(${name} PRIVATE ${MC_TEST_OPTIMIZATION})
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${MC_TEST_TIMEOUT})
  if("concurrency" IN_LIST ARG_LABELS)
    add_dependencies(concurrency_tests ${name})
  endif()
endfunction()

# mc_bench(path/of/some_bench LINK ... [LARGE regex]): a Google Benchmark program; ctest runs it small, so that it cannot rot, and
# without the cases that `regex` matches, which are large however briefly they run.
function(mc_bench path)
  if(NOT MC_BUILD_TESTS)
    return()
  endif()
  find_package(benchmark REQUIRED)
  cmake_parse_arguments(ARG "" "LARGE" "LINK" ${ARGN})
  get_filename_component(name ${path} NAME)
  add_executable(${name} ${path}.cc)
  target_link_libraries(${name} PRIVATE ${ARG_LINK} benchmark::benchmark benchmark::benchmark_main)
  if(ARG_LARGE)
    set(filter "--benchmark_filter=-${ARG_LARGE}")
  endif()
  add_test(NAME ${name} COMMAND ${name} --benchmark_min_time=0.001 ${filter})
  set_tests_properties(${name} PROPERTIES LABELS "bench" TIMEOUT ${MC_TEST_TIMEOUT})
endfunction()

# mc_fuzz(path/of/some_fuzz LINK ...): a libFuzzer target; ctest feeds it for a few seconds (clang with sanitizers only), from the same
# seed each time: what fails is then what a change broke. Hours by hand, without -seed, find the rest.
function(mc_fuzz path)
  if(NOT MC_BUILD_FUZZERS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  get_filename_component(name ${path} NAME)
  add_executable(${name} ${path}.cc)
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
  add_test(NAME ${name} COMMAND ${name} -seed=1 -max_total_time=5 -max_len=4096 -rss_limit_mb=1024 -print_final_stats=0)
  set_tests_properties(${name} PROPERTIES LABELS "fuzz" TIMEOUT ${MC_TEST_TIMEOUT})
endfunction()

# mc_flatbuffers(name file.fbs): mooncake::<name>, the C++ code of a schema, made at build time; included as "<folder of the schema>/<file>_generated.h".
# Compile with nothing else of flatc's options, so that the same schema gives the same code everywhere.
function(mc_flatbuffers name schema)
  find_program(MC_FLATC flatc REQUIRED)
  get_filename_component(path ${schema} ABSOLUTE)
  get_filename_component(stem ${schema} NAME_WE)
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  set(root ${PROJECT_BINARY_DIR}/generated)
  set(header ${root}/${folder}/${stem}_generated.h)
  add_custom_command(OUTPUT ${header} DEPENDS ${path}
    COMMAND ${MC_FLATC} --cpp --scoped-enums -o ${root}/${folder} ${path} COMMENT "flatc ${folder}/${schema}" VERBATIM)
  add_custom_target(mc_${name}_code DEPENDS ${header})
  add_library(mc_${name} INTERFACE)
  add_dependencies(mc_${name} mc_${name}_code)
  target_include_directories(mc_${name} SYSTEM INTERFACE ${root})
  target_link_libraries(mc_${name} INTERFACE mc_options)
  add_library(mooncake::${name} ALIAS mc_${name})
endfunction()
