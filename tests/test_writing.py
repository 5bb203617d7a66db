"""Writing: what stands at a path decides how it is written; rights are kept, and nothing is written in halves."""

import io
import os
import socket
import stat
import struct
import sys
import threading
import traceback
from contextlib import contextmanager

import pytest

from calibrant.files.writing import check_output, whole_file, write_text

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs Unix")


def mode(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


@contextmanager
def read_from(pipe):
    """What a reader at the other end of a pipe gets."""
    contents = []
    reader = threading.Thread(target=lambda: contents.append(pipe.read_bytes()))
    reader.start()
    yield contents
    reader.join(10)


@contextmanager
def umask(mask):
    before = os.umask(mask)
    yield
    os.umask(before)


def device(path, major, minor):
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(major, minor))
        with open(path, "wb"):
            return path
    except PermissionError:
        pytest.skip("no devices can be made here")


def test_a_link_stays_and_its_target_is_written(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "page.html").write_text("old")
    (tmp_path / "link.html").symlink_to("real/page.html")
    (tmp_path / "second.html").symlink_to(tmp_path / "link.html")
    write_text(tmp_path / "second.html", "new")
    assert (tmp_path / "link.html").is_symlink()
    assert (tmp_path / "second.html").is_symlink()
    assert (tmp_path / "real" / "page.html").read_text() == "new"
    assert os.listdir(tmp_path / "real") == ["page.html"]


def test_a_link_to_nothing_yet_makes_its_target(tmp_path):
    (tmp_path / "link.html").symlink_to("page.html")
    write_text(tmp_path / "link.html", "new")
    assert (tmp_path / "link.html").is_symlink()
    assert (tmp_path / "page.html").read_text() == "new"


def test_links_in_a_ring_are_refused(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links"):
        write_text(tmp_path / "a", "new")


@pytest.mark.parametrize("rights", [0o600, 0o640, 0o664, 0o755])
def test_a_file_keeps_its_rights(tmp_path, rights):
    path = tmp_path / "map.json"
    path.write_text("old")
    path.chmod(rights)
    with umask(0o022):
        write_text(path, "new")
    assert (path.read_text(), mode(path)) == ("new", rights)


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_a_new_file_has_the_rights_that_the_user_gives_to_new_files(tmp_path, mask):
    with umask(mask):
        write_text(tmp_path / "map.json", "new")
    assert mode(tmp_path / "map.json") == 0o666 & ~mask


def test_rights_are_never_wider_on_the_way(tmp_path):
    path = tmp_path / "map.json"
    path.write_text("old")
    path.chmod(0o600)
    with umask(0o000), whole_file(path) as file:
        file.write(b"new")
        assert {mode(tmp_path / name) for name in os.listdir(tmp_path)} == {0o600}


def test_nobody_else_can_open_a_private_file_before_it_is_private(tmp_path, monkeypatch):
    path = tmp_path / "map.json"
    path.write_text("old")
    path.chmod(0o600)
    seen, real = [], os.fchmod

    def fchmod(handle, rights):
        seen.append(stat.S_IMODE(os.fstat(handle).st_mode))
        real(handle, rights)

    monkeypatch.setattr(os, "fchmod", fchmod)
    with umask(0o000):
        write_text(path, "new")
    assert seen == [0o600]


def give_rights_to_a_user(path, attribute):
    """An access control list in the binary form of Linux: owner rw, user 1234 rw, group none, mask rw, others none."""
    entries = [(1, 6, -1), (2, 6, 1234), (4, 0, -1), (16, 6, -1), (32, 0, -1)]
    rights = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
    try:
        os.setxattr(path, attribute, rights)
    except (OSError, AttributeError):
        pytest.skip("this file system has no access control lists")
    return rights


def test_rights_of_single_users_are_kept(tmp_path):
    path = tmp_path / "map.json"
    path.write_text("old")
    rights = give_rights_to_a_user(path, "system.posix_acl_access")
    write_text(path, "new")
    assert os.getxattr(path, "system.posix_acl_access") == rights


def test_a_folder_hands_no_rights_down_to_a_file_that_had_none_of_them(tmp_path):
    path = tmp_path / "map.json"
    path.write_text("old")
    path.chmod(0o640)
    give_rights_to_a_user(tmp_path, "system.posix_acl_default")
    write_text(path, "new")
    assert (path.read_text(), mode(path)) == ("new", 0o640)
    assert "system.posix_acl_access" not in os.listxattr(path)


def test_a_file_whose_rights_of_single_users_cannot_be_kept_is_left_as_it_is(tmp_path, monkeypatch):
    path = tmp_path / "map.json"
    path.write_text("old")
    give_rights_to_a_user(path, "system.posix_acl_access")

    def refuse(handle, *_):
        raise OSError(95, "Operation not supported", handle)

    monkeypatch.setattr(os, "setxattr", refuse)
    with pytest.raises(OSError, match="has rights of single users") as caught:
        write_text(path, "new")
    assert caught.value.filename == str(path)
    assert (path.read_text(), os.listdir(tmp_path)) == ("old", ["map.json"])


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may give files away")
def test_a_file_keeps_its_owner(tmp_path):
    path = tmp_path / "map.json"
    path.write_text("old")
    os.chown(path, 1234, 2345)
    write_text(path, "new")
    assert (path.stat().st_uid, path.stat().st_gid, path.read_text()) == (1234, 2345, "new")


def test_a_file_whose_owner_cannot_be_kept_is_left_as_it_is(tmp_path, monkeypatch):
    path = tmp_path / "map.json"
    path.write_text("old")
    real = os.stat

    def of_another_user(name, **options):
        values = list(real(name, **options))
        values[4] += 1
        return os.stat_result(values)

    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "fchown", refuse)
    with monkeypatch.context() as patched:
        patched.setattr(os, "stat", of_another_user)
        with pytest.raises(PermissionError, match="belongs to another user or group") as caught:
            write_text(path, "new")
    assert caught.value.filename == str(path)
    assert (path.read_text(), os.listdir(tmp_path)) == ("old", ["map.json"])


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everything")
def test_a_file_that_may_not_be_written_is_refused(tmp_path):
    path = tmp_path / "map.json"
    path.write_text("old")
    path.chmod(0o400)
    with pytest.raises(PermissionError, match=r"map\.json"):
        write_text(path, "new")
    assert path.read_text() == "old"


def test_a_pipe_gets_the_content_and_stays_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with read_from(pipe) as contents:
        write_text(pipe, "new" * 100_000)
    assert contents == [b"new" * 100_000]
    assert stat.S_ISFIFO(os.lstat(pipe).st_mode)


def test_a_pipe_gets_nothing_where_the_content_fails(tmp_path):
    os.mkfifo(tmp_path / "pipe")

    def fail():
        with whole_file(tmp_path / "pipe") as file:
            file.write(b"half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):  # and does not wait for a reader
        fail()


def test_a_device_is_written_through_and_stays_a_device(tmp_path):
    null = device(tmp_path / "null", 1, 3)
    write_text(null, "new")
    assert stat.S_ISCHR(os.lstat(null).st_mode)


def test_a_device_that_is_full_is_named(tmp_path):
    full = device(tmp_path / "full", 1, 7)
    with pytest.raises(OSError, match="No space left on device") as caught:
        write_text(full, "new")
    assert caught.value.filename == str(full)


def test_a_write_that_failed_holds_nothing_that_cannot_be_collected(tmp_path):
    """A buffer of which a view is open cannot be closed: a warning of Python 3.13, a crash of Python 3.12.1."""
    with pytest.raises(OSError, match="No space left on device") as caught:
        write_text(device(tmp_path / "full", 1, 7), "new")
    frames = [frame.f_locals.values() for frame, _ in traceback.walk_tb(caught.tb)]
    buffers = [value for values in frames for value in values if isinstance(value, io.BytesIO)]
    assert buffers
    for buffer in buffers:
        buffer.close()


def test_a_directory_and_a_socket_are_refused(tmp_path):
    with pytest.raises(IsADirectoryError, match="is a directory; name a file in it"):
        write_text(tmp_path, "new")
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(path))
        with pytest.raises(OSError, match="is a socket"):
            write_text(path, "new")
    assert stat.S_ISSOCK(os.lstat(path).st_mode)


@pytest.mark.parametrize("name", ["a\0b", "a\ud800b"])
def test_names_that_no_file_can_have_are_refused(tmp_path, name):
    with pytest.raises(OSError, match="is no name that a file can have"):
        write_text(tmp_path / name, "new")


def test_a_name_of_the_greatest_length_can_be_written(tmp_path):
    write_text(tmp_path / ("ü" * 127), "new")
    assert (tmp_path / ("ü" * 127)).read_text() == "new"


def test_a_dash_is_standard_output_as_text_and_a_name_as_a_path(tmp_path, monkeypatch, capsysbinary):
    monkeypatch.chdir(tmp_path)
    print("before")
    write_text("-", "content\n")
    assert capsysbinary.readouterr().out == b"before\ncontent\n"
    write_text(tmp_path / "-", "content")
    assert os.listdir(tmp_path) == ["-"]


def test_what_cannot_be_written_is_known_before(tmp_path):
    assert check_output("-") is None
    assert check_output(tmp_path / "new.html") is None
    with pytest.raises(FileNotFoundError, match="is no folder; make it first"):
        check_output(tmp_path / "absent" / "new.html")
    with pytest.raises(IsADirectoryError):
        check_output(tmp_path)
