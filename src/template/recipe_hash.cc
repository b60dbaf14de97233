// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "template/recipe_hash.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include <boost/json.hpp>

#include "base/sha256.h"
#include "base/strings.h"
#include "image/files.h"
#include "image/tree.h"

namespace alcove::templates {
namespace {

Result<std::string> hash_open_file(int fd) {
  Sha256 digest;
  char buffer[65536];
  while (true) {
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n == 0) return digest.finish_hex();
    if (n > 0) {
      digest.update(std::string_view(buffer, static_cast<size_t>(n)));
    } else if (errno != EINTR) {
      return fail_errno(errno, "read");
    }
  }
}

class TreeHasher final : public image::TreeVisitor {
 public:
  Result<void> enter(const image::TreeEntry& entry) override {
    std::string content;
    if (S_ISREG(entry.st.st_mode)) {
      ALCOVE_TRY_ASSIGN(UniqueFd fd,
                        image::open_file_at(entry.parent_fd, entry.name, O_RDONLY | O_NOFOLLOW));
      ALCOVE_TRY_ASSIGN(content, hash_open_file(fd.get()));
    } else if (S_ISLNK(entry.st.st_mode)) {
      char text[PATH_MAX];
      const ssize_t n = ::readlinkat(entry.parent_fd, entry.name.c_str(), text, sizeof text);
      if (n < 0) return fail_errno(errno, cat("readlink ", entry.path));
      content.assign(text, static_cast<size_t>(n));
    }
    // Lengths before texts: no two different trees give the same input.
    digest_.update(cat(entry.path.size(), ":", entry.path, " ", entry.st.st_mode, " ",
                       entry.st.st_uid, " ", entry.st.st_gid, " ", content.size(), ":", content,
                       "\n"));
    return {};
  }
  std::string finish() { return digest_.finish_hex(); }

 private:
  Sha256 digest_;
};

}  // namespace

Result<std::string> hash_tree(const std::string& root) {
  TreeHasher hasher;
  if (auto walked = image::walk_tree(root, hasher); !walked) {
    return fail(std::move(walked).error().context(root));
  }
  return hasher.finish();
}

Result<std::string> hash_file(const std::string& path) {
  ALCOVE_TRY_ASSIGN(UniqueFd fd, image::open_file(path, O_RDONLY));
  return hash_open_file(fd.get());
}

Result<std::string> hash_python(const PythonPackages& python) {
  ALCOVE_TRY_ASSIGN(const std::string lock, hash_file(python.lock));
  return cat(python.version, " ", lock);
}

Result<std::string> hash_from(const From& from) {
  switch (from.kind) {
    case From::Kind::kDebian: {
      boost::json::array packages;
      for (const std::string& package : from.packages) packages.emplace_back(package);
      return sha256_hex(boost::json::serialize(boost::json::object{
          {"debian", from.source},
          {"packages", std::move(packages)},
          {"slim", from.docs == From::Docs::kSlim},
      }));
    }
    case From::Kind::kDirectory:
      return hash_tree(from.source);
    case From::Kind::kTar:
      return hash_file(from.source);
    case From::Kind::kTemplate:
      break;
  }
  return fail(Code::kInternal, "a template has no first layer of its own");
}

}  // namespace alcove::templates
