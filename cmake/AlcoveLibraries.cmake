# Third-party libraries, all from Debian 12. Headers of the slow ones (Beast, CLI11, toml++,
# spdlog) are included in single .cc files only.
set(Boost_USE_STATIC_LIBS ON)
find_package(Boost 1.81 REQUIRED COMPONENTS json url)
find_package(Threads REQUIRED)
find_package(GTest REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(SQLITE REQUIRED IMPORTED_TARGET sqlite3)
pkg_check_modules(SECCOMP REQUIRED IMPORTED_TARGET libseccomp)
pkg_check_modules(LIBARCHIVE REQUIRED IMPORTED_TARGET libarchive)
# Only a test talks to it: the interpreter's own ZMTP is compared with it.
pkg_check_modules(ZMQ REQUIRED IMPORTED_TARGET libzmq)
pkg_check_modules(NFTNL REQUIRED IMPORTED_TARGET libnftnl)

# Static archives for the programs that run inside sandboxes.
find_library(LIBCRYPTO_STATIC libcrypto.a REQUIRED)
find_library(LIBSSL_STATIC libssl.a REQUIRED)
find_library(LIBZ_STATIC libz.a REQUIRED)
find_library(LIBSECCOMP_STATIC libseccomp.a REQUIRED)
