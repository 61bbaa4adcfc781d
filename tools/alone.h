/*
 * alone.h - a failure of a case that was judged after others: is it one where
 * nothing was judged before?
 */
#ifndef MLA_TOOL_ALONE_H
#define MLA_TOOL_ALONE_H

#include "crew.h"

/*
 * Judges the item in a fresh child, and in one more. When it passes in both,
 * the verdict is explained by what came before, and 1 is returned. Not asked
 * of what touched memory, died, or gives other bits when called again.
 */
int alone_explains(const crew *of, int32_t item, mla_verdict *verdict);

#endif
