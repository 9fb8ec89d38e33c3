import csv,sys,glob,collections
for f in sorted(sys.argv[1:]):
    lines=[l for l in open(f) if not l.startswith('==')]
    rows=list(csv.DictReader(lines))
    per=collections.OrderedDict()
    for r in rows:
        per.setdefault((r['ID'],r['Kernel Name'][:60]),{})[r['Metric Name']]=(float(r['Metric Value'].replace(',','')),r['Metric Unit'])
    print(f)
    n=0
    for (i,k),m in per.items():
        t=m['gpu__time_duration.sum']; us=t[0]/1000 if t[1] in('ns','nsecond') else t[0]
        if us<2: continue
        n+=1
        if n>6: break
        def g(x):
            v,u=m.get(x,(0,'')); 
            return v*{'Gbyte':1e3,'Mbyte':1,'Kbyte':1e-3,'byte':1e-6}.get(u,1)
        print(f"  {k.split('(')[0][-30:]:30s} {us:7.1f} us rd {g('dram__bytes_read.sum'):6.1f} wr {g('dram__bytes_write.sum'):6.1f} MB  L2 rd {g('lts__t_sectors_op_read.sum')/1e6:.2f} wr {g('lts__t_sectors_op_write.sum')/1e6:.2f} red {g('lts__t_sectors_op_red.sum')/1e6:.2f} atom {g('lts__t_sectors_op_atom.sum')/1e6:.2f} hit {g('lts__t_sector_hit_rate.pct'):.0f} regs {g('launch__registers_per_thread'):.0f} grid {g('launch__grid_size'):.0f}x{g('launch__block_size'):.0f} act {g('sm__warps_active.avg.pct_of_peak_sustained_active'):.0f} iss {g('smsp__issue_active.avg.pct_of_peak_sustained_active'):.0f} bankc {g('l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum')/1e6:.1f}M long {g('smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio'):.1f} short {g('smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio'):.1f} bar {g('smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio'):.1f} mio {g('smsp__average_warps_issue_stalled_mio_throttle_per_issue_active.ratio'):.1f} lg {g('smsp__average_warps_issue_stalled_lg_throttle_per_issue_active.ratio'):.1f}")
