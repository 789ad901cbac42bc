"""Write the golden files, or say what would change in them.

    python tests/golden/make_golden.py             # compares; ends with 1 if something differs
    python tests/golden/make_golden.py --update    # writes what differs
    python tests/golden/make_golden.py minimize    # some files only

A change of a golden number is a change of results: the changelog has to say so.
"""

import argparse
import json
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent))

from golden.cases import cases  # noqa: E402
from golden.machine import machine  # noqa: E402

#: Differences shown of one file.
SHOWN = 6


def differences(old, new, place=""):
    """Where two contents differ, in words."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in {**old, **new}:
            where = f"{place}.{name}" if place else name
            if name not in old or name not in new:
                yield f"{where}: {'new' if name in new else 'gone'}"
            else:
                yield from differences(old[name], new[name], where)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for i, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from differences(one, other, f"{place}[{i}]")
    elif old != new or type(old) is not type(new):
        yield f"{place}: {_readable(old)} was kept, {_readable(new)} is found"


def _readable(value):
    if isinstance(value, str) and value.lstrip("-").startswith("0x"):
        return f"{float.fromhex(value)!r} ({value})"
    return f"{value!r:.100}"


def text_of(content):
    """JSON with a line for each name, and one for each list."""
    return _lines(content, "") + "\n"


def _lines(value, indent):
    if not isinstance(value, dict) or not value:
        return json.dumps(value, ensure_ascii=False)
    more = indent + " "
    rows = [f"{more}{json.dumps(name)}: {_lines(each, more)}" for name, each in value.items()]
    return "{\n" + ",\n".join(rows) + f"\n{indent}}}"


def read(path):
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def main(arguments=None, folder=FOLDER):
    """0 if nothing differs or all that does was written, 1 if something would have to be."""
    known = {**cases(), "machine": machine}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(known)}; all if none is named")
    parser.add_argument("--update", action="store_true", help="write what differs")
    options = parser.parse_args(arguments)
    unknown = set(options.names) - set(known)
    if unknown:
        parser.error(f"no such file: {', '.join(sorted(unknown))}")
    differ = 0
    for name in options.names or known:
        path = folder / f"{name}.json"
        new = json.loads(json.dumps(known[name]()))
        found = list(differences(read(path), new))
        if not found:
            continue
        differ += 1
        print(f"{path.name}: {len(found)} differences")
        for line in found[:SHOWN]:
            print(f"  {line}")
        if options.update:
            path.write_text(text_of(new), encoding="utf-8")
    if not differ:
        print("nothing differs")
        return 0
    print(f"{differ} files {'written' if options.update else 'differ; --update writes them'}")
    return 0 if options.update else 1


if __name__ == "__main__":
    sys.exit(main())
