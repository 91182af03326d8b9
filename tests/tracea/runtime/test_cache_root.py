from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from xyntra_ep import knobs
from xyntra_ep.tracea.runtime import cache_root
from xyntra_ep.tracea.runtime.cache_root import atomic_write, look_at, open_root


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


def test_looking_makes_nothing(tmp_path: Path) -> None:
    asked = tmp_path / "a" / "b"
    found = look_at(asked)
    assert (found.asked, found.reason) == (asked, "") and found.path != asked and not (tmp_path / "a").exists()
    assert look_at(open_root(asked).path) == open_root(asked)
    (tmp_path / "file").touch()
    assert "cannot be used (Not a directory)" in look_at(tmp_path / "file" / "b").reason
    assert "is not a directory" in look_at(tmp_path / "file").reason
    (wide := tmp_path / "wide").mkdir()
    wide.chmod(0o777)
    assert "can be written by others (chmod 700 repairs it)" in look_at(wide).reason
    assert "is not safe there" in look_at(wide / "b").reason and not list(wide.iterdir())


@pytest.mark.parametrize("folder", [".", "root/kernels", "root/plans", "root/tmp"])
def test_where_it_is_counts(tmp_path: Path, folder: str) -> None:
    """Whoever may write to a folder further up can put another one in its place."""
    asked = tmp_path / "a" / "root"
    assert open_root(asked).reason == ""
    (tmp_path / "a" / folder).chmod(0o777)
    reason = open_root(asked).reason
    if folder == ".":
        assert f"is not safe there: {tmp_path / 'a'}: others may write to it (mode 777)" in reason
    else:
        assert f"has {folder.removeprefix('root/')}/, which can be written by others" in reason
    (tmp_path / "a" / folder).chmod(0o1777 if folder == "." else 0o700)
    assert open_root(asked).reason == "", "the sticky bit keeps others' hands off what is not theirs"


def test_a_link_counts_as_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "open" / "root")
    (tmp_path / "open" / "root").mkdir(mode=0o700)
    assert open_root(tmp_path / "link").reason == ""
    (tmp_path / "open").chmod(0o777)
    assert f"is not safe there: {tmp_path / 'open'}: others may write to it (mode 777)" in open_root(tmp_path / "link").reason


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a link away")
def test_a_foreign_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "root")
    os.chown(tmp_path / "link", 12345, -1, follow_symlinks=False)
    assert f"{tmp_path / 'link'}: is a link of user 12345" in open_root(tmp_path / "link").reason


def test_a_new_root_is_its_owners_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        assert open_root(tmp_path / "a" / "b" / "root").reason == ""
    finally:
        os.umask(before)
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o700 for path in tmp_path.rglob("*"))


def test_a_private_root_is_where_it_is_safe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not where temporary files go, if others may exchange its folders there; and nothing is left there."""
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "safe").mkdir()
    monkeypatch.setattr(cache_root, "_private", {})
    monkeypatch.setattr(cache_root, "_TEMPORARY", (str(tmp_path / "none"), str(tmp_path / "safe")))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "open"))
    root = open_root(tmp_path / "open" / "root")
    assert root.path.parent == tmp_path / "safe" and root.kernels.is_dir()
    assert [path.name for path in (tmp_path / "open").iterdir()] == ["root"]
    assert open_root(tmp_path / "open" / "root").path == root.path, "one for a process"
    shutil.rmtree(root.path)


def test_without_any_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_root, "_private", {})
    monkeypatch.setattr(cache_root, "_TEMPORARY", ())
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    (tmp_path / "file").write_text("")
    with pytest.raises(FileNotFoundError):
        open_root(tmp_path / "file")


def test_a_home_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A container's user may have no home, or one that cannot be written, and no line in /etc/passwd."""
    monkeypatch.delenv("XYNTRA_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    (tmp_path / "file").write_text("")
    for home in ("/proc", str(tmp_path / "file")):
        monkeypatch.setenv("HOME", home)
        root = open_root(knobs.current().cache_root)
        assert root.reason.startswith(f"{home}/.cache/xyntra cannot be used (") and root.kernels.is_dir()


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
    found = look_at(tmp_path / "root")
    assert found.read_only and found.path == tmp_path / "root" and not found.reason, "but it can be looked at"
    (tmp_path / "root" / "plans").chmod(0o777)
    assert look_at(tmp_path / "root").reason and not look_at(tmp_path / "root").read_only


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
