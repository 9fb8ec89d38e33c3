exec(open(__file__.rsplit("/",1)[0]+"/count.py").read().split("for arg in")[0])
import burstproof.compile.resources as R, sys
for arg in sys.argv[1:]:
    kind,n=arg.split(':'); n=int(float(n)*1e6)
    p=pack_network(seeded_network(kind,10000,100,0.01,3).network(),EngineOptions())
    sizes=replace(p.sizes,neurons=n,static_entries=p.sizes.static_entries*(n//10000))
    if kind in('fractions','everything'): sizes=replace(sizes,palette=510)
    for spec in catalogue(replace(sized(p.variant,sizes),overlapped=True)):
        if spec.name!='burst': continue
        im=compile_kernel(spec.name, spec.function, spec.signature, (9,0), spec.registers)
        r=R.resources_of(im); i=R.instructions_of(im); print(arg,r.registers,r.stack_bytes,i.spills,i.total,flush=True)
