/*
 * model_presets.c - sizes as the models' own configurations give them.
 *
 * Every row was read in the public file named in it, or in the defaults of the
 * class that a model library keeps for just that checkpoint. Sizes are all
 * that is taken over: YaRN's factor on the softmax scale comes with a
 * config.json, and does not change what a kernel has to do.
 */
#include "model_presets.h"

#include <string.h>

#define HF "transformers, models/"

static const mla_model models[] = {
    {"deepseek-v2-lite", "DeepSeek-V2-Lite", 2048, 16, 0, 512, 128, 64, 128, 0,
     0, 0, 0, "AMD-AGI/Primus, megatron/deepseek_v2_lite.yaml"},
    {"deepseek-v2", "DeepSeek-V2, V2.5", 5120, 128, 1536, 512, 128, 64, 128, 0,
     0, 0, 0, "AMD-AGI/Primus, megatron/deepseek_v2.yaml"},
    {"deepseek-v3", "DeepSeek-V3, R1", 7168, 128, 1536, 512, 128, 64, 128, 0, 0,
     0, 0, HF "deepseek_v3/configuration_deepseek_v3.py"},
    {"deepseek-v3.2", "DeepSeek-V3.2", 7168, 128, 1536, 512, 128, 64, 128, 64,
     128, 2048, 0, "lmdeploy, class DeepseekV32Config"},
    {"kimi-k2", "Kimi-K2", 7168, 64, 1536, 512, 128, 64, 128, 0, 0, 0, 0,
     "lmdeploy, class KimiK2Config"},
    {"glm-4.7-flash", "GLM-4.7-Flash", 2048, 20, 768, 512, 192, 64, 256, 0, 0,
     0, 0, HF "glm4_moe_lite/configuration_glm4_moe_lite.py"},
    {"glm-5", "GLM-5", 6144, 64, 2048, 512, 192, 64, 256, 32, 128, 2048, 0,
     HF "glm_moe_dsa/configuration_glm_moe_dsa.py"},
    {"minicpm3-4b", "MiniCPM3-4B", 2560, 40, 768, 256, 64, 32, 64, 0, 0, 0, 0,
     HF "minicpm3/configuration_minicpm3.py"},
    {"mistral-small-4", "Mistral Small 4", 4096, 32, 1024, 256, 64, 64, 128, 0,
     0, 0, 0, HF "mistral4/configuration_mistral4.py"},
    {"longcat-flash", "LongCat-Flash", 6144, 64, 1536, 512, 128, 64, 128, 0, 0,
     0, 0, HF "longcat_flash/configuration_longcat_flash.py"},
    {"youtu-llm-2b", "Youtu-LLM-2B", 2048, 16, 1536, 512, 128, 64, 128, 0, 0, 0,
     0, HF "youtu/configuration_youtu.py"},
};
#define MODELS ((int)(sizeof models / sizeof models[0]))

const mla_model *mla_model_at(int i) {
  return i >= 0 && i < MODELS ? &models[i] : NULL;
}

static int lower(int c) {
  return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

static int same(const char *a, const char *b) {
  while (*a && lower(*a) == lower(*b)) {
    a++;
    b++;
  }
  return lower(*a) == lower(*b);
}

const mla_model *mla_model_find(const char *name) {
  for (int i = 0; i < MODELS; i++)
    if (same(models[i].name, name)) return &models[i];
  return same(name, "deepseek-r1") ? mla_model_find("deepseek-v3") : NULL;
}
