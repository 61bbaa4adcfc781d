/* As init_portable.h; lower levels first, so that higher ones replace them. */
KERNEL(NEON, load, load[MLA_CPU_F16], mla_load_f16_neon)
KERNEL(NEON, load, load[MLA_CPU_BF16], mla_load_bf16_neon)
KERNEL(NEON, store, store[MLA_CPU_F16], mla_store_f16_neon)
KERNEL(NEON, store, store[MLA_CPU_BF16], mla_store_bf16_neon)
KERNEL(NEON, pack, pack, mla_pack_f32_neon)
KERNEL(NEON, product, product, mla_product_f32_neon)
KERNEL(NEON, softmax, softmax, mla_softmax_f32_neon)
