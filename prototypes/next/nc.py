import sys
from dataclasses import replace
from burstproof.engine.cuda.engine import CudaEngine
from burstproof.engine.options import CudaOptions, EngineOptions
from burstproof.engine.state import Record
from suites.support.shards.kind_rows import kind_row
import burstproof.engine.cuda.plan.sizing as SZ
kind,n=sys.argv[1:3]
o=SZ._with_rows
if 'norl' in sys.argv: SZ._with_rows=lambda v,z: replace(o(v,z),row_length=0)
row=kind_row(kind,int(n)); 
if 'fan50' in sys.argv: row=replace(row,synapses_per_neuron=50)
e=CudaEngine.from_spec(row.spec,EngineOptions(cuda=CudaOptions(firing_rate=row.firing_rate)))
e.run(max(3,max(row.start)),row.start); e.run(64,record=Record.NONE)
