/* KERNEL(level, shape, member of the table, function); no include guard: the
   table includes it once to declare and once to fill. */
KERNEL(PORTABLE, load, load[MLA_CPU_F32], mla_load_f32_portable)
KERNEL(PORTABLE, load, load[MLA_CPU_F16], mla_load_f16_portable)
KERNEL(PORTABLE, load, load[MLA_CPU_BF16], mla_load_bf16_portable)
KERNEL(PORTABLE, store, store[MLA_CPU_F32], mla_store_f32_portable)
KERNEL(PORTABLE, store, store[MLA_CPU_F16], mla_store_f16_portable)
KERNEL(PORTABLE, store, store[MLA_CPU_BF16], mla_store_bf16_portable)
KERNEL(PORTABLE, pack, pack, mla_pack_f32_portable)
KERNEL(PORTABLE, product, product, mla_product_f32_portable)
KERNEL(PORTABLE, softmax, softmax, mla_softmax_f32_portable)
KERNEL(PORTABLE, softcap, softcap, mla_softcap_f32_portable)
KERNEL(PORTABLE, fold, fold, mla_fold_f32_portable)
KERNEL(PORTABLE, axpy, axpy, mla_axpy_f32_portable)
