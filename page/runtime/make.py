"""Run by make.mjs in Pyodide: the standard library and NumPy, compiled and without what the page never reaches."""

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
# Of `encodings`, what text files and zip archives need.
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
DOCUMENTATION = ("numpy/_core/_add_newdocs.py", "numpy/_core/_add_newdocs_scalars.py")  # of functions in C


def compiled(source: bytes, name: str) -> bytes:
    """The module as a .pyc that is never compared with a source; its docstrings are empty (NumPy wants some)."""
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
    """Stored, not deflated: the whole file is compressed."""
    written = io.BytesIO()
    with zipfile.ZipFile("/from/pyodide/python_stdlib.zip") as found, zipfile.ZipFile(written, "w") as to:
        for name in sorted(found.namelist()):
            if name.endswith(".py") and is_reached(name):
                to.writestr(zipfile.ZipInfo(f"{name}c"), compiled(found.read(name), name))
    return written.getvalue()


def packages() -> bytes:
    """NumPy, and the licences of all that is here. A header says where each file lies; the files follow."""
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
