"""The native code of the thread pool: how threads take tasks, wait and sleep, as text for LLVM.

No thread waits for another one to come: tasks are taken from a counter, and a round is over when its tasks are done. So
a thread that the system holds up holds up others only while it has a task. One word of 64 bits says all that a thread
needs before it takes a task: the generation (of runs), where the round ends, and the next task. What is in a table is
read by those who have taken a task of it alone, since a run cannot end, and its table go, before that task is done.
Who waits spins briefly, then sleeps: to yield the core does not make a system run the thread that is waited for.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from . import ir
from .ir import I32, I64, POINTER, Function, Module, Register
from .machine import CpuTarget
from .work import CALL_BYTES

# Where things lie in the state of a pool: on lines of their own what threads write at the same time
DONE, TABLE, CLOSING, SLEEPERS, FIRST_SLEEPER, SLEEPER_BYTES = 64, 128, 136, 140, 192, 64
LOCK = 8  # in a sleeper's own bytes, behind the word that says that it sleeps

ACQUIRE, RELEASE = "acquire_lock", "release_lock"  # outside functions
_BITS = 18
_MASK = (1 << _BITS) - 1
_SPINS = 2000  # pauses, 10 to 50 ns each, before a thread whose run waits for others' tasks sleeps,
_IDLE_SPINS = 5000  # and before a worker without tasks does
_FLUSH_X86, _FLUSH_ARM = 0x8040, 1 << 24  # MXCSR's flush-to-zero and denormals-are-zero; FPCR's flush-to-zero


def pool_text(target: CpuTarget) -> str:
    """A module of run(state, table), run_alone(table), serve(state, number) and stop(state)."""
    module = Module()
    _task(module)
    _wake(module)
    _attempt(module)
    _run(module, target)
    _run_alone(module, target)
    _serve(module, target)
    _stop(module)
    return module.text


def _task(module: Module) -> None:
    """task(table, index): the calls of one task, in order."""
    f = module.function("task", [("ptr", "table"), (I32, "index")])
    table, index = f.parameters
    calls, firsts = (f.load(POINTER, _at(f, table, 8 * slot), 8) for slot in (0, 1))
    first = f.load(I32, f.at(firsts, index, I32))
    last = f.load(I32, f.at(firsts, f.binary("add", index, ir.integer(1)), I32))
    with f.loop(first, last) as at:
        call = f.at(calls, at, f"[{CALL_BYTES} x i8]")
        kernel, tensors, weights = (f.load(POINTER, _at(f, call, 8 * slot), 8) for slot in range(3))
        ranges = [f.load(I32, _at(f, call, 24 + 4 * slot)) for slot in range(4)]
        arguments = ", ".join(value.operand for value in (tensors, weights, *ranges))
        f.do(f"call void {kernel.text}({arguments})")
    f.give_back()


def _wake(module: Module) -> None:
    """wake(state, most): so many of the threads that sleep, first the one whose run it is."""
    f = module.function("wake", [("ptr", "state"), (I32, "most")])
    state, most = f.parameters
    left = f.reserve(I32, align_bytes=4)
    f.store(most, left)
    with f.loop(ir.integer(0), f.load(I32, _at(f, state, SLEEPERS))) as number:
        sleeper = _sleeper(f, state, number)
        asleep = f.compare("icmp ne", _load(f, I32, sleeper), ir.integer(0))
        wanted = f.compare("icmp sgt", f.load(I32, left), ir.integer(0))
        with f.when(f.binary("and", asleep, wanted)), f.when(_taken(f, sleeper)):
            f.store(f.binary("sub", f.load(I32, left), ir.integer(1)), left)
            f.call(RELEASE, ir.VOID, f.load(POINTER, _at(f, sleeper, LOCK), 8))
    f.give_back()


def _attempt(module: Module) -> None:
    """attempt(state): do a task; whether there was one, or another thread was faster."""
    f = module.function("attempt", [("ptr", "state")], ir.I1)
    (state,) = f.parameters
    word = _load(f, I64, state)
    index, limit = _field(f, word, 0), _field(f, word, _BITS)
    result = f.reserve(ir.I1, align_bytes=1)
    is_left = f.compare("icmp slt", index, limit)
    f.store(is_left, result, 1)
    with f.when(is_left):
        after = f.binary("add", word, ir.integer(1, I64))
        swap = f"cmpxchg {state.operand}, {word.operand}, {after.operand} acq_rel monotonic, align 8"
        pair = f.give(swap, "{ i64, i1 }")
        with f.when(f.give(f"extractvalue {pair.operand}, 1", ir.I1)):
            _do_task(f, state, word, index)
    f.give_back(f.load(ir.I1, result, 1))


def _do_task(f: Function, state: Register, word: Register, index: Register) -> None:
    """Do a task that was taken, and open the next round after the last one of this."""
    table = f.load(POINTER, _at(f, state, TABLE), 8)
    limit, following = (f.load(I32, f.at(f.load(POINTER, _at(f, table, 8 * slot), 8), index, I32)) for slot in (2, 3))
    f.call("task", ir.VOID, table, index)
    before = f.give(f"atomicrmw add {_at(f, state, DONE).operand}, i32 1 seq_cst, align 4", I32)
    with f.when(f.compare("icmp eq", f.binary("add", before, ir.integer(1)), limit)):
        with f.when(f.compare("icmp ne", following, ir.integer(0))):
            kept = f.binary("and", word, ir.integer(-1 << 2 * _BITS, I64))
            _open(f, state, kept, limit, following)
        with f.when(f.compare("icmp eq", following, ir.integer(0))):  # who asked may sleep
            f.call("wake", ir.VOID, state, ir.integer(1))


def _open(f: Function, state: Register, generation: Register, first: Register, end: Register) -> None:
    """A round's tasks, first to end, are there to be taken; who sleeps is called for as many as others can do."""
    start, stop = (f.convert("zext", value, I64) for value in (first, end))
    bounds = f.binary("or", f.binary("shl", stop, ir.integer(_BITS, I64)), start)
    _store(f, f.binary("or", generation, bounds), state)
    many = f.binary("sub", end, first)
    f.call("wake", ir.VOID, state, f.binary("sub", many, ir.integer(1)))


def _run(module: Module, target: CpuTarget) -> None:
    """run(state, table): all tasks of a table, by this thread and those that serve; one run at a time."""
    f = module.function("run", [("ptr", "state"), ("ptr", "table")])
    state, table = f.parameters
    modes = _flush(f, target)
    total = f.load(I32, _at(f, table, 32))
    f.store(table, _at(f, state, TABLE), 8)
    _store(f, ir.integer(0), _at(f, state, DONE))
    generation = f.binary("lshr", _load(f, I64, state), ir.integer(2 * _BITS, I64))
    generation = f.binary("shl", f.binary("add", generation, ir.integer(1, I64)), ir.integer(2 * _BITS, I64))
    _open(f, state, generation, ir.integer(0), f.load(I32, f.load(POINTER, _at(f, table, 16), 8)))

    def is_over() -> Register:
        return f.compare("icmp eq", _load(f, I32, _at(f, state, DONE)), total)

    with _forever(f) as loop:
        loop.again_if(f.call("attempt", ir.I1, state))
        loop.leave_if(is_over())
        _wait(f, target, state, ir.integer(0), _SPINS, is_over)
    _restore(f, target, modes)
    f.give_back()


def _run_alone(module: Module, target: CpuTarget) -> None:
    """run_alone(table): all tasks of a table, by this thread."""
    f = module.function("run_alone", [("ptr", "table")])
    (table,) = f.parameters
    modes = _flush(f, target)
    with f.loop(ir.integer(0), f.load(I32, _at(f, table, 32))) as index:
        f.call("task", ir.VOID, table, index)
    _restore(f, target, modes)
    f.give_back()


def _serve(module: Module, target: CpuTarget) -> None:
    """serve(state, number): what a worker does until its pool is closed: tasks, a brief wait for more, sleep."""
    f = module.function("serve", [("ptr", "state"), (I32, "number")])
    state, number = f.parameters
    modes = _flush(f, target)

    def is_closing() -> Register:
        return f.compare("icmp ne", _load(f, I32, _at(f, state, CLOSING)), ir.integer(0))

    with _forever(f) as loop:
        loop.again_if(f.call("attempt", ir.I1, state))
        loop.leave_if(is_closing())
        _wait(f, target, state, number, _IDLE_SPINS, is_closing)
    _restore(f, target, modes)
    f.give_back()


def _wait(
    f: Function, target: CpuTarget, state: Register, number: Register, spins: int, ends: Callable[[], Register]
) -> None:
    """Until there is a task, or a thread's end: for so many pauses, then asleep."""

    def is_called() -> Register:
        return f.binary("or", _is_open(f, _load(f, I64, state)), ends())

    idle = f.reserve(I32, align_bytes=4)
    f.store(ir.integer(0), idle)
    with _forever(f) as wait:
        wait.leave_if(is_called())
        _pause(f, target)
        with f.when(f.compare("icmp ugt", _count(f, idle), ir.integer(spins))):
            _sleep(f, _sleeper(f, state, number), is_called)
            f.store(ir.integer(0), idle)


def _sleep(f: Function, sleeper: Register, is_called: Callable[[], Register]) -> None:
    """Say that this thread sleeps, look once more, and wait for the lock that who calls it gives back."""
    f.give(f"atomicrmw xchg {sleeper.operand}, i32 1 seq_cst, align 4", I32)
    waits = f.reserve(ir.I1, align_bytes=1)
    f.store(Register("true", ir.I1), waits, 1)
    with f.when(is_called()):  # nobody may have seen that it sleeps; who has gives the lock back
        f.store(f.binary("xor", _taken(f, sleeper), Register("true", ir.I1)), waits, 1)
    with f.when(f.load(ir.I1, waits, 1)):
        f.call(ACQUIRE, I32, f.load(POINTER, _at(f, sleeper, LOCK), 8), ir.integer(1))


def _stop(module: Module) -> None:
    """stop(state): every worker returns."""
    f = module.function("stop", [("ptr", "state")])
    (state,) = f.parameters
    _store(f, ir.integer(1), _at(f, state, CLOSING))
    f.call("wake", ir.VOID, state, f.load(I32, _at(f, state, SLEEPERS)))
    f.give_back()


# Parts ----------------------------------------------------------------------------------------------------------------


def _is_open(f: Function, word: Register) -> Register:
    """Whether the word says that there is a task to take."""
    return f.compare("icmp slt", _field(f, word, 0), _field(f, word, _BITS))


def _taken(f: Function, sleeper: Register) -> Register:
    """Whether it was this thread that changed a sleeper from asleep to awake."""
    before = f.give(f"atomicrmw xchg {sleeper.operand}, i32 0 seq_cst, align 4", I32)
    return f.compare("icmp ne", before, ir.integer(0))


def _field(f: Function, word: Register, shift: int) -> Register:
    """A count in the word, as an int."""
    moved = f.binary("lshr", word, ir.integer(shift, I64)) if shift else word
    return f.convert("trunc", f.binary("and", moved, ir.integer(_MASK, I64)), I32)


def _sleeper(f: Function, state: Register, number: Register) -> Register:
    """The address of a thread's own bytes: 0 is whose run it is, the others are workers."""
    return f.at(_at(f, state, FIRST_SLEEPER), number, f"[{SLEEPER_BYTES} x i8]")


def _at(f: Function, pointer: Register, offset_bytes: int) -> Register:
    """An address some bytes further on."""
    return f.at(pointer, offset_bytes, ir.I8)


def _load(f: Function, kind: str, pointer: Register) -> Register:
    """What all threads agree on."""
    return f.give(f"load atomic {kind}, {pointer.operand} seq_cst, align {8 if kind == I64 else 4}", kind)


def _store(f: Function, value: Register, pointer: Register) -> None:
    """Something for all threads to see, and all that was written before."""
    f.do(f"store atomic {value.operand}, {pointer.operand} seq_cst, align {8 if value.type == I64 else 4}")


def _count(f: Function, counter: Register) -> Register:
    """One more in a variable; its new value."""
    value = f.binary("add", f.load(I32, counter), ir.integer(1))
    f.store(value, counter)
    return value


class _Repeated:
    """The ways out of a loop's body."""

    def __init__(self, f: Function) -> None:
        self._function = f
        self.again, self.end = f.new_label("again"), f.new_label("left")

    def again_if(self, condition: Register) -> None:
        """Begin anew."""
        self._branch(condition, self.again)

    def leave_if(self, condition: Register) -> None:
        """Go on behind the loop."""
        self._branch(condition, self.end)

    def _branch(self, condition: Register, goal: str) -> None:
        stay = self._function.new_label("stay")
        self._function.do(f"br i1 {condition.text}, label %{goal}, label %{stay}")
        self._function.label(stay)


@contextmanager
def _forever(f: Function) -> Iterator[_Repeated]:
    """What is added inside runs again and again until it is left."""
    loop = _Repeated(f)
    f.do(f"br label %{loop.again}")
    f.label(loop.again)
    yield loop
    f.do(f"br label %{loop.again}")
    f.label(loop.end)


# What CPUs have each in their own way ---------------------------------------------------------------------------------


def _pause(f: Function, target: CpuTarget) -> None:
    """This thread waits: a hint that saves power and frees what cores share."""
    if target.is_x86:
        f.call("llvm.x86.sse2.pause", ir.VOID)
    else:
        f.call("llvm.aarch64.hint", ir.VOID, ir.integer(1))


def _flush(f: Function, target: CpuTarget) -> Register:
    """From here on numbers too small for a normal float are 0 in this thread; what was before, to restore it."""
    if not target.is_x86:
        modes = f.call("llvm.aarch64.get.fpcr", I64)
        f.call("llvm.aarch64.set.fpcr", ir.VOID, f.binary("or", modes, ir.integer(_FLUSH_ARM, I64)))
        return modes
    place = f.reserve(I32, align_bytes=4)
    f.call("llvm.x86.sse.stmxcsr", ir.VOID, place)
    modes = f.load(I32, place)
    _set_modes(f, f.binary("or", modes, ir.integer(_FLUSH_X86)))
    return modes


def _restore(f: Function, target: CpuTarget, modes: Register) -> None:
    """As it was before."""
    if target.is_x86:
        _set_modes(f, modes)
    else:
        f.call("llvm.aarch64.set.fpcr", ir.VOID, modes)


def _set_modes(f: Function, modes: Register) -> None:
    place = f.reserve(I32, align_bytes=4)
    f.store(modes, place)
    f.call("llvm.x86.sse.ldmxcsr", ir.VOID, place)
