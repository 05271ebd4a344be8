"""The cleanup of an NVFlare client after its results: NVFLARE_CLIENT_MEMORY_GC_ROUNDS and NVFLARE_CUDA_EMPTY_CACHE.

NVFlare documents both variables. Until 2.8 it reads them in external trainers only, and from 2.9 on nowhere.
A recipe's `client_memory_gc_rounds` reaches the trainer. The client's job gets the number from its executor.
Where NVFlare cleans up by itself, nothing is done for the result.
"""

from __future__ import annotations

import gc
import os
import sys

from ._settings import cuda_cache_wanted, gc_rounds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._native import Shim


class ResultCleanup:
    """Cleans up after every so many results that this process has sent."""

    def __init__(self, shim: Shim, rounds: int, with_cuda_cache: bool) -> None:
        self._shim, self._rounds, self._with_cuda_cache = shim, rounds, with_cuda_cache
        self._results = 0
        self._is_clean = False

    def note_cleanup_of_nvflare(self) -> None:
        self._is_clean = True

    def result_sent(self) -> None:
        self._results += 1
        is_clean, self._is_clean = self._is_clean, False
        if self._results % self._rounds == 0 and not is_clean:
            gc.collect()
            self._shim.trim()  # the library marks before_trim and after_trim
            if self._with_cuda_cache:
                empty_cuda_cache()


def rounds_of_executor(components: Any) -> int:
    """The number that a recipe gives to an executor of NVFlare among the components of a client's job; 0: none."""
    executor: Any = getattr(sys.modules.get("nvflare.apis.executor"), "Executor", None)
    if executor is None:
        return 0
    numbers = [vars(part).get("_memory_gc_rounds") for part in components if isinstance(part, executor)]
    return min((number for number in numbers if type(number) is int and number > 0), default=0)


def result_cleanup(shim: Shim, rounds: int = 0) -> ResultCleanup | None:
    """The cleanup of this process, or None if the user asks for none. The variable wins over `rounds`."""
    rounds = gc_rounds(os.environ, rounds)
    if rounds == 0:
        return None
    from ._collector import watch

    watch()  # so that its collections are counted
    return ResultCleanup(shim, rounds, cuda_cache_wanted(os.environ))


def empty_cuda_cache() -> None:
    """Empty PyTorch's CUDA cache, if the program has one. Never imports PyTorch or initializes CUDA."""
    torch = sys.modules.get("torch")
    try:
        if torch is not None and torch.cuda.is_initialized():
            torch.cuda.empty_cache()
    except Exception:  # an error of the driver must not end the round
        pass
