"""Decode in Torch, judged: python3 torch_decode.py [PATTERN...]

Works in the query's own type, as models do, on a GPU if there is one; sums and
softmax in float32.
"""

import sys

try:
    import torch
except ImportError:
    sys.exit("torch_decode.py needs Torch: pip install torch")

import mlacheck

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def gather(case, name, request, count):
    """Entries 0 to count - 1 of a request, from its pages."""
    page = case.problem["block_size"]
    position = torch.arange(count)
    block = case.torch("block_table")[request][position // page].long()
    return case.torch(name)[block, position % page].to(DEVICE)


def attend(case, q, k, v, sink):
    """One row: q[H, D], k[KVH, n, D], v[KVH, n, Dv] -> out[H, Dv], lse[H]."""
    group = len(q) // len(k)
    k, v = k.repeat_interleave(group, 0), v.repeat_interleave(group, 0)
    score = torch.einsum("hd,hnd->hn", q.float(), k.float())
    score = score * case.problem["scale"]
    cap = case.problem.get("logits_soft_cap", 0)
    if cap:
        score = cap * torch.tanh(score / cap)
    largest = score.amax(1)
    p = torch.exp(score - largest[:, None])
    total = p.sum(1)
    lse = largest + torch.log(total)
    out = torch.einsum("hn,hnd->hd", p.to(v.dtype).float(), v.float())
    out = out / total[:, None]
    if sink is not None:
        out = out * torch.sigmoid(lse - sink)[:, None]
    return out, lse


def decode(case):
    if case.dtype("q") not in ("f32", "f16", "bf16"):
        raise mlacheck.Unsupported("q_dtype: f32, f16 and bf16 only")
    if "block_table" not in case or case.dtype("cache") != case.dtype("q"):
        raise mlacheck.Unsupported("cache_format: pages of q's type only")
    q, lens, starts = case.torch("q", DEVICE), case["seq_lens"], case["query_start_loc"]
    sink = case.torch("sink", DEVICE) if "sink" in case else None
    out = torch.zeros(case.shape("out"), device=DEVICE)
    lse = torch.full(out.shape[:2], -torch.inf, device=DEVICE)
    for request, length in enumerate(lens.tolist()):
        first, end = int(starts[request]), int(starts[request + 1])
        k = gather(case, "cache", request, length)
        if "separate_v" in case.flags:
            k = k.transpose(0, 1)
            v = gather(case, "v_cache", request, length).transpose(0, 1)
        else:
            k = k[None]
            v = k[:, :, : case.size("v_dim")]
        for row in range(first, end):
            seen = length
            if "causal" in case.flags:
                seen = length - (end - first) + (row - first) + 1
            if seen > 0:
                out[row], lse[row] = attend(case, q[row], k[:, :seen], v[:, :seen], sink)
    if "lse_base2" in case.flags:
        lse = lse / torch.log(torch.tensor(2.0))
    return {"out": out, "lse": lse}


if __name__ == "__main__":
    verdict = mlacheck.judge(decode, op=sys.argv[1:] or "decode")
    print(verdict)
    sys.exit(verdict.exit_code)
