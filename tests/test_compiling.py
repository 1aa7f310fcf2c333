import pytest

from vocabfold import compiling


@pytest.mark.parametrize("decorate", [compiling.kernel, compiling.inlined])
def test_without_a_place_for_the_cache_loops_are_compiled_all_the_same(monkeypatch, decorate):
    def njit(cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr(compiling, "njit", njit)
    assert decorate(abs)(-3) == 3
