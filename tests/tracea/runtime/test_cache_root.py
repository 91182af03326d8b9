from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from xyntra_ep.tracea.runtime.cache_root import atomic_write, open_root


def test_a_new_root_is_its_owners_alone(tmp_path: Path) -> None:
    root = open_root(tmp_path / "a" / "b")
    assert root.path == tmp_path / "a" / "b" and root.reason == ""
    for folder in (root.path, root.kernels, root.plans, root.tmp):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert open_root(root.path) == root


def test_a_root_that_others_may_write_is_not_used(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    root = open_root(tmp_path)
    assert root.path != tmp_path
    assert f"{tmp_path} can be written by others (chmod 700 repairs it); using {root.path}" == root.reason
    assert stat.S_IMODE(root.path.stat().st_mode) == 0o700


def test_a_folder_in_it_that_others_may_write_is_not_used(tmp_path: Path) -> None:
    root = open_root(tmp_path / "root")
    root.kernels.chmod(0o770)
    assert "has kernels/, which can be written by others" in open_root(root.path).reason


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_foreign_root_is_not_used(tmp_path: Path) -> None:
    os.chown(tmp_path, 12345, -1)
    root = open_root(tmp_path)
    assert root.path != tmp_path and "belongs to user 12345" in root.reason


def test_a_foreign_root_as_another_user_sees_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uid = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: uid + 1)
    assert f"belongs to user {uid}" in open_root(tmp_path).reason


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        root = open_root(path)
        assert root.reason and root.kernels.is_dir()


def test_a_read_only_root_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.access
    # as superuser the real call says yes to everything
    monkeypatch.setattr(os, "access", lambda path, mode: real(path, mode) and not mode & os.W_OK)
    assert "is not writable" in open_root(tmp_path / "root").reason


def test_a_noexec_root_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.statvfs(tmp_path)
    fields = list(real)
    fields[8] |= os.ST_NOEXEC
    monkeypatch.setattr(os, "statvfs", lambda path: os.statvfs_result(fields))
    assert "is mounted noexec" in open_root(tmp_path / "root").reason


def test_the_private_root_goes_with_the_process_but_not_with_its_children(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    program = (
        "import os, sys; from pathlib import Path\n"
        "from xyntra_ep.tracea.runtime.cache_root import open_root\n"
        "root = open_root(Path(sys.argv[1]))\n"
        "assert open_root(Path(sys.argv[1])).path == root.path\n"
        "pid = os.fork()\n"
        "if pid == 0: sys.exit(0)\n"
        "os.waitpid(pid, 0)\n"
        "assert root.kernels.is_dir()\n"
        "print(root.path)\n"
    )
    environment = {**os.environ, "XYNTRA_REGISTER": "0"}
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, str(tmp_path / "file")],
        capture_output=True, text=True, check=True, env=environment,
    )  # fmt: skip
    assert not Path(ran.stdout.strip()).exists()


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = open_root(tmp_path / "root")
    target = root.plans / "x.plan"
    atomic_write(target, b"old", root.tmp)

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        atomic_write(target, b"new", root.tmp)
    assert target.read_bytes() == b"old"
    assert list(root.tmp.iterdir()) == []
