import sys
from dataclasses import replace
from burstproof.compile.numba_cubin import compile_kernel
from burstproof.compile.resources import resources_of
from burstproof.engine.cuda.kernels.catalogue import catalogue
from suites.support.compile.variants import chosen_variants
v=chosen_variants()['queues per owner, integers']
q=replace(v.queues,owners=126,span=39936,part=100,bin_room=421,notes_parts=False,rows_put_off=0,**({'most_parts':1024} if hasattr(v.queues,'most_parts') else {}))
w=replace(v,overlapped=True,row_length=int(sys.argv[1]),recalled=1,target_bits=23,queues=q,palette=False) if True else None
for s in catalogue(w):
    if s.name=='enqueue' or s.name=='burst':
        im=compile_kernel(s.name,s.function,s.signature,(9,0),s.registers)
        print(s.name,resources_of(im)); open(f'/tmp/{s.name}_{sys.argv[2]}.cubin','wb').write(im.cubin)
