# closed loops: today's p50/p99/p99.9, and what a call consists of
cat > $RES/probe.py <<'PY'
import importlib.util, os, sys, time
import numpy as np
RES = os.environ["RES"]
import burstproof.engine.cuda.kernels.closed_loop as plain
PATCH = "--patched" in sys.argv
if PATCH:
    text = open(plain.__file__).read()
    text = text.replace('_TRIES = 1 << 20', '''_TRIES = 1 << 20
from llvmlite import ir
from numba import types
def _clock(typingctx, seed):
    def code(context, builder, signature, args):
        kind = ir.FunctionType(ir.IntType(64), [ir.IntType(64)])
        return builder.call(ir.InlineAsm(kind, "mov.u64 $0, %clock64;", "=l,l,~{memory}", True), [args[0]])
    return types.int64(types.int64), code
_clock = cuda.extending.intrinsic(_clock)
''')
    text = text.replace('''        number = np.int64(1)
        go = begin''', '''        number = np.int64(1)
        mine = block == none and thread == none
        t0 = _clock(np.int64(0)); t1 = t0
        go = begin''')
    text = text.replace('''            turn = Turn(np.uint32((go''', '''            if mine:
                t1 = _clock(t0); mailbox.relay[20] += t1 - t0; t0 = t1
            turn = Turn(np.uint32((go''')
    text = text.replace('''            cuda.syncthreads()
            if thread == none:
                add(mailbox.relay, ARRIVED)''', '''            cuda.syncthreads()
            if mine:
                t1 = _clock(t0); mailbox.relay[21] += t1 - t0; t0 = t1
            if thread == none:
                add(mailbox.relay, ARRIVED)''')
    text = text.replace('''                cuda.syncthreads()
                gather(''', '''                cuda.syncthreads()
                if mine:
                    t1 = _clock(t0); mailbox.relay[22] += t1 - t0; t0 = t1
                gather(''')
    text = text.replace('''                    end_turn(go, steering, mailbox)
            number''', '''                    if mine:
                        t1 = _clock(t0); mailbox.relay[23] += t1 - t0; t0 = t1
                    end_turn(go, steering, mailbox)
                    if mine:
                        t1 = _clock(t0); mailbox.relay[24] += t1 - t0; t0 = t1
            number''')
    # inside begin_turn: the time from the call being heard to GO being stored
    text = text.replace('''            if go & np.int64(GO_STIMULATED):
                take_in''', '''            u0 = _clock(go)
            if go & np.int64(GO_STIMULATED):
                take_in''')
    text = text.replace('''                store(mailbox.relay, GO, go)
        return go''', '''                store(mailbox.relay, GO, go)
                mailbox.relay[25] += _clock(go) - u0
        return go''')
    open(f"{RES}/patched_loop.py", "w").write(text)
    spec = importlib.util.spec_from_file_location("burstproof.engine.cuda.kernels.closed_loop", f"{RES}/patched_loop.py")
    module = importlib.util.module_from_spec(spec); sys.modules[spec.name] = module; spec.loader.exec_module(module)
from burstproof.engine.cuda.engine import CudaEngine
from burstproof.engine.cpu.engine import CpuEngine
from burstproof.engine.options import EngineOptions
from burstproof.engine.state import Record
from suites.support.bench.loop_bench import stimuli_for, _differ
from suites.support.bench.rows import Row
def bench(row, network, stims, calls):
    with CudaEngine.create(network, EngineOptions()) as engine:
        engine.run(1, row.start)
        with CpuEngine.create(network, EngineOptions()) as judge:
            judge.restore(engine.state())
            print(row.name, "differs:", _differ(judge, engine, stimuli_for(row.neurons, 16), row.checked_bursts), flush=True)
        engine.run(512, record=Record.NONE)
        b = time.perf_counter(); engine.run(4096, record=Record.NONE); per = (time.perf_counter() - b) / 4096 * 1e6
        v = engine._devices.packed.variant if hasattr(engine, "_devices") else engine.devices.packed.variant
        print(f"{row.name} batch {per:.2f} us; fused {v.fused}; recalled {v.recalled} long {v.long_rows} word {v.word}", flush=True)
        for stimulated in stims:
            pairs = [(s.ids, s.amounts) for s in stimuli_for(row.neurons, stimulated)]
            with engine.closed_loop() as loop:
                lat = np.empty(calls); clock = time.perf_counter; fired = 0
                for i in range(calls):
                    ids, am = pairs[i % 64]
                    s = clock(); f = loop.step(ids, am); lat[i] = clock() - s; fired += len(f)
                k = loop._kernel
                own = np.empty(5000)   # compiled part alone
                for i in range(5000):
                    ids, am = pairs[i % 64]; number = loop._number(loop._done + 1)
                    s = clock()
                    found = loop._calls.call(k.mail, k.answers, ids, am, np.empty(0, np.uint32), loop._valid, loop._limits, number, k.answering)
                    own[i] = clock() - s
                    assert found >= 0
                    loop._done += 1
                p = np.percentile(lat[1000:] * 1e6, [10, 50, 99, 99.9])
                print(f"{row.name} stim {stimulated} fired {fired/calls:.0f} answering {k.answering} grid {k._call.grid if hasattr(k._call,'grid') else '?'}: p10 {p[0]:.2f} p50 {p[1]:.2f} p99 {p[2]:.2f} p99.9 {p[3]:.2f}; call alone p50 {np.median(own)*1e6:.2f}", flush=True)
                if PATCH:
                    loop.pause()
                    host = np.empty(32, np.int64); eng = loop
                    engine_dev = k._runtime; st = k._stream
                    engine_dev.download(host, k._relay, st); st.synchronize()
                    turns = max(1, host[16] // (k._call.grid[0] if isinstance(getattr(k._call,'grid',1), tuple) else getattr(k._call,'grid',1)))
                    print("  cycles a turn: begin %.0f (of it take-in %.0f) burst %.0f arrive %.0f gather %.0f answer %.0f; turns %d" % tuple([host[20]/turns, host[25]/turns] + [host[j]/turns for j in (21,22,23,24)] + [turns]), flush=True)
if "--tiny" in sys.argv:
    row = Row(2000, 0.01, generated=False) if False else Row(2000, 0.01)
    bench(row, row.network(), (1, 16), 20000)
row = Row(100_000, 0.01); bench(row, row.network(), (16, 1000), 30000 if PATCH else 100000)
if "--million" in sys.argv:
    row = Row(1_000_000, 0.01, checked_bursts=10); bench(row, row.network(), (16, 1000), 20000 if PATCH else 100000)
PY
nvidia-smi --query-gpu=name,clocks.sm,clocks.max.sm --format=csv; lscpu | grep -E "Model name|^CPU\(s\)"
timeout 55 python3 $RES/probe.py --million
timeout 34 python3 $RES/probe.py --patched --tiny
