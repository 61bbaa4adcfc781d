/*
 * docket_parts.h - what the files of the docket share.
 */
#ifndef MLA_DOCKET_PARTS_H
#define MLA_DOCKET_PARTS_H

#include "batch_json.h"
#include "docket.h"
#include "vector_file.h"

struct mla_docket {
  int32_t count, file_count, path_count, batch_count;
  mla_item *item;
  mla_vector_file **file;
  cJSON **batch; /* files of batches */
  char **path;   /* owned names */
};

mla_status mla_docket_no_memory(mla_error *err);
/* A copy that lives as long as the docket. */
const char *mla_docket_keep_text(mla_docket *d, const char *text);
/* At the docket's end; valid until the next one. NULL: no memory. */
mla_item *mla_docket_new_item(mla_docket *d, int32_t kind, const char *id);

#endif
