# Writes the C++ source that holds the files of the page: cmake -DFOLDER=... -DOUT=... -P embed.cmake
set(files index.html style.css app.js)
set(types "text/html\; charset=utf-8" "text/css\; charset=utf-8" "text/javascript\; charset=utf-8")
set(arrays "")
set(rows "")
foreach(file type IN ZIP_LISTS files types)
  file(READ ${FOLDER}/${file} bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
  string(MAKE_C_IDENTIFIER ${file} name)
  string(APPEND arrays "constexpr char k_${name}[] = {${bytes}};\n")
  set(path ${file})
  if(file STREQUAL "index.html")
    set(path "")
  endif()
  string(APPEND rows
         "    PageFile{\"/${path}\", \"${type}\", {k_${name}, sizeof(k_${name})}},\n")
endforeach()
file(WRITE ${OUT} "#include \"strata/server/page.h\"

#include <array>

namespace strata::server {
namespace {

${arrays}
constexpr std::array kFiles = {
${rows}};

}  // namespace

std::span<const PageFile> page_files() { return kFiles; }

}  // namespace strata::server
")
