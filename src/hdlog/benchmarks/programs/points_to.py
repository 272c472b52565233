"""Points-to analyses: of Java-like programs with classes, virtual calls, fields and arrays, and of C-like ones with loads and stores.

The programs are made up: classes in a hierarchy with inherited and overridden methods; methods with local variables, allocations,
casts, fields, arrays and calls, mostly of what is near; libraries that are called from everywhere.
"""

from __future__ import annotations

import numpy as np

from hdlog.benchmarks.programs.program import Chance, Program, Tables, facts

JAVA = """
SupertypeOf(t, t) :- Type(t).
SupertypeOf(s, t) :- DirectSuper(t, s).
SupertypeOf(s, t) :- DirectSuper(t, u), SupertypeOf(s, u).
SupertypeOf(a, b) :- ComponentType(a, x), ComponentType(b, y), SupertypeOf(x, y).
MethodLookup(n, d, t, m) :- MethodImplemented(n, d, t, m).
MethodLookup(n, d, t, m) :- DirectSuper(t, s), MethodLookup(n, d, s, m), !Implements(n, d, t).
Implements(n, d, t) :- MethodImplemented(n, d, t, _).
Reachable(m) :- MainMethod(m).
VarPointsTo(h, v) :- Reachable(m), AssignHeapAllocation(h, v, m).
VarPointsTo(h, to) :- Reachable(m), AssignLocal(from, to, m), VarPointsTo(h, from).
VarPointsTo(h, to) :- Reachable(m), AssignCast(type, from, to, m), VarPointsTo(h, from), HeapAllocation_Type(h, ht), SupertypeOf(type, ht).
VarPointsTo(h, to) :- Assign(to, from), VarPointsTo(h, from).
Assign(to, from) :- CallGraphEdge(i, m), FormalParam(n, m, to), ActualParam(n, i, from).
Assign(to, from) :- CallGraphEdge(i, m), ReturnVar(from, m), AssignReturnValue(i, to).
InstanceFieldPointsTo(bh, f, h) :- Reachable(m), StoreInstanceField(from, base, f, m), VarPointsTo(bh, base), VarPointsTo(h, from).
VarPointsTo(h, to) :- Reachable(m), LoadInstanceField(base, f, to, m), VarPointsTo(bh, base), InstanceFieldPointsTo(bh, f, h).
StaticFieldPointsTo(f, h) :- Reachable(m), StoreStaticField(from, f, m), VarPointsTo(h, from).
VarPointsTo(h, to) :- Reachable(m), LoadStaticField(f, to, m), StaticFieldPointsTo(f, h).
ArrayIndexPointsTo(bh, h) :- Reachable(m), StoreArrayIndex(from, base, m), VarPointsTo(bh, base), VarPointsTo(h, from),
    HeapAllocation_Type(h, ht), HeapAllocation_Type(bh, bt), ComponentType(bt, ct), SupertypeOf(ct, ht).
VarPointsTo(h, to) :- Reachable(m), LoadArrayIndex(base, to, m), VarPointsTo(bh, base), ArrayIndexPointsTo(bh, h),
    Var_Type(to, type), HeapAllocation_Type(bh, bt), ComponentType(bt, ct), SupertypeOf(type, ct).
VarPointsTo(h, this) :- Reachable(m), Instruction_Method(i, m), VirtualCall_Base(i, base), VarPointsTo(h, base), HeapAllocation_Type(h, ht),
    VirtualCall_Name(i, n), VirtualCall_Descriptor(i, d), MethodLookup(n, d, ht, to), ThisVar(to, this).
Reachable(to) :- Reachable(m), Instruction_Method(i, m), VirtualCall_Base(i, base), VarPointsTo(h, base), HeapAllocation_Type(h, ht),
    VirtualCall_Name(i, n), VirtualCall_Descriptor(i, d), MethodLookup(n, d, ht, to).
CallGraphEdge(i, to) :- Reachable(m), Instruction_Method(i, m), VirtualCall_Base(i, base), VarPointsTo(h, base), HeapAllocation_Type(h, ht),
    VirtualCall_Name(i, n), VirtualCall_Descriptor(i, d), MethodLookup(n, d, ht, to).
Reachable(to) :- Reachable(m), StaticCall(i, to, m).
CallGraphEdge(i, to) :- Reachable(m), StaticCall(i, to, m).
Poly(i) :- CallGraphEdge(i, a), CallGraphEdge(i, b), a != b, VirtualCall_Base(i, _).
"""


def generate_java(size: float, chance: Chance) -> Tables:
    """What is assigned, passed, stored and returned fits the type of where it goes, as a compiler sees to: values stay among the classes
    of a family, but for those variables and fields that take any object."""
    width, family = 8, 12
    classes = int(600 * size)
    head = np.arange(classes) // family * family
    parents = head + (chance.draw.random(classes) * (np.arange(classes) - head)).astype(np.int64)
    parents[head == np.arange(classes)] = 0
    # Types: classes, then one array type for each of the first half of them.
    arrays = classes // 2
    types = np.arange(classes + arrays)
    # Methods: some of each class, a few names that are overridden everywhere.
    methods = classes * 6
    owner = np.sort(chance.uniform(methods, classes))
    names = np.where(chance.happens(methods, 0.4), chance.skewed(methods, 60, 0.6), 100 + np.arange(methods))
    descriptors = names % 7
    # Variables: eight of each method; the first is this, the next two are formal parameters, the fourth is what it returns.
    variables = methods * width
    method_of = np.repeat(np.arange(methods), width)
    this, first, second, result = (np.arange(methods) * width + n for n in range(4))
    var_type = chance.near(owner[method_of], classes, 1.7 * family)
    var_type[chance.happens(variables, 0.012)] = 0
    var_type[this] = owner
    holds_array = chance.happens(variables, 0.12)
    holds_array[this] = False
    var_type[holds_array] = classes + var_type[holds_array] % arrays

    def fits(value: np.ndarray, place: np.ndarray) -> np.ndarray:
        """Whether a value of one type may go where another is declared."""
        return np.asarray((place == 0) | ((value // family == place // family) & (value > 0)))

    def local(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Methods, and two variables of each."""
        where = chance.uniform(count, methods)
        return (
            where,
            where * width + chance.uniform(count, width),
            where * width + chance.uniform(count, width),
        )

    heaps = int(2.5 * methods)
    where, target, _ = local(heaps)
    heap_type = (var_type[target] // family) * family + chance.uniform(heaps, family)
    heap_type = np.where(var_type[target] == 0, chance.uniform(heaps, classes), heap_type)
    heap_type = np.minimum(heap_type, classes + arrays - 1)
    assign_m, assign_from, assign_to = local(12 * methods)
    assigned = fits(var_type[assign_from], var_type[assign_to])
    cast_m, cast_from, cast_to = local(methods // 4)
    fields = classes * 3
    field_type = chance.near(np.arange(fields) // 3, classes, 1.7 * family)
    field_type[chance.happens(fields, 0.01)] = 0
    store_m, store_from, store_base = local(12 * methods)
    store_base = np.where(chance.happens(len(store_m), 0.7), this[store_m], store_base)
    store_field = chance.near(var_type[store_base] * 3, fields, 2.0)
    stored = fits(var_type[store_from], field_type[store_field]) & (var_type[store_base] > 0)
    load_m, load_to, load_base = local(16 * methods)
    load_base = np.where(chance.happens(len(load_m), 0.7), this[load_m], load_base)
    load_field = chance.near(var_type[load_base] * 3, fields, 2.0)
    loaded = fits(field_type[load_field], var_type[load_to]) & (var_type[load_base] > 0)
    of_arrays = np.flatnonzero(holds_array)
    into = of_arrays[chance.uniform(methods // 3, len(of_arrays))]
    out_of = of_arrays[chance.uniform(methods // 3, len(of_arrays))]
    static_m, static_from, static_to = local(2 * methods)
    static_field = chance.skewed(len(static_m), classes // 4)
    static_type = chance.uniform(classes // 4, classes)[static_field]
    kept, read = fits(var_type[static_from], static_type), fits(static_type, var_type[static_to])
    # Calls: virtual ones of methods that the type of the base has, static ones of what is near or in a library.
    calls = int(4 * methods)
    call_m, base, actual = local(calls)
    virtual = chance.happens(calls, 0.75)
    callee = np.where(
        chance.happens(calls, 0.15), chance.skewed(calls, methods, 0.8), chance.near(call_m, methods, 60.0)
    )
    by_type = np.searchsorted(owner, np.minimum(var_type[base], classes - 1))
    callee = np.where(virtual, np.minimum(by_type + chance.uniform(calls, 6), methods - 1), callee)
    number = np.arange(calls)
    invoked = number[virtual]
    formal = np.where(number % 2 == 0, first[callee], second[callee])
    passed = fits(var_type[actual], var_type[formal])
    returned_to = call_m * width + chance.uniform(calls, width)
    returned = fits(var_type[result[callee]], var_type[returned_to])
    return {
        "Type": facts(types),
        "DirectSuper": facts(np.arange(1, classes), parents[1:]),
        "ComponentType": facts(classes + np.arange(arrays), np.arange(arrays)),
        "MethodImplemented": facts(names, descriptors, owner, np.arange(methods)),
        "MainMethod": facts(np.arange(0, methods, 10)),
        "AssignHeapAllocation": facts(np.arange(heaps), target, where),
        "HeapAllocation_Type": facts(np.arange(heaps), heap_type),
        "Var_Type": facts(np.arange(variables), var_type),
        "AssignLocal": facts(assign_from[assigned], assign_to[assigned], assign_m[assigned]),
        "AssignCast": facts(var_type[cast_to], cast_from, cast_to, cast_m),
        "FormalParam": facts(
            np.tile([0, 1], methods), np.repeat(np.arange(methods), 2), np.stack([first, second], 1).ravel()
        ),
        "ActualParam": facts(number[passed] % 2, number[passed], actual[passed]),
        "ReturnVar": facts(result, np.arange(methods)),
        "AssignReturnValue": facts(number[returned], returned_to[returned]),
        "ThisVar": facts(np.arange(methods), this),
        "StoreInstanceField": facts(
            store_from[stored], store_base[stored], store_field[stored], store_m[stored]
        ),
        "LoadInstanceField": facts(load_base[loaded], load_field[loaded], load_to[loaded], load_m[loaded]),
        "StoreStaticField": facts(static_from[kept], static_field[kept], static_m[kept]),
        "LoadStaticField": facts(static_field[read], static_to[read], static_m[read]),
        "StoreArrayIndex": facts(
            (into // width) * width + chance.uniform(len(into), width), into, into // width
        ),
        "LoadArrayIndex": facts(
            out_of, (out_of // width) * width + chance.uniform(len(out_of), width), out_of // width
        ),
        "Instruction_Method": facts(number, call_m),
        "VirtualCall_Base": facts(invoked, base[virtual]),
        "VirtualCall_Name": facts(invoked, names[callee[virtual]]),
        "VirtualCall_Descriptor": facts(invoked, descriptors[callee[virtual]]),
        "StaticCall": facts(number[~virtual], callee[~virtual], call_m[~virtual]),
    }


C = """
PointsTo(x, h) :- AddressOf(x, h).
PointsTo(x, h) :- Assign(x, y), PointsTo(y, h).
PointsTo(x, h) :- Load(x, y), PointsTo(y, b), PointsTo(b, h).
PointsTo(b, h) :- Store(x, y), PointsTo(x, b), PointsTo(y, h).
"""


def generate_c(size: float, chance: Chance) -> Tables:
    """Variables of functions; objects are variables whose address is taken. Most of what is assigned is of the same function."""
    variables = int(60_000 * size)
    given = int(25_000 * size)

    def near(count: int) -> tuple[np.ndarray, np.ndarray]:
        x = chance.uniform(count, variables)
        same = (x // 30) * 30 + chance.uniform(count, 30)
        return x, np.where(chance.happens(count, 0.01), chance.skewed(count, variables, 0.5), same)

    return {
        "AddressOf": facts(*near(given)),
        "Assign": facts(*near(int(1.6 * given))),
        "Load": facts(*near(int(0.7 * given))),
        "Store": facts(*near(int(0.6 * given))),
    }


CSPA = """
ValueFlow(y, x) :- Assign(y, x).
ValueFlow(x, x) :- Assign(x, _).
ValueFlow(x, x) :- Assign(_, x).
ValueFlow(x, y) :- Assign(x, z), MemoryAlias(z, y).
ValueFlow(x, y) :- ValueFlow(x, z), ValueFlow(z, y).
MemoryAlias(x, w) :- Dereference(y, x), ValueAlias(y, z), Dereference(z, w).
MemoryAlias(x, x) :- Assign(_, x).
MemoryAlias(x, x) :- Assign(x, _).
ValueAlias(x, y) :- ValueFlow(z, x), ValueFlow(z, y).
ValueAlias(x, y) :- ValueFlow(z, x), MemoryAlias(z, w), ValueFlow(w, y).
"""


def generate_cspa(size: float, chance: Chance) -> Tables:
    """Many small functions: value flow stays within them, but for a few variables that are everywhere."""
    variables = int(60_000 * size)
    assigned = chance.uniform(int(45_000 * size), variables)
    read = chance.uniform(int(55_000 * size), variables)
    return {
        "Assign": facts(assigned, (assigned // 12) * 12 + chance.uniform(len(assigned), 12)),
        "Dereference": facts(read, (read // 12) * 12 + chance.uniform(len(read), 12)),
    }


PROGRAMS = (
    Program("points-to-java", JAVA, generate_java, (1.0, 16.0)),
    Program("points-to-c", C, generate_c, (1.0, 3.0)),
    Program("cspa", CSPA, generate_cspa, (1.0, 6.0)),
)
