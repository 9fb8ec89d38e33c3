import sys
from burstproof.engine.cuda.engine import CudaEngine
from burstproof.engine.options import EngineOptions, CudaOptions
from burstproof.engine.state import Record, Stimulus
from burstproof.network.synthetic.kinds import seeded_network
kind, n = sys.argv[1], int(sys.argv[2])
seeded = seeded_network(kind, n, 100, 0.01, 11)
start = {b: Stimulus(forced=i) for b, i in seeded.start().items()}
engine = CudaEngine.from_spec(seeded.spec, EngineOptions(cuda=CudaOptions(graphs=False)), None) if n > 2_000_000 and seeded.plain else CudaEngine.create(seeded.network(), EngineOptions(cuda=CudaOptions(graphs=False)))
engine.run(max(start) + 60, start)
engine.run(10, record=Record.NONE)
print("launch", engine.launch())
