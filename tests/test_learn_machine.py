"""Test that the settings for PyTorch do not override the user's environment variables."""

import os

import pytest

from vidrio.learn.machine import settle


def test_settings_of_the_process_leave_the_users_own_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY", "GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.delenv(name, raising=False)
    settle()
    assert (os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"], os.environ["GOMP_SPINCOUNT"]) == ("64", "1000")
    assert os.environ["LRU_CACHE_CAPACITY"] == "64"
    monkeypatch.setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "1024")
    monkeypatch.setenv("OMP_WAIT_POLICY", "active")
    monkeypatch.delenv("GOMP_SPINCOUNT")
    settle()
    assert os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] == "1024"
    assert "GOMP_SPINCOUNT" not in os.environ
