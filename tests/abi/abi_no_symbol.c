/* A shared object that is no plugin. */
__attribute__((visibility("default"))) int abi_no_symbol(void);
int abi_no_symbol(void) {
  return 0;
}
