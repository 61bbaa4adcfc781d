/*
 * commands.h - the commands of mlacheck; each returns its exit code.
 */
#ifndef MLA_TOOL_COMMANDS_H
#define MLA_TOOL_COMMANDS_H

int cmd_bench(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_show(int argc, char **argv);
int cmd_info(int argc, char **argv);
int cmd_gen(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_verify(int argc, char **argv);
int cmd_selftest(int argc, char **argv);
int cmd_submit(int argc, char **argv);

#endif
