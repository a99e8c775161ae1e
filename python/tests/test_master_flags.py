"""Flags of mooncake_master that reach beyond the state machine: log, configuration file, metadata server."""

import json
import re
import subprocess
import urllib.error
import urllib.request

import pytest

from waiting import HANG_LIMIT_S, wait_until

INFO = "clients on port"  # Of the line that each start writes.
WARNING = "--enable_ha"  # Of the line that says what that flag lacks.


def said(master) -> str:
    """All that it wrote to standard error from its start to its end."""
    assert master.stop() == 0
    return master.log.read_text()


def test_log_dir_names_the_files_as_glog_does(start_master, tmp_path):
    folder = tmp_path / "logs"
    master = start_master(f"--log_dir={folder}", "--enable_ha")
    link = folder / "mooncake_master.INFO"
    first = str(link.readlink())
    assert re.fullmatch(rf"mooncake_master\.INFO\.\d{{8}}-\d{{6}}\.{master.process.pid}", first)
    assert said(master) == "", "only errors go to standard error, too"
    assert INFO in link.read_text() and WARNING in link.read_text()
    master.start()
    assert str(link.readlink()).endswith(f".{master.process.pid}")
    assert {path.name for path in folder.iterdir()} == {link.name, first, str(link.readlink())}


@pytest.mark.parametrize(
    ("flags", "shown"),
    [
        (["--stderrthreshold=1"], {WARNING}),
        (["--stderrthreshold=0"], {WARNING, INFO}),
        (["--alsologtostderr"], {WARNING, INFO}),
        (["--minloglevel=1", "--alsologtostderr"], {WARNING}),
    ],
)
def test_standard_error_gets_what_is_asked_for_beside_the_file(start_master, tmp_path, flags, shown):
    master = start_master(f"--log_dir={tmp_path}", "--enable_ha", *flags)
    standard_error = said(master)
    assert {words for words in (WARNING, INFO) if words in standard_error} == shown
    in_file = (tmp_path / "mooncake_master.INFO").read_text()
    assert WARNING in in_file
    assert (INFO in in_file) == ("--minloglevel=1" not in flags)


@pytest.mark.parametrize(
    ("flags", "shown"),
    [
        ([], {WARNING, INFO}),
        (["--minloglevel=1"], {WARNING}),
        (["--minloglevel=2"], set()),
        (["--stderrthreshold=1"], {WARNING}),
    ],
)
def test_without_a_folder_the_log_goes_to_standard_error(start_master, flags, shown):
    master = start_master("--enable_ha", *flags)
    standard_error = said(master)
    assert {words for words in (WARNING, INFO) if words in standard_error} == shown


def test_logtostderr_overrides_the_folder(start_master, tmp_path):
    folder = tmp_path / "logs"
    master = start_master(f"--log_dir={folder}", "--logtostderr", "--enable_ha")
    standard_error = said(master)
    assert INFO in standard_error and WARNING in standard_error
    assert not folder.exists()


def test_a_log_folder_that_cannot_be_made_is_named(scripts):
    ended = subprocess.run(
        [scripts / "mooncake_master", "--log_dir=/dev/null/logs"],
        capture_output=True,
        text=True,
        timeout=HANG_LIMIT_S,
        check=False,
    )
    assert ended.returncode == 1
    assert "/dev/null/logs" in ended.stderr and "--log_dir" in ended.stderr


@pytest.mark.parametrize("kind", ["yaml", "json"])
def test_flags_win_over_the_configuration_file(start_master, start_local, tmp_path, kind):
    settings = {"default_kv_lease_ttl": "600s", "eviction_policy": "lru", "client_live_ttl_sec": 600}
    path = tmp_path / f"master.{kind}"
    lines = [f"{name}: {value}" for name, value in settings.items()]
    path.write_text(json.dumps(settings) if kind == "json" else "\n".join(lines))
    by_file = start_master(f"--config_path={path}")
    by_flag = start_master(f"--config_path={path}", "--default_kv_lease_ttl=1")
    for master, removed in ((by_file, -706), (by_flag, 0)):
        store = start_local(master.address)
        assert store.put("key", b"value") == 0
        assert store.get("key") == b"value"
        wait_until(lambda store=store, removed=removed: store.remove("key") == removed, "the lease is as configured")


@pytest.mark.parametrize("line", ["client_live_ttl_sec: never", "eviction_policy: fifo"])
def test_a_wrong_value_of_the_configuration_file_is_named(scripts, tmp_path, line):
    path = tmp_path / "master.yaml"
    path.write_text(line)
    ended = subprocess.run(
        [scripts / "mooncake_master", f"--config_path={path}"],
        capture_output=True,
        text=True,
        timeout=HANG_LIMIT_S,
        check=False,
    )
    assert ended.returncode == 1
    assert line.partition(":")[0] in ended.stderr and str(path) in ended.stderr


def test_an_unknown_name_of_the_configuration_file_is_said_once(start_master, tmp_path):
    path = tmp_path / "master.yaml"
    path.write_text("no_such_name: 1")
    assert said(start_master(f"--config_path={path}")).count("no_such_name") == 1


@pytest.mark.parametrize("cleanup", [True, False])
def test_what_a_lost_client_published_goes_with_the_cleanup_only(start_master, start_store, cleanup):
    flags = ["--enable_http_metadata_server", "--client_ttl=3"]
    master = start_master(*flags, *(["--enable_metadata_cleanup_on_timeout"] if cleanup else []))
    lost = start_store(master.address, metadata=master.metadata_url)
    name = lost.hostname()

    def published() -> bool:
        try:
            with urllib.request.urlopen(f"{master.metadata_url}?key=mooncake/ram/{name}", timeout=HANG_LIMIT_S):
                return True
        except urllib.error.HTTPError as error:
            assert error.code == 404
            return False

    wait_until(published, "the client publishes its descriptor")
    lost.kill()
    wait_until(lambda: name not in master.http("/get_all_segments")[1], "the master drops the client")
    if cleanup:
        wait_until(lambda: not published(), "the descriptor is removed")
    else:
        assert published()
