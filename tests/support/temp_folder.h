#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <ios>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace strata::testing {

// A new empty folder for one test; the destructor removes it with all it holds.
class TempFolder {
 public:
  TempFolder() {
    std::random_device random;
    path_ = std::filesystem::temp_directory_path() /
            ("strata-test-" + std::to_string(random()) + std::to_string(random()));
    if (!std::filesystem::create_directory(path_)) {
      throw std::runtime_error("cannot create " + path_.string());
    }
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  std::string path() const { return path_.string(); }
  std::string path(std::string_view name) const { return (path_ / name).string(); }

  // Writes a file and tells its path.
  std::string write(std::string_view name, std::span<const std::byte> bytes) const {
    std::ofstream out(path(name), std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
    out.close();
    if (!out) throw std::runtime_error("cannot write " + path(name));
    return path(name);
  }
  std::string write(std::string_view name, std::string_view text) const {
    return write(name, std::as_bytes(std::span(text)));
  }

 private:
  std::filesystem::path path_;
};

inline std::vector<std::byte> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) throw std::runtime_error("cannot read " + path);
  std::vector<std::byte> bytes(static_cast<size_t>(in.tellg()));
  in.seekg(0);
  in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

}  // namespace strata::testing
