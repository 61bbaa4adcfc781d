/*
 * oracle_error - the reference's error, measured with 256 bits, against the
 * laws of docs/reference.md. Exit status 1 when an element breaks one.
 */
#include <stdio.h>

#include "measured.h"

int main(void) {
  printf(
      "Errors of out in 2^-53 A_d (of products: 2^-53 root sum (a b)^2), of\n"
      "lse in 2^-53 max(1, |lse|); \"law\": the largest that the expected law\n"
      "allows, in the same unit; then the largest error as a fraction of the\n"
      "expected law and of the worst-case law; elements beyond a law.\n\n");
  printf("%-10s %-4s %8s  %8s %8s  %8s  %8s %8s  %s\n", "operation", "",
         "count", "median", "worst", "law", "expected", "w.-case", "beyond");
  int64_t refused = measure_decode() + measure_prefill();
  refused += measure_merge() + measure_products();
  mpfr_free_cache();
  printf("\n%s\n", refused ? "NOT within the laws" : "all within both laws");
  return refused != 0;
}
