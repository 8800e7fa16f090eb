"""Machines of four kinds as `describe_host` describes them, and the variants of a test on them."""

from typing import Any


def host(cpu: str, isa: str, **changes: Any) -> dict[str, Any]:
    """A machine without a GPU that has these instruction sets."""
    common = {"cores": 2, "memory_bytes": 2**33, "gpu": None, "driver": None, "python": "3.11.9"}
    return {"cpu": cpu, "isa": isa.split(), **common, **changes}


AVX2 = host("AMD EPYC 7B13 (family 25 model 1)", "avx2")
AVX512 = host("Intel(R) Xeon(R) Gold 6248 (family 6 model 85)", "avx2 avx512f avx512_vnni")
AMX = host(
    "Intel(R) Xeon(R) Platinum 8481C (family 6 model 143)",
    "avx2 avx512f avx512_vnni avx_vnni avx512_bf16 avx512_fp16 amx_tile amx_bf16 amx_int8",
)
# Neoverse V1, as in Graviton3
ARM = host("aarch64", "asimd asimdhp asimddp i8mm bf16 sve")
HOSTS = {"AVX2": AVX2, "AVX-512": AVX512, "AMX": AMX, "ARM": ARM}
