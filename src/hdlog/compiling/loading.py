"""Machine code from disk into functions that Python can call, by LLVM alone.

Importing numba and reading what it has compiled takes half a second in every process; llvmlite, which comes with it, loads the same code in a
tenth of that (docs/decisions/0016).
"""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from collections.abc import Callable, Iterable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

_FORMAT = 2
"""of files with code; another number for another way to call it"""
OBJECTS = (np.ndarray, TypeError, RuntimeError, None)
"""of Python that code knows by their addresses. They have names in the process, too, but numba gives these another meaning."""
PREFIX = "hdlog_loop_"
"""of names in the code"""


def load(name: str, code: bytes) -> Callable[..., Any]:
    """The function of Python that some code has."""
    from llvmlite import binding as llvm

    engine = _engine()
    _loaded.append(code)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    objects = (ctypes.c_void_p * len(OBJECTS)).from_address(
        engine.get_global_value_address(f"{PREFIX}{name}_objects")
    )
    objects[:] = list(map(id, OBJECTS))
    return _make_callable(name, engine.get_function_address(f"{PREFIX}{name}"))


_loaded: list[bytes] = []
"""LLVM reads the code where it is"""


@cache
def _engine() -> Any:
    from llvmlite import binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)


class _Method(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_FASTCALL = 0x80
_methods: list[_Method] = []
"""what functions of Python are made of must outlive them"""


def _make_callable(name: str, address: int) -> Callable[..., Any]:
    method = _Method(name.encode(), address, _FASTCALL, None)
    _methods.append(method)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = (
        ctypes.py_object,
        (ctypes.POINTER(_Method), ctypes.c_void_p, ctypes.c_void_p),
    )
    return make(ctypes.byref(method), None, None)  # type: ignore[no-any-return]


# Keeping.


@cache
def machine() -> str:
    """What code is good for: this processor, with these libraries."""
    import llvmlite
    from llvmlite import binding as llvm

    features = llvm.get_host_cpu_features().flatten()
    known = (_FORMAT, sys.version_info[:2], llvmlite.__version__, llvm.get_host_cpu_name(), features)
    return repr(known)


def find_code(name: str, fingerprint: str, make: Callable[[str], bytes]) -> tuple[str, bytes]:
    """Code by the fingerprint of what it is made from; made, and kept, where there is none yet. With the name it has there."""
    unique = f"{name}_{sha256((machine() + fingerprint).encode()).hexdigest()[:20]}"
    for folder in _folders():
        try:
            return unique, (folder / f"{unique}.o").read_bytes()
        except OSError:
            continue
    code = make(unique)
    for folder in _folders():
        if _keep(folder, f"{unique}.o", code):
            break
    return unique, code


def _folders() -> Iterable[Path]:
    """Beside the sources, or where users keep such things."""
    yield Path(__file__).parents[1] / "__pycache__"
    cache_home = os.environ.get("XDG_CACHE_HOME") or str(Path("~").expanduser() / ".cache")
    yield Path(cache_home) / "hdlog"
    yield Path(tempfile.gettempdir()) / f"hdlog-{os.getuid()}"


def _keep(folder: Path, name: str, code: bytes) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if folder.stat().st_uid not in (os.getuid(), Path(__file__).stat().st_uid):
            return False  # somebody else's
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
            file.write(code)
        Path(file.name).chmod(0o644)
        Path(file.name).replace(folder / name)
    except OSError:
        return False
    return True
