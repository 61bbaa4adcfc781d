# The digest of all sources that the reference's answers follow from, as a C
# file: cmake -D DIR=common -D OUT=FILE -P MlaReferenceDigest.cmake
file(GLOB sources ${DIR}/*.c ${DIR}/*.h)
list(SORT sources)
set(all "")
foreach(source IN LISTS sources)
  file(SHA256 ${source} one)
  string(APPEND all ${one})
endforeach()
string(SHA256 digest "${all}")
file(CONFIGURE OUTPUT ${OUT} CONTENT
"/* Made by CMake from common. */
#include \"expect_keep.h\"

const char mla_reference_digest[] = \"${digest}\";
" @ONLY)
