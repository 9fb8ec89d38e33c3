"""Registers and stack of the burst of networks with features where its registers have a limit, for 9.0."""

from dataclasses import replace

from burstproof.compile.numba_cubin import compile_kernel
from burstproof.compile.resources import resources_of
from burstproof.engine.cuda.kernels.catalogue import catalogue
from burstproof.engine.cuda.plan.packed import pack_network
from burstproof.engine.cuda.plan.shard_variant import whole
from burstproof.engine.features.key import ExtrasKey
from burstproof.engine.options import EngineOptions
from burstproof.engine.precision import Storage, precision_named
from burstproof.network.synthetic.kinds import seeded_network
from suites.support.bench.feature_networks import with_every_feature

KEYS = {
    "all": ExtrasKey(trains=True, homeostats=True, area_modulators=True, modulators=True),
    "homeostats": ExtrasKey(homeostats=True),
    "trains": ExtrasKey(trains=True),
    "modulators": ExtrasKey(area_modulators=True, modulators=True),
    "memories": ExtrasKey(trains=True, homeostats=True, area_modulators=True, modulators=True, replays=True),
}


def main():
    for kind, neurons in (("parameters", 300_000), ("inhibition", 1_000_000), ("uniform", 1_000_000)):
        network = seeded_network(kind, neurons, 4, 0.01, 3).network()
        made = {"as it is": pack_network(network, EngineOptions()).variant}
        if kind != "uniform":
            made["with every feature"] = pack_network(with_every_feature(network), EngineOptions()).variant
        for how, base in made.items():
            for name, key in KEYS.items():
                for many in (False, True):
                    v = replace(base, extras=key, few_classes=not many, overlapped=True, row_length=0)
                    for precision in ("fp32", "fp16") if name == "all" and not many else ("fp32",):
                        stored = replace(v.features, storage=Storage(precision_named(precision), 0.25))
                        shard = whole(replace(v, features=stored))
                        spec = next(s for s in catalogue(replace(v, features=stored)) if s.name == "burst")
                        used = resources_of(compile_kernel(spec.name, spec.function, spec.signature, (9, 0), spec.registers))
                        print(
                            f"{kind} {how}, {name}{', many classes' if many else ''}, {precision}:",
                            f"{shard.threads}x{shard.per_thread} limit {spec.registers}",
                            used.registers, used.stack_bytes, used.local_bytes, flush=True,
                        )


main()
