"""Benchmarks in their small form: each runs, and tries what it is to try."""

import doctest
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HAS_TORCH = all(map(find_spec, ("torch", "optuna")))
pytestmark = pytest.mark.tools


def run(*command):
    result = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_the_small_benchmark_runs_without_the_rivals():
    out = run("-m", "benchmarks.speed.run", "--small", "--parts", "size,growth,criteo,prior")
    assert out.count("part=criteo") == 20
    assert out.count("part=prior") == 2


def test_the_small_benchmark_of_the_estimator_runs():
    out = run("-m", "benchmarks.speed.estimator", "--small", "--kinds", "integers")
    assert out.count("n_unseen=25620") == 2
    assert out.count("auc=0.6") == 2


def test_the_small_benchmark_of_methods_runs():
    out = run("-m", "benchmarks.methods.run", "--small")
    assert out.count("part=shaped") == 16
    assert out.count("not_run") == 1


def test_the_examples_of_paired_differences_hold(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    tried = doctest.testmod(import_module("benchmarks.figures.paired"))
    assert (tried.failed, tried.attempted > 5) == (0, True)


def test_the_small_figure_of_the_paper_runs():
    out = run("-m", "benchmarks.figures.fig_mi_train", "--small")
    assert out.count("name=Exact") == 6
    assert out.count("name=Submodular seed") == 6


def test_the_small_figure_of_models_runs():
    lines = run("-m", "benchmarks.figures.fig_logloss", "--small").splitlines()
    for model in ["logistic regression", "LightGBM", *["network"] * HAS_TORCH]:
        told = [line for line in lines if f"model={model} " in line and " test=" in line]
        assert len(told) == len(lines) // 3
        assert "recipe=model" in told[0]


def test_the_small_benchmark_of_peers_runs():
    lines = run("-m", "benchmarks.peers.run", "--small", "--workloads", "a").splitlines()
    told = [line for line in lines if "workload=a peer=" in line and " loss=" in line and " gain=" in line]
    for peer in ("vocabfold, information", "vocabfold, model", "scikit-learn entropy tree", "hashing"):
        assert any(f"peer={peer}" in line for line in told)
    assert all("is not installed" in line for line in lines if "not_run" in line)


def test_a_peer_that_takes_too_long_is_stopped_and_said_so(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(ROOT)
    monkeypatch.chdir(ROOT)
    run_of_peers = import_module("benchmarks.peers.run")
    assert run_of_peers.in_a_process("hashing with pandas", tmp_path, 0.01) == {
        "not_run": "not finished within 0.01 s"
    }
    broken = run_of_peers.in_a_process("hashing with pandas", tmp_path, 60)  # no rows there
    assert broken["not_run"].startswith("its process ended with code 1: FileNotFoundError")
    assert str(tmp_path) not in broken["not_run"]


def test_the_small_benchmark_of_growth_runs():
    assert run("-m", "benchmarks.growth.run", "--small").count("step=") == 20


def test_the_small_codebook_benchmark_runs():
    out = run("-m", "benchmarks.codebook.run", "--small")
    assert out.count("n_values=45649") == 11


def test_the_small_leakage_benchmark_runs():
    out = run("-m", "benchmarks.leakage.run", "--small", "--parts", "generated,noise,older")
    assert "recipe=model, naive" in out
    assert "recipe=model, noise column added" in out


def test_the_small_benchmark_of_orders_runs():
    lines = run("-m", "benchmarks.leakage.order", "--small").splitlines()
    below = [line for line in lines if "order=vocabfold side=below" in line]
    assert len(below) == 3
    assert all(" followed=0 " in line for line in below)
    assert sum("seeds=2 order=vocabfold" in line for line in lines) == 6


def test_the_small_benchmark_of_identified_values_runs():
    out = run("-m", "benchmarks.leakage.identified", "--small")
    assert out.count("ids=product out of fold, too") == 3


def test_the_small_benchmark_of_unseen_values_runs():
    out = run("-m", "benchmarks.leakage.unseen", "--small")
    assert out.count("seeds=1 model=LightGBM unseen=own") == 2


def test_the_small_transform_benchmark_runs():
    out = run("-m", "benchmarks.transform.run", "--small", "--parts", "check,commands")
    assert "n_checked=1350000 n_wrong=0" in out
