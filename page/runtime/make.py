"""Compile the standard library and NumPy, without modules that the page never uses. make.mjs runs this in Pyodide."""

import ast
import importlib.util
import io
import json
import marshal
import zipfile
from pathlib import Path

SKIPPED = {
    *(
        "test",
        "tkinter",
        "idlelib",
        "lib2to3",
        "ensurepip",
        "distutils",
        "unittest",
        "pydoc_data",
        "turtledemo",
        "curses",
    ),
    *(
        "dbm",
        "sqlite3",
        "xmlrpc",
        "wsgiref",
        "multiprocessing",
        "venv",
        "msilib",
        "http",
        "xml",
        "ssl",
        "ftplib",
        "pdb",
    ),
    *("doctest", "pydoc", "turtle", "smtplib", "imaplib", "nntplib", "telnetlib", "poplib", "cgi", "cgitb", "mailbox"),
    *("optparse", "zipapp", "_pydecimal", "_pyio", "decimal", "aifc", "audioop", "chunk", "sunau", "wave", "sndhdr"),
    *("imghdr", "smtpd", "asynchat", "asyncore", "plistlib", "pickletools", "profile", "cProfile", "pstats", "trace"),
    *("tabnanny", "this", "antigravity", "webbrowser", "getpass", "netrc", "uu", "xdrlib", "mailcap", "crypt"),
    *(
        "pyclbr",
        "symtable",
        "sched",
        "rlcompleter",
        "code",
        "codeop",
        "cmd",
        "bdb",
        "fileinput",
        "filecmp",
        "configparser",
    ),
    *(
        "nturl2path",
        "modulefinder",
        "compileall",
        "py_compile",
        "timeit",
        "tracemalloc",
        "tty",
        "pty",
        "pipes",
        "mimetypes",
    ),
    *("statistics", "colorsys", "graphlib", "stringprep", "zoneinfo", "tomllib", "lzma", "shelve", "socketserver"),
}
# The modules of `encodings` that text files and zip archives need.
ENCODINGS = {
    "__init__",
    "aliases",
    "ascii",
    "cp437",
    "latin_1",
    "utf_8",
    "utf_8_sig",
    "utf_16",
    "utf_16_le",
    "utf_32_le",
}
UNUSED = (
    "distutils",
    "f2py",
    "fft",
    "random",
    "ma",
    "polynomial",
    "testing",
    "tests",
    "compat",
    "doc",
    "_pyinstaller",
    "core",
)
LIBRARIES = ("_multiarray_umath", "_umath_linalg")
DOCUMENTATION = ("numpy/_core/_add_newdocs.py", "numpy/_core/_add_newdocs_scalars.py")  # docstrings of C functions


def compiled(source: bytes, name: str) -> bytes:
    """Return a .pyc that is never checked against its source. NumPy needs some docstrings, so they are only emptied."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node, clean=False):
            node.body[0].value.value = ""
    header = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8)
    return header + marshal.dumps(compile(tree, name, "exec", dont_inherit=True, optimize=1))


def is_reached(name: str) -> bool:
    parts = name.removesuffix(".py").split("/")
    if parts[0] in SKIPPED or (len(parts) > 1 and parts[:2] in (["ctypes", "test"], ["ctypes", "macholib"])):
        return False
    return parts[0] != "encodings" or parts[1] in ENCODINGS


def stdlib() -> bytes:
    """Return an uncompressed zip archive, because make.mjs compresses the whole file."""
    written = io.BytesIO()
    with zipfile.ZipFile("/from/pyodide/python_stdlib.zip") as found, zipfile.ZipFile(written, "w") as to:
        for name in sorted(found.namelist()):
            if name.endswith(".py") and is_reached(name):
                to.writestr(zipfile.ZipInfo(f"{name}c"), compiled(found.read(name), name))
    return written.getvalue()


def packages() -> bytes:
    """Return NumPy as an archive: a header with the offset and size of each file, followed by the files."""
    root, files = Path("/from/numpy/lib/python3.11/site-packages"), {}
    for path in sorted(root.rglob("numpy/**/*")):
        name = path.relative_to(root).as_posix()
        if name.split("/")[1] in UNUSED or "/tests/" in name:
            continue
        if path.suffix == ".py":
            files[f"{name}c"] = compiled(b"" if name in DOCUMENTATION else path.read_bytes(), name)
        elif path.suffix == ".so" and path.name.split(".")[0] in LIBRARIES:
            files[name] = path.read_bytes()
    header, at = {}, 0
    for name, data in files.items():
        header[name] = [at, len(data)]
        at += len(data)
    text = json.dumps(header).encode()
    return len(text).to_bytes(4, "little") + text + b"".join(files.values())


[stdlib(), packages()]
