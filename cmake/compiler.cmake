# Warnings, sanitizers, linker and compiler cache.
add_library(dibs_compiler INTERFACE)
target_include_directories(dibs_compiler INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_compile_options(dibs_compiler INTERFACE -Wall -Wextra -Wpedantic -pthread)
if(DIBS_WERROR)
  target_compile_options(dibs_compiler INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Wrong alarms of g++ 12 on inlined std::string and std::variant at -O2 and with sanitizers.
  target_compile_options(dibs_compiler INTERFACE -Wno-restrict -Wno-maybe-uninitialized -Wno-stringop-overflow
                         -Wno-array-bounds -Wno-stringop-overread -Wno-dangling-pointer)
else()
  target_compile_options(dibs_compiler INTERFACE -Wthread-safety)  # base/mutex.h
endif()

if(DIBS_SANITIZE)
  target_compile_options(dibs_compiler INTERFACE -fsanitize=${DIBS_SANITIZE} -fno-omit-frame-pointer
                         -fno-sanitize-recover=undefined)
  target_link_options(dibs_compiler INTERFACE -fsanitize=${DIBS_SANITIZE})
  # These look at every access through a pointer and cost a third of the build. A null one ends the process anyway; the
  # fuzzers, built by clang, have them all.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND DIBS_SANITIZE MATCHES "undefined")
    target_compile_options(dibs_compiler INTERFACE
                           -fno-sanitize=null,alignment,vptr,object-size,nonnull-attribute,returns-nonnull-attribute)
  endif()
endif()

# What g++ 12's address sanitizer notes of the thread-local memory of libraries that are loaded later (NVML's, in tests) is garbage
# at times, at which its search for leaks ends the process.
set(DIBS_TEST_ENVIRONMENT "")
if(DIBS_SANITIZE MATCHES "address")
  set(DIBS_TEST_ENVIRONMENT "ASAN_OPTIONS=intercept_tls_get_addr=0")
endif()

# A result is good for every clone of the same sources: paths below the project's folder are no part of what it is found by.
find_program(DIBS_CCACHE ccache)
if(DIBS_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${DIBS_CCACHE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(dibs_compiler INTERFACE -fpch-preprocess)
  endif()
endif()

# GNU ld, slower, lays code that hardly ever runs in a place of its own: 4 MB less of a release are resident.
find_program(DIBS_MOLD mold)
if(DIBS_MOLD AND NOT CMAKE_BUILD_TYPE STREQUAL "Release")
  target_link_options(dibs_compiler INTERFACE -fuse-ld=mold)
endif()

add_library(dibs_pch STATIC ${CMAKE_SOURCE_DIR}/cmake/pch.cc)
target_link_libraries(dibs_pch PUBLIC dibs_compiler)
target_precompile_headers(dibs_pch PRIVATE ${CMAKE_SOURCE_DIR}/cmake/pch.h)

# Tests are compiled without optimization and without checks for undefined behaviour, which takes a third of the time: what
# they test has both.
if(DIBS_TESTS)
  add_library(dibs_test_pch STATIC ${CMAKE_SOURCE_DIR}/cmake/pch.cc)
  target_compile_options(dibs_test_pch PUBLIC -O0)
  if(DIBS_SANITIZE MATCHES "undefined")
    target_compile_options(dibs_test_pch PUBLIC -fno-sanitize=undefined)
  endif()
  target_link_libraries(dibs_test_pch PUBLIC dibs_compiler GTest::gmock GTest::gtest_main)
  target_precompile_headers(dibs_test_pch PRIVATE ${CMAKE_SOURCE_DIR}/cmake/test_pch.h)
endif()
