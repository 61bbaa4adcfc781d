# mla_write_profiles(FILE DIR): golden/profiles/*.txt as a C source, so that
# the tool needs no files beside it. As numbers: no string is too long then.
function(mla_write_profiles file dir)
  file(GLOB texts CONFIGURE_DEPENDS ${dir}/*.txt)
  list(SORT texts)
  set(arrays "")
  set(rows "")
  foreach(text IN LISTS texts)
    get_filename_component(name ${text} NAME_WE)
    file(READ ${text} hex HEX)
    string(REGEX REPLACE "(................)" "\\1\n" hex "${hex}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
    string(MAKE_C_IDENTIFIER "text_${name}" symbol)
    string(APPEND arrays "static const unsigned char ${symbol}[] = {\n")
    string(APPEND arrays "${hex}0x00};\n")
    string(APPEND rows "    {\"${name}\", (const char *)${symbol}},\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${text})
  endforeach()
  file(CONFIGURE OUTPUT ${file} CONTENT
"/* Made by CMake from golden/profiles. */
#include \"profile_list.h\"

${arrays}
const mla_profile_text mla_profiles[] = {
${rows}    {0, 0},
};
" @ONLY)
endfunction()
