"""Loops into machine code, by numba, with a function around each that Python can call.

A loop allocates nothing and calls nothing but other loops, so its code stands alone. The function around it checks that each argument is an array of
the declared type, or a number, lets go of the interpreter's lock, and runs the loop.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import binding as llvm
from numba import njit as _njit
from numba.core import types

from hdlog.compiling.loading import OBJECTS, PREFIX

_ARRAY_FLAGS = {"contiguous": 0x1, "aligned": 0x100, "writeable": 0x400}
_NUMBERS = {
    "bool": (0,),
    "uint8": (2,),
    "int32": (5,),
    "uint32": (6,),
    "int64": (7, 9),
    "uint64": (8, 10),
    "float64": (12,),
}
"""How numpy numbers the types of elements."""
_DATA, _DIMENSIONS, _SHAPE, _STRIDES, _TYPE, _FLAGS = 16, 24, 32, 40, 56, 64
_TYPE_ORDER, _TYPE_NUMBER = 26, 28
"""Where an array has what, and its type: numpy keeps these places."""
_DECLARATIONS = """
declare i32 @PyType_IsSubtype(ptr, ptr)
declare i64 @PyLong_AsLongLong(ptr)
declare i64 @PyLong_AsUnsignedLongLongMask(ptr)
declare double @PyFloat_AsDouble(ptr)
declare i32 @PyObject_IsTrue(ptr)
declare ptr @PyErr_Occurred()
declare void @PyErr_SetString(ptr, ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyLong_FromUnsignedLongLong(i64)
declare ptr @PyFloat_FromDouble(double)
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare void @Py_IncRef(ptr)
"""
njit: Any = _njit
"""with options that its types do not know"""
_OPTIONS: dict[str, Any] = {"nogil": True, "_nrt": False, "error_model": "numpy", "no_cfunc_wrapper": True}


def make_part(function: Callable[..., Any], signatures: tuple[str, ...]) -> Any:
    """A function that is compiled into others."""
    return njit(list(signatures), **_OPTIONS)(function)


def make(name: str, function: Callable[..., Any], signature: str) -> bytes:
    """Machine code of a function over arrays, with a function around it that Python can call."""
    compiled = njit(signature, no_cpython_wrapper=True, **_OPTIONS)(function)
    (result,) = compiled.overloads.values()
    loop = result.fndesc.llvm_func_name
    module = llvm.parse_assembly(str(result.library._final_module))
    declared = module.get_function(loop)
    arguments = [str(a.type) for a in declared.arguments]
    caller = _Caller(name, loop, arguments, result.signature)
    module.link_in(llvm.parse_assembly(caller.text()))
    outside = [f.name for f in module.functions if f.is_declaration and f.name.startswith("NRT_")]
    assert not outside, f"{name} allocates: {outside}"
    return bytes(result.library.codegen._tm.emit_object(module))


class _Caller:
    """The function around a loop, as a text of LLVM."""

    def __init__(self, name: str, loop: str, arguments: list[str], signature: Any) -> None:
        self.name = PREFIX + name
        self.loop = loop
        self.arguments = arguments
        """types of the loop's own arguments: where to put the result, where to put an error, and those of arrays and numbers"""
        self.signature = signature
        self.lines: list[str] = []
        self._count = 0

    def text(self) -> str:
        types_ = ", ".join(self.arguments)
        self._write()
        body = "\n".join(f"  {line}" if not line.endswith(":") else line for line in self.lines)
        message = f"{self.name.removeprefix(PREFIX).rsplit('_', 1)[0]} takes {self.signature.args}\0".encode()
        words = "".join(f"\\{byte:02X}" for byte in message)
        return (
            f"{_DECLARATIONS}declare i32 @{self.loop}({types_})\n"
            f"@{self.name}_objects = global [{len(OBJECTS)} x ptr] zeroinitializer\n"
            f'@{self.name}_words = private constant [{len(message)} x i8] c"{words}"\n'
            f"define ptr @{self.name}(ptr %self, ptr %args, i64 %count) {{\n{body}\n}}\n"
        )

    def _new(self, instruction: str) -> str:
        self._count += 1
        self.lines.append(f"%v{self._count} = {instruction}")
        return f"%v{self._count}"

    def _object(self, known: object) -> str:
        return self._load("ptr", f"@{self.name}_objects", 8 * OBJECTS.index(known))

    def _label(self) -> str:
        self._count += 1
        return f"l{self._count}"

    def _demand(self, condition: str, otherwise: str = "wrong") -> None:
        """Go on if something holds."""
        label = self._label()
        self.lines += [f"br i1 {condition}, label %{label}, label %{otherwise}", f"{label}:"]

    def _load(self, kind: str, at: str, offset: int) -> str:
        place = self._new(f"getelementptr i8, ptr {at}, i64 {offset}")
        return self._new(f"load {kind}, ptr {place}")

    def _write(self) -> None:
        self._demand(self._new(f"icmp eq i64 %count, {len(self.signature.args)}"))
        arrays = self._object(np.ndarray)
        values: list[str] = []
        for number, kind in enumerate(self.signature.args):
            argument = self._load("ptr", "%args", 8 * number)
            values += self._read(argument, kind, arrays)
        result = self._new("alloca [8 x i64]")
        error = self._new("alloca ptr")
        given = zip(self.arguments, [result, error, *values], strict=True)
        state = self._new("call ptr @PyEval_SaveThread()")
        status = self._new(f"call i32 @{self.loop}({', '.join(f'{t} {v}' for t, v in given)})")
        self.lines.append(f"call void @PyEval_RestoreThread(ptr {state})")
        self._demand(self._new(f"icmp eq i32 {status}, 0"), "failed")
        self.lines.append(f"ret ptr {self._give_back(result)}")
        self._refuse("wrong", TypeError)
        self._refuse("failed", RuntimeError)
        self.lines += ["raised:", "ret ptr null"]

    def _refuse(self, label: str, kind: type[Exception]) -> None:
        self.lines.append(f"{label}:")
        self.lines += [
            f"call void @PyErr_SetString(ptr {self._object(kind)}, ptr @{self.name}_words)",
            "ret ptr null",
        ]

    # Arguments.

    def _read(self, argument: str, kind: types.Type, arrays: str) -> list[str]:
        """What a loop is given for an argument."""
        if isinstance(kind, types.Array):
            return self._read_array(argument, kind, arrays)
        if isinstance(kind, types.Boolean):
            truth = self._new(f"call i32 @PyObject_IsTrue(ptr {argument})")
            self._demand(self._new(f"icmp ne i32 {truth}, -1"), "raised")
            return [self._new(f"trunc i32 {truth} to i8")]
        if isinstance(kind, types.Float):
            number = self._new(f"call double @PyFloat_AsDouble(ptr {argument})")
            self._check_number(self._new(f"fcmp oeq double {number}, -1.0"))
            return [number]
        how = {"int64": "PyLong_AsLongLong", "uint64": "PyLong_AsUnsignedLongLongMask"}[str(kind)]
        number = self._new(f"call i64 @{how}(ptr {argument})")
        self._check_number(self._new(f"icmp eq i64 {number}, -1"))
        return [number]

    def _check_number(self, suspicious: str) -> None:
        """A number that stands for an error may also be one."""
        look, go = self._label(), self._label()
        self.lines += [f"br i1 {suspicious}, label %{look}, label %{go}", f"{look}:"]
        error = self._new("call ptr @PyErr_Occurred()")
        fine = self._new(f"icmp eq ptr {error}, null")
        self.lines += [f"br i1 {fine}, label %{go}, label %raised", f"{go}:"]

    def _read_array(self, argument: str, kind: types.Array, arrays: str) -> list[str]:
        self._check_is_array(argument, arrays)
        dimensions = self._load("i32", argument, _DIMENSIONS)
        self._demand(self._new(f"icmp eq i32 {dimensions}, {kind.ndim}"))
        wanted = [name for name in _ARRAY_FLAGS if name != "writeable" or kind.mutable]
        mask = sum(_ARRAY_FLAGS[name] for name in wanted)
        flags = self._new(f"and i32 {self._load('i32', argument, _FLAGS)}, {mask}")
        self._demand(self._new(f"icmp eq i32 {flags}, {mask}"))
        self._check_type(self._load("ptr", argument, _TYPE), _NUMBERS[str(kind.dtype)])
        shape, strides = self._load("ptr", argument, _SHAPE), self._load("ptr", argument, _STRIDES)
        lengths = [self._load("i64", shape, 8 * n) for n in range(kind.ndim)]
        steps = [self._load("i64", strides, 8 * n) for n in range(kind.ndim)]
        items = lengths[0]
        for length in lengths[1:]:
            items = self._new(f"mul i64 {items}, {length}")
        size = str(np.dtype(str(kind.dtype)).itemsize)
        return ["null", "null", items, size, self._load("ptr", argument, _DATA), *lengths, *steps]

    def _check_is_array(self, argument: str, arrays: str) -> None:
        kind = self._load("ptr", argument, 8)
        other, go = self._label(), self._label()
        same = self._new(f"icmp eq ptr {kind}, {arrays}")
        self.lines += [f"br i1 {same}, label %{go}, label %{other}", f"{other}:"]
        derived = self._new(f"call i32 @PyType_IsSubtype(ptr {kind}, ptr {arrays})")
        fine = self._new(f"icmp ne i32 {derived}, 0")
        self.lines += [f"br i1 {fine}, label %{go}, label %wrong", f"{go}:"]

    def _check_type(self, kind: str, numbers: tuple[int, ...]) -> None:
        number = self._load("i32", kind, _TYPE_NUMBER)
        tests = [self._new(f"icmp eq i32 {number}, {n}") for n in numbers]
        fits = tests[0]
        for test in tests[1:]:
            fits = self._new(f"or i1 {fits}, {test}")
        self._demand(fits)
        order = self._load("i8", kind, _TYPE_ORDER)
        self._demand(self._new(f"icmp ne i8 {order}, {ord('>' if sys.byteorder == 'little' else '<')}"))

    # Results.

    def _give_back(self, result: str) -> str:
        kind = self.signature.return_type
        if kind == types.void:
            nothing = self._object(None)
            self.lines.append(f"call void @Py_IncRef(ptr {nothing})")
            return nothing
        if not isinstance(kind, types.BaseTuple):
            return self._give_number(result, 0, kind)
        parts: list[types.Type] = list(kind)  # type: ignore[call-overload]
        several = self._new(f"call ptr @PyTuple_New(i64 {len(parts)})")
        for n, each in enumerate(parts):
            number = self._give_number(result, 8 * n, each)
            self._new(f"call i32 @PyTuple_SetItem(ptr {several}, i64 {n}, ptr {number})")
        return several

    def _give_number(self, result: str, offset: int, kind: types.Type) -> str:
        if isinstance(kind, types.Float):
            return self._new(f"call ptr @PyFloat_FromDouble(double {self._load('double', result, offset)})")
        how = {"int64": "PyLong_FromLongLong", "uint64": "PyLong_FromUnsignedLongLong"}[str(kind)]
        return self._new(f"call ptr @{how}(i64 {self._load('i64', result, offset)})")
