import os
import signal
import threading
import time

import pytest
from numba.core.compiler_lock import global_compiler_lock

from vocabfold.support import kernels


@pytest.mark.parametrize("decorate", [kernels.kernel, kernels.inlined])
def test_without_a_place_for_the_cache_loops_are_compiled_all_the_same(monkeypatch, decorate):
    def njit(cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr(kernels, "njit", njit)
    assert decorate(abs)(-3) == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_process_that_is_forked_while_another_thread_compiles_can_compile():
    begun = threading.Event()

    def compile_slowly():
        with global_compiler_lock:
            begun.set()
            time.sleep(0.3)

    other = threading.Thread(target=compile_slowly)
    other.start()
    assert begun.wait(10)
    child = os.fork()
    if not child:
        signal.alarm(10)  # or it would wait for a thread that it does not have
        with global_compiler_lock:
            os._exit(0)
    other.join()
    assert os.waitpid(child, 0)[1] == 0
