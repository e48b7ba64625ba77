#pragma once

#include <span>
#include <string_view>

namespace strata::server {

// The chat page: the files of server/page/, which tools/build_web.sh makes from web/. Part of the
// program.
struct PageFile {
  std::string_view path;  // "/" for index.html
  std::string_view content_type;
  std::string_view bytes;
};
std::span<const PageFile> page_files();

// Nothing from elsewhere, no script or style inside the page, not inside another page; and the
// browser refuses to make HTML of a string, whoever asks for it.
inline constexpr std::string_view kPageSecurityPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";

}  // namespace strata::server
