"""Packages made by hand, and a server on this machine that hands them out, well or badly."""

import gzip
import hashlib
import io
import lzma
import stat
import tarfile
import threading
import zipfile
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SDIST, WHEEL = "toy-1.0.tar.gz", "toy-1.0-py3-none-any.whl"
GOOD = {"toy/a.txt": b"alpha", "toy/b.txt": b"beta" * 9}


def toy(content, filename=SDIST, *, registry="PyPI", members=None):
    """What a Source says of a package with this content."""
    return {
        "name": "toy",
        "registry": registry,
        "package": "toy",
        "version": "1.0",
        "filename": filename,
        "sha256": hashlib.sha256(content).hexdigest(),
        "members": dict.fromkeys(GOOD) if members is None else members,
    }


def put_by_hand(cache, content, filename=SDIST):
    folder = cache / "packages" / "toy"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / filename).write_bytes(content)
    return folder / filename


def zipped(files, links=()):
    """`links` are names of symbolic links."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in links:
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(entry, "/etc/passwd")
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def tarred(files, links=()):
    """`links` are triples of name, tar's letter for the kind, and where it leads."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, kind, target in links:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, target
            archive.addfile(entry)
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def tgz(files, links=()):
    return gzip.compress(tarred(files, links))


def deb(data, name="data.tar.xz", control=b"odd"):
    """The three parts of a Debian package; the second has an odd size, to be padded."""
    out = b"!<arch>\n"
    parts = (("debian-binary", b"2.0\n"), ("control.tar.gz", control), (name, data))
    for part, content in parts:
        head = f"{part:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n"
        out += head.encode() + content + b"\n" * (len(content) % 2)
    return out


def installable_deb(package, version, files):
    """One that apt takes for a package of its own."""
    fields = f"Package: {package}\nVersion: {version}\nArchitecture: all\n"
    fields += "Maintainer: nobody <nobody@example.org>\nDescription: a toy\n"
    control = tgz({"./control": fields.encode()})
    package_file = deb(lzma.compress(tarred(files)), control=control)
    digest = hashlib.sha256(package_file).hexdigest()
    filename = f"{package}_{version}_all.deb"
    entry = f"{fields}Filename: ./{filename}\nSize: {len(package_file)}\nSHA256: {digest}\n\n"
    return filename, package_file, entry.encode()


def wheel(package, version, files):
    """One that pip takes for a package."""
    info = f"{package}-{version}.dist-info"
    return zipped(
        files
        | {
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n",
            f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            f"{info}/RECORD": "",
        }
    )


class Server(ThreadingHTTPServer):
    """Gives `pages`; each `cuts` ends one answer after so many bytes; notes what was `asked`."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.pages = {}  # path: (kind, bytes)
        self.ranges = True
        self.cuts = []
        self.refusals = 0  # so many files are refused with 404 before the first is given
        self.password = None
        self.asked = []  # pairs of path and Range
        self.gate = threading.Event()  # files wait for it
        self.gate.set()
        self.arrivals = threading.Semaphore(0)  # one for each file that was asked for

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def files_asked(self):
        return [span for path, span in self.asked if path.startswith("/files/")]


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        server, path, span = self.server, self.path.replace("/./", "/"), self.headers["Range"]
        server.asked.append((path, span))
        if server.password not in (None, self.headers["Authorization"]):
            return self.send_error(401)
        if path.startswith("/files/"):
            server.arrivals.release()
            server.gate.wait(30)
            if server.refusals:
                server.refusals -= 1
                return self.send_error(404)
        if path not in server.pages:
            return self.send_error(404)
        kind, content = server.pages[path]
        start = int(span[6:].rstrip("-")) if span and server.ranges else 0
        if start and start >= len(content):
            return self.send_error(416)
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        cut = server.cuts.pop(0) if server.cuts and path.startswith("/files/") else None
        self.wfile.write(content[start:][:cut])


@contextmanager
def serving():
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.gate.set()
        server.shutdown()
        server.server_close()
        thread.join()
