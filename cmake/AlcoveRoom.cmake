# alcove_room(NAME SOURCES ... [DEPS rooms...] [LIBS targets...] [TESTS files...] [FUZZ files...])
#
# Declares src/<NAME> as the library alcove::<NAME>, with its unit tests in one binary
# `<NAME>_test` and one fuzz target per FUZZ file (built in the asan preset; in the other
# presets a plain driver replays the corpus).
function(alcove_room name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LIBS;TESTS;TEST_DEPS;TEST_LIBS;FUZZ" ${ARGN})

  if(ARG_SOURCES)
    add_library(alcove_${name} STATIC ${ARG_SOURCES})
    set(scope PUBLIC)
  else()
    add_library(alcove_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(alcove::${name} ALIAS alcove_${name})
  target_include_directories(alcove_${name} ${scope} "${CMAKE_SOURCE_DIR}/src")
  foreach(dep IN LISTS ARG_DEPS)
    target_link_libraries(alcove_${name} ${scope} alcove::${dep})
  endforeach()
  target_link_libraries(alcove_${name} ${scope} ${ARG_LIBS})

  if(ARG_TESTS)
    add_executable(${name}_test ${ARG_TESTS})
    target_link_libraries(${name}_test PRIVATE alcove_${name} ${ARG_TEST_LIBS} GTest::gmock
                                               GTest::gtest_main)
    foreach(dep IN LISTS ARG_TEST_DEPS)
      target_link_libraries(${name}_test PRIVATE alcove::${dep})
    endforeach()
    # -Wconversion on gtest's macros is noise. Tests are not optimised: they are a third of what
    # is compiled, and what they test is.
    target_compile_options(${name}_test PRIVATE -Wno-conversion -U_FORTIFY_SOURCE -O0)
    add_test(NAME ${name} COMMAND ${name}_test)
    set_tests_properties(${name} PROPERTIES TIMEOUT 300)
  endif()

  foreach(source IN LISTS ARG_FUZZ)
    get_filename_component(target "${source}" NAME_WE)
    alcove_fuzz(${target} ${source} alcove_${name})
  endforeach()
endfunction()

# A fuzz target, and a test that replays its corpus (fuzz/corpus/<target>).
function(alcove_fuzz target source)
  add_executable(${target} ${source})
  target_link_libraries(${target} PRIVATE ${ARGN})
  if(ALCOVE_SANITIZE STREQUAL "address")
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(${target} PRIVATE "${CMAKE_SOURCE_DIR}/fuzz/replay_main.cc")
  endif()
  set(corpus "${CMAKE_SOURCE_DIR}/fuzz/corpus/${target}")
  if(IS_DIRECTORY "${corpus}")
    if(ALCOVE_SANITIZE STREQUAL "address")
      add_test(NAME replay_${target} COMMAND ${target} -runs=0 "${corpus}")
    else()
      add_test(NAME replay_${target} COMMAND ${target} "${corpus}")
    endif()
  endif()
endfunction()

# A program that users get: it lies in <build>/bin, where `alcove` finds its helpers. The target
# `programs` is all of them, without the tests.
add_custom_target(programs)
function(alcove_program target)
  add_dependencies(programs ${target})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
endfunction()

# A program that must run inside any Linux root: fully static, except under the address and thread
# sanitizers, which cannot be linked statically. Then it needs a root with a C library at least as
# new as the build's, and nothing else of it.
function(alcove_static_program target)
  alcove_program(${target})
  if(NOT ALCOVE_SANITIZE STREQUAL "none")
    target_sources(${target} PRIVATE "${CMAKE_SOURCE_DIR}/src/base/sanitizer_options.cc")
  endif()
  if(ALCOVE_SANITIZE STREQUAL "none")
    # Equal functions (templates make many) are kept once: less to map in every sandbox.
    target_link_options(${target} PRIVATE -static -Wl,--icf=safe)
  elseif(ALCOVE_SANITIZE STREQUAL "undefined")
    target_link_options(${target} PRIVATE -static)
  else()
    target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc)
  endif()
endfunction()
