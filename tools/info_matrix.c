/*
 * info_matrix.c - operation x format x backend, as Markdown.
 */
#include "info_matrix.h"

#include <stdio.h>
#include <string.h>

#include "options.h"
#include "support.h"

#define MOST 16

static int open_all(const char *only, mla_device **devices) {
  int count = 0;
  for (size_t i = 0; i < mla_backend_count() && count < MOST; i++) {
    const mla_backend *b = mla_backend_at(i);
    if (only && strcmp(only, b->name) != 0) continue;
    if (mla_open(b->name, 0, NULL, &devices[count], NULL) == MLA_OK) count++;
  }
  return count;
}

static void print_head(mla_device *const *devices, int count) {
  printf("| operation |");
  for (int i = 0; i < count; i++)
    printf(" %s |", mla_device_backend(devices[i])->name);
  printf("\n| --- |");
  for (int i = 0; i < count; i++) printf(" --- |");
  printf("\n");
}

int info_matrix(const char *backend) {
  mla_device *devices[MOST] = {NULL};
  char cell[320];
  int count = open_all(backend, devices);
  if (count == 0) {
    fprintf(stderr, "mlacheck info: there is no backend%s%s with a device\n",
            backend ? " " : "", backend ? backend : "");
    return EXIT_ENVIRONMENT;
  }
  print_head(devices, count);
  for (int row = 0; support_row(row); row++) {
    printf("| %s |", support_row(row));
    for (int i = 0; i < count; i++) {
      support_brief(devices[i], row, cell, sizeof cell);
      printf(" %s |", cell);
    }
    printf("\n");
  }
  support_legend(cell, sizeof cell);
  printf("\n%s\n", cell);
  for (int i = 0; i < count; i++) mla_close(devices[i]);
  return EXIT_SATISFIED;
}
