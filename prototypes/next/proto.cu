#include <cstdio>
#include <cstdlib>
#include <vector>
#include <algorithm>
#include <cooperative_groups.h>
#include <cuda_runtime.h>
namespace cg = cooperative_groups;
#define CK(x) do{cudaError_t e=(x); if(e){printf("%s:%d %s\n",__FILE__,__LINE__,cudaGetErrorString(e)); exit(1);} }while(0)
typedef unsigned int u32; typedef unsigned short u16; typedef unsigned long long u64; typedef unsigned char u8;
__host__ __device__ inline u32 mix(u32 x){x^=x>>16;x*=0x7feb352du;x^=x>>15;x*=0x846ca68bu;x^=x>>16;return x;}
__host__ __device__ inline u32 target_of(u32 s,u32 k,u32 N){return (u32)(((u64)mix(s*131071u+k*0x9e3779b9u+7u)*N)>>32);}
__host__ __device__ inline int weight_of(u32 s,u32 k){return 1+(int)(mix(s*77777u+k*1234567u)&127);}
__host__ __device__ inline bool fires(u32 n,u32 b,u32 thr){return mix(n*2654435761u+b*0x85ebca6bu)<thr;}
// build records: one thread per source
template<int ENTRY> __global__ void build(u8* rec,u32 N,u32 F,u32 G,u32 group,int cap,u32* over){
  u32 s=blockIdx.x*blockDim.x+threadIdx.x; if(s>=N)return;
  u8 cnt[256]; for(u32 g=0;g<G;g++)cnt[g]=0;
  for(u32 k=0;k<F;k++){u32 t=target_of(s,k,N);u32 g=t/group;u32 l=t-g*group; 
    if(cnt[g]>=cap){atomicAdd(over,1u);continue;}
    u64 at=((u64)s*G+g)*cap+cnt[g]++;
    if(ENTRY==2)((u16*)rec)[at]=(u16)l; else ((u32*)rec)[at]=l|((u32)weight_of(s,k)<<20);}
  for(u32 g=0;g<G;g++)for(int c=cnt[g];c<cap;c++){u64 at=((u64)s*G+g)*cap+c; if(ENTRY==2)((u16*)rec)[at]=0xffff; else ((u32*)rec)[at]=0xffffffffu;}
}
struct P{long long* st; const u8* rec; float* v; u8* rc; u8* cc; u32* ids; u32* counts; u32 N,G,span,room,thr;};
__device__ inline u32 ldc(const u32 addr,u32 rank){u32 r,v; asm volatile("mapa.shared::cluster.u32 %0,%1,%2;":"=r"(r):"r"(addr),"r"(rank)); asm volatile("ld.shared::cluster.u32 %0,[%1];":"=r"(v):"r"(r)); return v;}
template<int S,int ENTRY,int CAP,int PACK,int PER,int WAYS> __global__ void __launch_bounds__(1024) burst(P p,u32 b){
  extern __shared__ u32 own[];
  __shared__ u32 nf, place; __shared__ u32 fl[1024];
  const u32 t=threadIdx.x; const u32 rank=blockIdx.x%S, g=blockIdx.x/S;
  const u32 words=p.span*S/PACK;
  asm volatile("griddepcontrol.launch_dependents;":::"memory");
  for(u32 i=t*4;i<words;i+=4096) *(uint4*)(own+i)=make_uint4(0,0,0,0);
  if(t==0)nf=0;
  asm volatile("griddepcontrol.wait;":::"memory");
  if(t==0)p.st[blockIdx.x*8+0]=clock64();const u32 n0=(g*S+rank)*p.span;
  const u32 cnt=p.counts[(b-1)&63]; if(blockIdx.x==0&&t==0)p.counts[(b+1)&63]=0;
  const u32* ids=p.ids+(u64)((b-1)&1)*p.room;
  float v[PER]; u32 r[PER];
  constexpr int W=CAP*ENTRY/16; 
  __syncthreads();
  // parts
  u32 i=rank+S*t; 
  const uint4* recs=(const uint4*)p.rec;
  // first round loads ahead
  u32 id[WAYS]; 
#pragma unroll
  for(int j=0;j<WAYS;j++){u32 at=i+j*S*1024; id[j]=at<cnt?ids[at]:0xffffffffu;}
#pragma unroll
  for(int j=0;j<PER;j++){u32 n=n0+t+j*1024; bool ok=(t+j*1024)<p.span&&n<p.N; v[j]=ok?p.v[n]:0.f; r[j]=ok?(u32)p.rc[n]|((u32)p.cc[n]<<8):0;}
if(t==0)p.st[blockIdx.x*8+1]=clock64();  while(i<cnt){
    uint4 d[WAYS][W];
#pragma unroll
    for(int j=0;j<WAYS;j++){
#pragma unroll
      for(int w=0;w<W;w++){ d[j][w]=make_uint4(~0u,~0u,~0u,~0u); if(id[j]!=0xffffffffu) d[j][w]=__ldcs(recs+((u64)id[j]*p.G+g)*W+w);} }
    i+=S*1024*WAYS;
    u32 nid[WAYS];
#pragma unroll
    for(int j=0;j<WAYS;j++){u32 at=i+j*S*1024; nid[j]=at<cnt?ids[at]:0xffffffffu;}
#pragma unroll
    for(int j=0;j<WAYS;j++)
#pragma unroll
      for(int w=0;w<W;w++){ const u32 q[4]={d[j][w].x,d[j][w].y,d[j][w].z,d[j][w].w};
#pragma unroll
        for(int k=0;k<4;k++){
          if(ENTRY==2){ u32 a=q[k]&0xffff,c=q[k]>>16;
            if(a!=0xffff)atomicAdd(own+a/PACK,1u<<((a%PACK)*(32/PACK)));
            if(c!=0xffff)atomicAdd(own+c/PACK,1u<<((c%PACK)*(32/PACK)));
          } else if(q[k]!=0xffffffffu){ u32 a=q[k]&0xfffff,x=q[k]>>20; if(PACK==1)x=x*256+1; atomicAdd(own+a/PACK,x<<((a%PACK)*(32/PACK))); }
        }}
#pragma unroll
    for(int j=0;j<WAYS;j++)id[j]=nid[j];
  }
if(t==0)p.st[blockIdx.x*8+2]=clock64();  if(S>1){asm volatile("barrier.cluster.arrive.release.aligned;":::"memory");asm volatile("barrier.cluster.wait.acquire.aligned;":::"memory");}
  else __syncthreads();
if(t==0)p.st[blockIdx.x*8+3]=clock64();  u32 sm=(u32)__cvta_generic_to_shared(own)+rank*p.span/PACK*4;
  // merge + dynamics; word-wise for PACK>1: thread handles neurons t+j*1024, reading words
#pragma unroll
  for(int j=0;j<PER;j++){
    u32 l=t+j*1024,n=n0+l; bool ok=l<p.span&&n<p.N; u32 sum=0;
    if(ok){
      if(PACK==1){ if(S==1) sum=own[l]; else
#pragma unroll
        for(int s=0;s<S;s++)sum+=ldc(sm+l*4,s); }
      else { u32 w=0;
        if(S==1) w=own[l/PACK]; else
#pragma unroll
        for(int s=0;s<S;s++)w+=ldc(sm+l/PACK*4,s);
        sum=(w>>((l%PACK)*(32/PACK)))&((1u<<(32/PACK%32))-1); }
    }
    bool f=false;
    if(ok){ if(sum){ p.v[n]=v[j]+(ENTRY==4&&PACK==1?(float)(sum>>8):(float)sum); } if(r[j]==0x1234)p.rc[n]=0; f=fires(n,b,p.thr);}
    u32 vote=__ballot_sync(~0u,f);
    if(vote){u32 base; if((t&31)==0)base=atomicAdd(&nf,__popc(vote)); base=__shfl_sync(~0u,base,0); if(f)fl[base+__popc(vote&((1u<<(t&31))-1))]=n;}
  }
if(t==0)p.st[blockIdx.x*8+4]=clock64();  if(S>1){asm volatile("barrier.cluster.arrive.release.aligned;":::"memory");}
  __syncthreads();
  if(t==0)place=atomicAdd(&p.counts[b&63],nf);
  __syncthreads();if(t==0)p.st[blockIdx.x*8+5]=clock64();
  u32* out=p.ids+(u64)(b&1)*p.room+place;
  if(t<nf)out[t]=fl[t];
  if(S>1){asm volatile("barrier.cluster.wait.acquire.aligned;":::"memory");}
if(t==0)p.st[blockIdx.x*8+6]=clock64();}
// reference: global RED way in 1 kernel, for checking
__global__ void check_v(const float* a,const float* b,u32 N,u32* bad){u32 n=blockIdx.x*blockDim.x+threadIdx.x;if(n<N&&a[n]!=b[n])atomicAdd(bad,1u);}
template<int ENTRY> __global__ void ref_v(float* v,u32 N,u32 F,u32 b,u32 thr){ // adds contributions of burst b's firings
  u32 s=(blockIdx.x*blockDim.x+threadIdx.x)/32,l=threadIdx.x&31; if(s>=N||!fires(s,b,thr))return;
  for(u32 k=l;k<F;k+=32)atomicAdd(v+target_of(s,k,N),ENTRY==4?(float)weight_of(s,k):1.f);}
template<int S,int ENTRY,int CAP,int PACK,int PER,int WAYS,int GR=0> void go(const char*name,u32 N,u32 F,double rate){
  P p; u32 G=132/S; if(S>1)G=GR?GR:G; u32 blocks=G*S; u32 span=((N+blocks-1)/blocks+15)/16*16; p.N=N; long long* st_; CK(cudaMalloc(&st_,132*8*8)); p.st=st_;p.G=G;p.span=span;p.room=N;p.thr=(u32)(rate*4294967296.0);
  if((span+1023)/1024>PER){printf("%s PER too small\n",name);return;}
  u64 bytes=(u64)N*G*CAP*ENTRY; u8* rec; CK(cudaMalloc(&rec,bytes)); p.rec=rec;
  u32* over; CK(cudaMalloc(&over,8)); CK(cudaMemset(over,0,8));
  build<ENTRY><<<(N+127)/128,128>>>(rec,N,F,G,span*S,CAP,over); CK(cudaDeviceSynchronize());
  CK(cudaMalloc(&p.v,4*N));CK(cudaMemset(p.v,0,4*N));CK(cudaMalloc(&p.rc,N));CK(cudaMemset(p.rc,0,N));CK(cudaMalloc(&p.cc,N));CK(cudaMemset(p.cc,0,N));
  CK(cudaMalloc(&p.ids,8ull*N));CK(cudaMalloc(&p.counts,256));CK(cudaMemset(p.counts,0,256));
  auto k=burst<S,ENTRY,CAP,PACK,PER,WAYS>; size_t sm=(size_t)span*S/PACK*4;
  if(cudaFuncSetAttribute(k,cudaFuncAttributeMaxDynamicSharedMemorySize,(int)sm)){cudaGetLastError();printf("%s: %zu bytes shared too much\n",name,sm);return;}
  cudaStream_t st; CK(cudaStreamCreate(&st)); const int B=64;
  auto launch=[&](u32 b){cudaLaunchConfig_t c={};c.gridDim=blocks;c.blockDim=1024;c.dynamicSmemBytes=sm;c.stream=st;cudaLaunchAttribute a[2];a[0].id=cudaLaunchAttributeProgrammaticStreamSerialization;a[0].val.programmaticStreamSerializationAllowed=1;a[1].id=cudaLaunchAttributeClusterDimension;a[1].val.clusterDim.x=S;a[1].val.clusterDim.y=1;a[1].val.clusterDim.z=1;c.attrs=a;c.numAttrs=S>1?2:1;CK(cudaLaunchKernelEx(&c,k,p,b));};
  for(u32 b=64;b<80;b++)launch(b); CK(cudaStreamSynchronize(st));
  float* rv;CK(cudaMalloc(&rv,4*N));CK(cudaMemset(rv,0,4*N));
  for(u32 b=64;b<79;b++)ref_v<ENTRY><<<(N*32ull+255)/256,256>>>(rv,N,F,b,p.thr);
  check_v<<<(N+255)/256,256>>>(p.v,rv,N,over+1); u32 h[2];CK(cudaMemcpy(h,over,8,cudaMemcpyDeviceToHost));
  cudaGraph_t gr;cudaGraphExec_t ge;CK(cudaStreamBeginCapture(st,cudaStreamCaptureModeThreadLocal));for(u32 b=64;b<64+B;b++)launch(b);CK(cudaStreamEndCapture(st,&gr));CK(cudaGraphInstantiate(&ge,gr,0));
  cudaEvent_t e0,e1;cudaEventCreate(&e0);cudaEventCreate(&e1);
  for(int i=0;i<20;i++)CK(cudaGraphLaunch(ge,st));
  std::vector<float> ts; for(int r=0;r<15;r++){cudaEventRecord(e0,st);for(int i=0;i<10;i++)CK(cudaGraphLaunch(ge,st));cudaEventRecord(e1,st);CK(cudaEventSynchronize(e1));float ms;cudaEventElapsedTime(&ms,e0,e1);ts.push_back(ms*1e3f/(10*B));}
  std::sort(ts.begin(),ts.end()); cudaFuncAttributes fa; cudaFuncGetAttributes(&fa,k);
  {int mc=0; cudaLaunchConfig_t c={};c.gridDim=blocks;c.blockDim=1024;c.dynamicSmemBytes=sm;cudaLaunchAttribute a[1];a[0].id=cudaLaunchAttributeClusterDimension;a[0].val.clusterDim.x=S;a[0].val.clusterDim.y=1;a[0].val.clusterDim.z=1;c.attrs=a;c.numAttrs=1;cudaOccupancyMaxActiveClusters(&mc,k,&c); std::vector<long long> hs(132*8);cudaMemcpy(hs.data(),st_,132*8*8,cudaMemcpyDeviceToHost); double m[7]={0};for(u32 q=0;q<blocks;q++)for(int x=1;x<7;x++)m[x]+=(hs[q*8+x]-hs[q*8])/1.98e3/blocks; printf("   clusters at once %d groups %u; us after wait: list %.2f parts %.2f merged-barrier %.2f dynamics %.2f place %.2f end %.2f\n",mc,G,m[1],m[2],m[3],m[4],m[5],m[6]);}
  printf("%-28s N %8u rate %.3f S %d entry %d cap %2d pack %d smem %6zu regs %d: %7.2f us  over %u wrong %u  %.2f GB\n",name,N,rate,S,ENTRY,CAP,PACK,sm,fa.numRegs,ts[7],h[0],h[1],bytes/1e9);fflush(stdout);
  cudaFree(rec);cudaFree(over);cudaFree(p.v);cudaFree(p.rc);cudaFree(p.cc);cudaFree(p.ids);cudaFree(p.counts);cudaFree(rv);cudaGraphExecDestroy(ge);cudaGraphDestroy(gr);
}
int main(){
  const u32 M=1000000;
  go<4,2,16,1,8,3,32>("uniform 32-bit",M,100,.01);
  go<4,2,8,1,8,3,32>("uniform 32-bit cap8",M,100,.01);
  go<4,2,8,2,8,3,32>("uniform 16-bit cap8",M,100,.01);
  go<4,2,8,4,8,3,32>("uniform 8-bit cap8",M,100,.01);
  go<2,2,8,1,8,3>("uniform S2",M,100,.01);
  go<2,2,8,1,8,5>("uniform S2 5 ways",M,100,.01);
  go<4,4,8,1,8,3,32>("weights 32-bit cap8",M,100,.01);
  go<4,4,12,1,8,3,32>("weights 32-bit cap12",M,100,.01);
  go<2,4,4,1,8,3>("weights S2 cap4",M,100,.01);
  go<8,2,16,1,8,2,15>("uniform S8 G15",900000,100,.01);
  go<8,2,16,2,8,2,16>("uniform S8 G16 16-bit",M,100,.01);
  go<8,2,16,4,16,2,15>("uniform S8 8-bit",M,100,.01);
  go<4,2,16,1,8,3,32>("uniform 10%",M,100,.1);
  go<4,4,12,1,8,3,32>("weights 10%",M,100,.1);
  go<4,2,8,1,4,1,32>("uniform 100K cap8",100000,100,.01);
  go<2,2,8,1,4,1>("uniform 100K S2",100000,100,.01);
  go<1,2,8,1,4,1>("uniform 100K S1",100000,100,.01);
  go<4,4,8,1,4,1,32>("weights 100K",100000,100,.01);
  go<4,2,8,1,4,2,32>("uniform 500K cap8",500000,100,.01);
  go<2,2,8,1,4,2>("uniform 500K S2",500000,100,.01);
  go<4,2,8,1,16,3,32>("uniform 1.7M",1700000,100,.01);
  go<4,2,8,2,32,3,32>("uniform 3M 16-bit",3000000,100,.01);
  return 0;
}
