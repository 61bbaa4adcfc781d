/*
 * profile_list.h - the texts of golden/profiles, built in.
 */
#ifndef MLA_PROFILE_LIST_H
#define MLA_PROFILE_LIST_H

typedef struct mla_profile_text {
  const char *name;
  const char *text;
} mla_profile_text;

/* Ends with a NULL name. The file is made by CMake. */
extern const mla_profile_text mla_profiles[];

#endif
