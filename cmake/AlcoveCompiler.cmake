# Compiler settings that hold for every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# One of: none, address (address + undefined + fuzzer-no-link), thread, undefined.
set(ALCOVE_SANITIZE "none" CACHE STRING "Sanitizers to build with")
option(ALCOVE_WERROR "Treat warnings as errors" OFF)

if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  message(FATAL_ERROR "alcove is built with clang-19: g++ 12 miscompiles coroutines (CONTRIBUTING.md).")
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE_PROGRAM}")
endif()

add_compile_options(-g1 -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion
                    -fstack-protector-strong -ffunction-sections -fdata-sections
                    -fno-omit-frame-pointer)
add_compile_definitions(_GLIBCXX_ASSERTIONS _GNU_SOURCE
                        ALCOVE_VERSION="${PROJECT_VERSION}"
                        # Boost's own choice of the old allocator model is off in all our files.
                        BOOST_ASIO_NO_DEPRECATED)
add_link_options(-fuse-ld=lld-19 -Wl,--gc-sections)
if(ALCOVE_WERROR)
  add_compile_options(-Werror)
endif()

if(ALCOVE_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=address,undefined)
elseif(ALCOVE_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread)
  add_link_options(-fsanitize=thread)
elseif(ALCOVE_SANITIZE STREQUAL "undefined")
  add_compile_options(-fsanitize=undefined -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=undefined)
elseif(CMAKE_BUILD_TYPE STREQUAL "Release")
  add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
  add_link_options(-Wl,-z,relro,-z,now)
endif()
