/*
 * machine.h - the machine that this runs on.
 */
#ifndef MLA_MACHINE_H
#define MLA_MACHINE_H

/* "x86_64", "s390x" ...; "" when it has no name here. */
const char *mla_machine_name(void);
/* Seconds of a clock that only goes forward. */
double mla_machine_seconds(void);

#endif
