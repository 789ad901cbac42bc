"""Downloads: the right file, whatever the server does on the way."""

import base64
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
if not (ROOT / "experiments" / "deep_ensembles" / "downloads").is_dir():
    pytest.skip("the experiments are not part of this copy", allow_module_level=True)
sys.path.insert(0, str(ROOT))

from experiments.deep_ensembles.downloads import (  # noqa: E402
    DownloadError,
    Source,
    asking,
    cache_folder,
    fetch,
    pypi,
    unpacked,
)
from experiments.deep_ensembles.downloads.errors import Unreachable  # noqa: E402

import deep_packages  # noqa: E402
from deep_packages import GOOD, SDIST, WHEEL, installable_deb, put_by_hand, serving, wheel  # noqa: E402

pytestmark = pytest.mark.deep

BYTES = random.Random(0).randbytes(1_000_000)


def toy(*arguments, **options):
    return Source(**deep_packages.toy(*arguments, **options))


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HULLCAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(asking, "PAUSE", 0.01)
    return tmp_path / "cache"


@pytest.fixture
def server(cache, monkeypatch):
    with serving() as server:
        monkeypatch.setenv("PIP_INDEX_URL", f"{server.url}/simple")
        monkeypatch.setenv("PIP_EXTRA_INDEX_URL", f"{server.url}/nothing")
        yield server


def offer(server, content, filename=SDIST, fragment=""):
    """Put a file on the server, and a page of the index that leads to it."""
    link = f'<html><a href="../../files/{filename}{fragment}">{filename}</a></html>'
    server.pages["/simple/toy/"] = ("text/html", link.encode())
    server.pages[f"/files/{filename}"] = ("application/octet-stream", content)


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"HULLCAL_CACHE": "/mine", "XDG_CACHE_HOME": "/xdg"}, "/mine"),
        ("linux", {"XDG_CACHE_HOME": "/xdg"}, "/xdg/hullcal"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, "/home/me/.cache/hullcal"),
        ("linux", {}, "/home/me/.cache/hullcal"),
        ("darwin", {"XDG_CACHE_HOME": "/xdg"}, "/home/me/Library/Caches/hullcal"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/hullcal/Cache"),
    ],
)
@pytest.mark.skipif(os.name != "posix", reason="paths are spelled as on Linux")
def test_the_cache_stands_where_the_system_wants_it(platform, variables, expected, monkeypatch):
    for name in ("HULLCAL_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in (variables | {"HOME": "/home/me"}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert cache_folder() == Path(expected)


def test_a_cache_that_cannot_be_written_to_is_said(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("HULLCAL_CACHE", str(tmp_path / "file"))
    with pytest.raises(DownloadError, match="Set HULLCAL_CACHE"):
        unpacked("mobilenet_v2")


def test_a_file_is_brought_once(server):
    offer(server, BYTES)
    assert fetch(toy(BYTES)).read_bytes() == BYTES
    assert fetch(toy(BYTES)).read_bytes() == BYTES
    assert server.files_asked == [None]


def test_an_index_may_answer_in_json(server):
    offer(server, BYTES)
    digest = {"sha256": toy(BYTES).sha256}
    entry = {"filename": SDIST, "url": f"{server.url}/files/{SDIST}", "hashes": digest}
    page = json.dumps({"files": [entry]}).encode()
    server.pages["/simple/toy/"] = ("application/vnd.pypi.simple.v1+json", page)
    assert fetch(toy(BYTES)).read_bytes() == BYTES


def test_npm_s_registry_leads_to_a_tarball(server, monkeypatch):
    offer(server, BYTES)
    monkeypatch.setenv("npm_config_registry", f"{server.url}/npm/")
    page = {"dist": {"tarball": f"{server.url}/files/{SDIST}"}}
    server.pages["/npm/toy/1.0"] = ("application/json", json.dumps(page).encode())
    assert fetch(toy(BYTES, registry="npm")).read_bytes() == BYTES


def test_the_password_of_an_index_is_sent_but_never_shown(server, monkeypatch):
    offer(server, BYTES)
    monkeypatch.setenv("PIP_INDEX_URL", f"http://me:s%3Acret@127.0.0.1:{server.server_port}/simple")
    server.password = f"Basic {base64.b64encode(b'me:s:cret').decode()}"
    assert fetch(toy(BYTES)).read_bytes() == BYTES
    fetch(toy(BYTES)).unlink()
    server.password = "another"
    with pytest.raises(DownloadError, match="401") as caught:
        fetch(toy(BYTES))
    assert "cret" not in str(caught.value)


def test_a_broken_transfer_goes_on_where_it_stopped(server):
    offer(server, BYTES)
    server.cuts = [300_000, 500_000]
    assert fetch(toy(BYTES)).read_bytes() == BYTES
    assert server.files_asked == [None, "bytes=300000-", "bytes=800000-"]


def test_a_server_without_ranges_makes_us_start_again(server):
    offer(server, BYTES)
    server.ranges, server.cuts = False, [300_000]
    assert fetch(toy(BYTES)).read_bytes() == BYTES
    assert server.files_asked == [None, "bytes=300000-"]


def test_a_server_that_always_breaks_off_is_given_up(server):
    offer(server, BYTES)
    server.ranges, server.cuts = False, [300_000] * 99
    with pytest.raises(Unreachable, match="the transfer broke off"):
        fetch(toy(BYTES))
    assert len(server.files_asked) == 1 + asking.ATTEMPTS


def test_an_interrupted_download_is_resumed_by_the_next_call(server):
    offer(server, BYTES * 3)

    def interrupt(done, total):
        assert total == 2  # whole MiB
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(toy(BYTES * 3), progress=interrupt)
    assert fetch(toy(BYTES * 3)).read_bytes() == BYTES * 3
    start = int(server.files_asked[1].removeprefix("bytes=").removesuffix("-"))
    assert 1 << 20 <= start < 3_000_000


def test_a_part_longer_than_the_file_is_thrown_away(server, cache):
    offer(server, BYTES)
    put_by_hand(cache, BYTES + b"more", f"{SDIST}.part")
    assert fetch(toy(BYTES)).read_bytes() == BYTES


def test_a_part_that_is_whole_needs_no_server(cache):
    part = put_by_hand(cache, BYTES, f"{SDIST}.part")
    assert fetch(toy(BYTES)).read_bytes() == BYTES
    assert not part.exists()


def test_another_file_of_the_same_name_is_deleted(server, cache):
    offer(server, BYTES[::-1])
    with pytest.raises(DownloadError, match=hashlib.sha256(BYTES[::-1]).hexdigest()):
        fetch(toy(BYTES))
    assert [path.name for path in (cache / "packages" / "toy").iterdir()] == [".lock"]


def test_a_file_announced_with_another_sha256_is_not_even_brought(server):
    offer(server, BYTES, fragment=f"#sha256={'0' * 64}")
    with pytest.raises(DownloadError, match="does not list it with the sha256"):
        fetch(toy(BYTES))
    assert server.files_asked == []


def test_a_wheel_we_cannot_reach_is_left_to_pip(server):
    content = wheel("toy", "1.0", GOOD)
    offer(server, content, WHEEL)
    server.refusals = 1
    assert fetch(toy(content, WHEEL)).read_bytes() == content
    assert len(server.files_asked) >= 2
    assert pypi.command(toy(content, SDIST)) is None  # pip would run its setup script


@pytest.mark.skipif(shutil.which("apt-get") is None, reason="apt-get is not on this machine")
@pytest.mark.parametrize("scheme", ["http", "file"])
def test_a_debian_package_is_found_through_apt(scheme, server, tmp_path, monkeypatch):
    filename, content, listed = installable_deb("toy", "1.0", {"./toy/a.txt": b"alpha"})
    repository = tmp_path / "files"
    (tmp_path / "state" / "lists" / "partial").mkdir(parents=True)
    (tmp_path / "archives" / "partial").mkdir(parents=True)
    repository.mkdir()
    for name, data in {filename: content, "Packages": listed}.items():
        (repository / name).write_bytes(data)
        server.pages[f"/files/{name}"] = ("application/octet-stream", data)
    place = f"{server.url}/files" if scheme == "http" else f"file:{repository}"
    (tmp_path / "sources.list").write_text(f"deb [trusted=yes] {place} ./\n")
    (tmp_path / "status").touch()
    settings = {
        "Dir::State": tmp_path / "state",
        "Dir::State::status": tmp_path / "status",
        "Dir::Cache": tmp_path,
        "Dir::Etc::sourcelist": tmp_path / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "APT::Sandbox::User": "",
        "Acquire::http::Proxy": "DIRECT",
    }
    text = "".join(f'{name} "{value}";\n' for name, value in settings.items())
    (tmp_path / "apt.conf").write_text(text)
    monkeypatch.setenv("APT_CONFIG", str(tmp_path / "apt.conf"))
    source = toy(content, filename, registry="Debian")
    with pytest.raises(DownloadError, match="run `apt-get update`"):
        fetch(source)
    subprocess.run(["apt-get", "update"], check=True, capture_output=True)
    assert fetch(source).read_bytes() == content


@pytest.mark.parametrize(("registry", "program"), [("npm", "npm"), ("Debian", "apt-get")])
def test_without_the_program_the_error_says_what_to_get(registry, program, cache, monkeypatch):
    for name in ("npm_config_registry", "NPM_CONFIG_REGISTRY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(cache))
    source = toy(BYTES, registry=registry)
    with pytest.raises(DownloadError, match=f"^{program} is not installed") as caught:
        fetch(source)
    folder = str(cache / "packages" / "toy")
    for needed in ("package toy", "version 1.0", SDIST, source.sha256, folder):
        assert needed in str(caught.value)


def test_a_file_put_there_by_hand_is_used(cache, monkeypatch):
    monkeypatch.setenv("PATH", "")
    put = put_by_hand(cache, BYTES, SDIST)
    assert fetch(toy(BYTES, registry="npm")) == put


def test_a_wrong_file_put_there_by_hand_is_refused_and_kept(cache):
    put = put_by_hand(cache, b"something else", SDIST)
    with pytest.raises(DownloadError, match="is another file"):
        fetch(toy(BYTES))
    assert put.read_bytes() == b"something else"


def test_of_two_processes_one_brings_the_file(server):
    offer(server, BYTES)
    script = (
        "from experiments.deep_ensembles.downloads import Source, fetch\n"
        f"print(fetch({toy(BYTES)!r}))"
    )
    paths = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    server.gate.clear()
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", script],
            stdout=-1,
            text=True,
            env=os.environ | {"PYTHONPATH": paths},
        )
        for _ in range(2)
    ]
    assert server.arrivals.acquire(timeout=60)
    second = server.arrivals.acquire(timeout=3)  # long enough for the other, were it not waiting
    server.gate.set()
    outputs = [process.communicate(timeout=60)[0] for process in processes]
    assert outputs[0] == outputs[1] == f"{fetch(toy(BYTES))}\n"
    assert not second
    assert len(server.files_asked) == 1
