/*
 * info_matrix.h - mlacheck info --matrix: the table of what is supported.
 */
#ifndef MLA_TOOL_INFO_MATRIX_H
#define MLA_TOOL_INFO_MATRIX_H

/*
 * A Markdown table: a row for each operation, a column for each backend that
 * finds a device here (or the one of that name), in the cells the formats.
 * An exit code.
 */
int info_matrix(const char *backend);

#endif
