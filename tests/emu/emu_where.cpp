/*
 * emu_where.cpp - asks addr2line, once for each place.
 */
#include "emu_where.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <map>

namespace {

/* A line of addr2line, "/path/file.h:12 (discriminator 3)", cut down. */
std::string short_place(const char *line) {
  const char *slash = strrchr(line, '/');
  const char *begin = slash ? slash + 1 : line;
  return std::string(begin, strcspn(begin, " \n"));
}

std::string ask(const void *pc) {
  Dl_info info;
  if (!dladdr(pc, &info) || !info.dli_fname) return "";
  /* A return address lies behind the call it belongs to. */
  const unsigned long offset =
      (unsigned long)((const char *)pc - (const char *)info.dli_fbase) - 1;
  char command[600];
  int n = snprintf(command, sizeof command,
                   "addr2line -i -e '%s' 0x%lx 2>/dev/null", info.dli_fname,
                   offset);
  if (n < 0 || n >= (int)sizeof command) return "";
  FILE *answer = popen(command, "r");
  if (!answer) return "";
  std::string chain;
  char line[512];
  while (fgets(line, sizeof line, answer)) {
    if (strchr(line, '?')) continue;
    const std::string place = short_place(line);
    if (place.find("emu_port.h") == 0 || place.find("tuple") == 0 ||
        place.find("invoke.h") == 0 || place.find("std_function") == 0)
      continue; /* how it was launched */
    if (!chain.empty()) chain += " < ";
    chain += place;
  }
  pclose(answer);
  return chain;
}

const std::string &place_of(const void *pc) {
  static std::map<const void *, std::string> known;
  auto found = known.find(pc);
  if (found == known.end()) found = known.emplace(pc, ask(pc)).first;
  return found->second;
}

}  // namespace

std::string emu_where(const void *pc, const char *file, int line) {
  const std::string &chain = place_of(pc);
  if (!chain.empty()) return chain;
  char text[200];
  const char *slash = file ? strrchr(file, '/') : NULL;
  if (file)
    snprintf(text, sizeof text, "%s:%d", slash ? slash + 1 : file, line);
  else
    snprintf(text, sizeof text, "code at %p", pc);
  return text;
}

bool emu_same_place(const void *a, const void *b) {
  return place_of(a) == place_of(b);
}
