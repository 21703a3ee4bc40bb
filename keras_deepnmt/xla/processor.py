"""What the processor of this machine computes fast."""

import functools
from pathlib import Path

_DESCRIPTION = Path("/proc/cpuinfo")
# How Linux names the instructions: AVX512-BF16, AMX, and those of Arm.
_BFLOAT16_PRODUCTS = {"avx512_bf16", "amx_bf16", "bf16"}


@functools.cache
def bfloat16_instructions() -> tuple[str, ...]:
    """Returns the names of the processor's instructions for bfloat16.

    There are none where the processor cannot be asked.
    """
    try:
        text = _DESCRIPTION.read_text(encoding="utf-8")
    except OSError:
        return ()
    found = set()
    for line in text.splitlines():
        if line.startswith(("flags", "Features")):
            found |= _BFLOAT16_PRODUCTS & set(line.partition(":")[2].split())
    return tuple(sorted(found))


def multiplies_bfloat16() -> bool:
    """Whether the processor has instructions for products in bfloat16.

    Without them a product in bfloat16 takes as long as one in float32, or
    longer.
    """
    return bool(bfloat16_instructions())
