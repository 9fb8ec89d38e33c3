#include <cstdio>
#include <cstdint>
#include <vector>
#include <algorithm>
#include <cuda_runtime.h>
#define CK(x) do{cudaError_t err_=(x); if(err_){printf("line %d: %s\n",__LINE__,cudaGetErrorString(err_)); exit(1);} }while(0)
typedef uint32_t u32; typedef uint64_t u64;
const int LEN=100;
__host__ __device__ inline u32 mix(u64 x){x^=x>>31; x*=0x9E3779B97F4A7C15ull; x^=x>>29; x*=0xBF58476D1CE4E5B9ull; x^=x>>32; return (u32)x;}
__global__ void fill(u32* t,int16_t* a,u64 n,u32 N){for(u64 i=blockIdx.x*(u64)blockDim.x+threadIdx.x;i<n;i+=(u64)gridDim.x*blockDim.x){u32 h=mix(i+1);t[i]=(u64)h*N>>32;a[i]=(int16_t)(1+(mix(i^0x5555)&255))*((h&7)==0?-1:1);}}
__global__ void direct(const u32*t,const int16_t*a,const u32*f,u32 nf,int*s){for(u64 i=blockIdx.x*(u64)blockDim.x+threadIdx.x;i<(u64)nf*LEN;i+=(u64)gridDim.x*blockDim.x){u64 j=(u64)f[i/LEN]*LEN+i%LEN;atomicAdd(&s[t[j]],(a[j]<<8)+1);}}
__global__ void undirect(const u32*q,const u32*len,u32 owners,u32 span,u32 room,int*s){for(u32 o=blockIdx.x;o<owners;o+=gridDim.x)for(u32 i=threadIdx.x;i<min(len[o],room);i+=blockDim.x){u32 e=q[(u64)o*room+i];atomicAdd(&s[o*span+(e&0xffff)],-((((int)e>>16)<<8)+1));}}
__global__ void nonzero(const int*s,u32 n,u32*c){for(u32 i=blockIdx.x*blockDim.x+threadIdx.x;i<n;i+=gridDim.x*blockDim.x)if(s[i])atomicAdd(c,1);}
__global__ void rotate(){}
// L: 0 loads, 1 + ranks, 2 + bins, 3 all
template<int T,int K,int OWN,int SPAN,int C,int U,bool PRE,int L>
__global__ void __launch_bounds__(T) enq(const u32*__restrict__ tg,const int16_t*__restrict__ am,const u32*__restrict__ fired,u32 nf,u32*q,u32*len,u32 room,u32*sink){
  extern __shared__ u32 sm[]; u32*bins=sm; u32*cnt=sm+OWN*C; u32*firsts=cnt+OWN;
  const u32 tid=threadIdx.x,lane=tid&31,warp=tid>>5; const u32 W=T*K, TH=C-C/4;
  for(u32 o=tid;o<OWN;o+=T)cnt[o]=0;
  u32 parts=nf>blockIdx.x?(nf-blockIdx.x+gridDim.x-1)/gridDim.x:0;
  for(u32 i=tid;i<parts;i+=T)firsts[i]=fired[i*gridDim.x+blockIdx.x]*LEN;
  __syncthreads();
  u32 total=parts*LEN; if(!total)return;
  u32 t[K],nt[K]; int a[K],na[K]; u32 acc=0;
  auto load=[&](u32 base,u32*x,int*y){
    #pragma unroll
    for(int i=0;i<K;i++){u32 p=min(base+warp*32*K+i*32+lane,total-1);u32 r=p/LEN;u32 j=firsts[r]+p-r*LEN;x[i]=__ldcs(tg+j);y[i]=__ldcs(am+j);} };
  load(0,t,a);
  for(u32 base=0;base<total;base+=W){
    bool last=base+W>=total; u32 pend=0;
    #pragma unroll
    for(int i=0;i<K;i++)if(base+warp*32*K+i*32+lane<total)pend|=1u<<i;
    if(PRE&&!last)load(base+W,nt,na);
    while(true){
      bool crowd=false;
      #pragma unroll
      for(int i=0;i<K;i++){ if(pend>>i&1){u32 o=t[i]/SPAN;
        if(L==0){acc^=t[i]+a[i];continue;}
        u32 s=atomicAdd(&cnt[o],1); if(L==1){acc^=s;continue;}
        if(s<C||L<3){bins[o*C+(L<3?s%C:s)]=(t[i]-o*SPAN)|(u32)a[i]<<16;pend&=~(1u<<i);} crowd|=s>=TH; } }
      if(L<3)break;
      if(!(__syncthreads_or(crowd)||last))break;
      const u32 OPW=(OWN+T/32-1)/(T/32);
      for(u32 g=0;g<OPW;g+=32){
        u32 n=0,full=0,b=0,own=warp+(g+lane)*(T/32);
        if(own<OWN){n=min(cnt[own],(u32)C);full=last?n:n&~(U-1);if(full)b=atomicAdd(&len[own],full);cnt[own]=n-full;}
        for(u32 j=g;j<min(OPW,g+32);j++){ u32 o=warp+j*(T/32); u32 nn=__shfl_sync(~0u,n,j-g),ff=__shfl_sync(~0u,full,j-g),bb=__shfl_sync(~0u,b,j-g);
          for(u32 p=lane;p<ff;p+=32)if(bb+p<room)q[(u64)o*room+bb+p]=bins[o*C+p];
          if(ff){u32 e=0;bool m=ff+lane<nn;if(m)e=bins[o*C+ff+lane];__syncwarp();if(m)bins[o*C+lane]=e;}
        } }
      if(!__syncthreads_or(pend!=0))break;
    }
    if(PRE){
      #pragma unroll
      for(int i=0;i<K;i++){t[i]=nt[i];a[i]=na[i];}
    } else if(!last)load(base+W,t,a);
  }
  if(L<3)if(acc==0x12345678)sink[0]=acc;
}
// owner: adds its queue, then potentials; MODE 0 scalars x4, 1 uint4, 2 uint4 x2; DYN: dynamics as well
template<int T,int SPAN,int MODE,bool DYN>
__global__ void __launch_bounds__(T) own(const u32*__restrict__ q,u32*len,u32 room,float*pot,u32 N,u32 owners){
  extern __shared__ int s[]; u32 o=blockIdx.x; 
  for(u32 i=threadIdx.x;i<SPAN;i+=T)s[i]=0; __syncthreads();
  u32 n=min(len[o],room); const u32*m=q+(u64)o*room;
  #define ADD(e) atomicAdd(&s[(e)&0xffff],(((int)(e)>>16)<<8)+1)
  if(MODE==0){ u32 i=threadIdx.x; for(;i+3*T<n;i+=4*T){u32 a=__ldcs(m+i),b=__ldcs(m+i+T),c=__ldcs(m+i+2*T),d=__ldcs(m+i+3*T);ADD(a);ADD(b);ADD(c);ADD(d);} for(;i<n;i+=T){u32 a=__ldcs(m+i);ADD(a);} }
  else { const uint4*v=(const uint4*)m; u32 g=n/4,i=threadIdx.x;
    if(MODE==2)for(;i+T<g;i+=2*T){uint4 a=__ldcs(v+i),b=__ldcs(v+i+T);ADD(a.x);ADD(a.y);ADD(a.z);ADD(a.w);ADD(b.x);ADD(b.y);ADD(b.z);ADD(b.w);}
    for(;i<g;i+=T){uint4 a=__ldcs(v+i);ADD(a.x);ADD(a.y);ADD(a.z);ADD(a.w);}
    if(g*4+threadIdx.x<n)ADD(m[g*4+threadIdx.x]); }
  __syncthreads();
  if(DYN){u32 b=o*SPAN; for(u32 i=threadIdx.x;i<SPAN;i+=4*T){float v[4];int x[4];
    #pragma unroll
    for(int k=0;k<4;k++){u32 j=i+k*T;x[k]=0;if(j<SPAN&&b+j<N){x[k]=s[j];v[k]=pot[b+j];}}
    #pragma unroll
    for(int k=0;k<4;k++){u32 j=i+k*T;if(x[k])pot[b+j]=v[k]*0.97f+(float)(x[k]>>8)*1e-3f;}}}
  else for(u32 i=threadIdx.x;i<SPAN;i+=T)if(s[i]==0x7fffffff)pot[0]=1;
}
u32 N,NF;u32*tg;int16_t*am;u32*fd[8];u32*q,*len,*sink;int*sums;float*pot;u64 room;
template<class F>float timeit(F f,int n=16){cudaEvent_t a,b;cudaEventCreate(&a);cudaEventCreate(&b);for(int i=0;i<4;i++)f(i);cudaEventRecord(a);for(int i=0;i<n;i++)f(i);cudaEventRecord(b);CK(cudaEventSynchronize(b));float ms;cudaEventElapsedTime(&ms,a,b);CK(cudaGetLastError());return ms*1000/n;}
template<int T,int K,int OWN,int SPAN,int C,int U,bool PRE,int L>float run(int per,bool say=true){
  auto k=enq<T,K,OWN,SPAN,C,U,PRE,L>; u32 grid=132*per; u32 sb=4*(OWN*C+OWN+NF/grid+2); 
  CK(cudaFuncSetAttribute(k,cudaFuncAttributeMaxDynamicSharedMemorySize,sb)); room=(u64)NF*LEN/OWN*5/4/32*32;
  const char*ok="-"; int nb;cudaOccupancyMaxActiveBlocksPerMultiprocessor(&nb,k,T,sb); cudaFuncAttributes at;cudaFuncGetAttributes(&at,k);
  if(L==3){cudaMemset(sums,0,(u64)N*4);cudaMemset(len,0,4096);direct<<<4096,256>>>(tg,am,fd[0],NF,sums);k<<<grid,T,sb>>>(tg,am,fd[0],NF,q,len,room,sink);undirect<<<1024,256>>>(q,len,OWN,SPAN,room,sums);cudaMemset(sink,0,4);nonzero<<<1024,256>>>(sums,N,sink);u32 w;cudaMemcpy(&w,sink,4,cudaMemcpyDeviceToHost);ok=w?"WRONG":"ok";CK(cudaGetLastError());}
  float us=timeit([&](int i){cudaMemsetAsync(len,0,4096);k<<<grid,T,sb>>>(tg,am,fd[i%8],NF,q,len,room,sink);});
  if(say)printf("N %uM rows %6u T %4d x%d K %2d owners %3d C %3d U %2d pre %d L %d regs %d fit %d: %6.1f us %5.0f G/s %s\n",N/1000000,NF,T,per,K,OWN,C,U,PRE,L,at.numRegs,nb,us,(double)NF*LEN/us*1e-3,ok);fflush(stdout);return us;}
template<int T,int OWN,int SPAN,int MODE,bool DYN>void runo(){auto k=own<T,SPAN,MODE,DYN>;CK(cudaFuncSetAttribute(k,cudaFuncAttributeMaxDynamicSharedMemorySize,SPAN*4));
  float us=timeit([&](int i){k<<<OWN,T,SPAN*4>>>(q,len,room,pot,N,OWN);});printf("  owner T %4d owners %3d span %5d mode %d dyn %d: %6.1f us\n",T,OWN,SPAN,MODE,DYN,us);fflush(stdout);}
void setup(u32 n){N=n;NF=n/100;u64 e=(u64)n*LEN;static bool first=true;if(!first){cudaFree(tg);cudaFree(am);for(auto&x:fd)cudaFree(x);cudaFree(q);cudaFree(sums);cudaFree(pot);}first=false;
  CK(cudaMalloc(&tg,e*4));CK(cudaMalloc(&am,e*2));CK(cudaMalloc(&q,(u64)NF*LEN*8));CK(cudaMalloc(&sums,(u64)n*4));CK(cudaMalloc(&pot,(u64)n*4+4096));cudaMemset(pot,0,(u64)n*4);
  fill<<<8192,256>>>(tg,am,e,n);std::vector<u32>f;for(int r=0;r<8;r++){f.clear();u32 c=0;while(f.size()<NF){c=(u32)(((u64)f.size()*n)/NF+mix(f.size()*8+r+77)%100);f.push_back(std::min(c,n-1));}CK(cudaMalloc(&fd[r],NF*4));cudaMemcpy(fd[r],f.data(),NF*4,cudaMemcpyHostToDevice);}CK(cudaDeviceSynchronize());}
int main(){CK(cudaMalloc(&len,4096));CK(cudaMalloc(&sink,4));
 printf("memset alone "); printf("%.1f us\n",timeit([&](int){cudaMemsetAsync(len,0,4096);}));
 setup(5000000);
 run<1024,8,132,37888,256,32,1,0>(1);run<1024,8,132,37888,256,32,1,1>(1);run<1024,8,132,37888,256,32,1,2>(1);
 run<1024,8,132,37888,256,32,1,3>(1);run<1024,8,132,37888,256,32,0,3>(1);run<1024,4,132,37888,256,32,1,3>(1);run<1024,4,132,37888,160,32,1,3>(1);run<1024,12,132,37888,320,32,0,3>(1);
 run<512,8,132,37888,128,32,1,3>(2);run<512,8,132,37888,128,16,1,3>(2);run<512,8,132,37888,128,8,1,3>(2);run<512,8,132,37888,128,32,0,3>(2);run<512,12,132,37888,160,32,1,3>(2);run<512,16,132,37888,192,32,0,3>(2);run<512,4,132,37888,96,32,1,3>(2);run<512,4,132,37888,96,32,1,3>(3);run<256,8,132,37888,64,16,1,3>(4);run<512,8,132,37888,128,32,1,0>(2);run<512,8,132,37888,128,32,1,1>(2);run<512,8,132,37888,128,32,1,2>(2);
 run<1024,8,264,18944,160,32,1,3>(1);run<512,8,264,18944,80,16,1,3>(2);run<512,8,264,18944,80,32,1,3>(2);
 run<512,8,264,18944,80,16,1,3>(2,false); runo<512,264,18944,0,0>();runo<512,264,18944,1,0>();runo<512,264,18944,2,0>();runo<512,264,18944,0,1>();runo<512,264,18944,1,1>();runo<1024,264,18944,1,1>();
 run<512,8,132,37888,128,32,1,3>(2,false); runo<1024,132,37888,0,0>();runo<1024,132,37888,1,0>();runo<1024,132,37888,2,0>();runo<1024,132,37888,1,1>();
 setup(20000000);
 run<1024,8,400,50176,96,32,1,3>(1);run<1024,8,400,50176,112,32,1,3>(1);run<1024,8,400,50176,112,16,1,3>(1);run<512,8,400,50176,56,16,1,3>(2);run<512,8,400,50176,56,8,1,3>(2);run<1024,4,400,50176,112,32,1,3>(1);run<1024,8,400,50176,112,32,0,3>(1);
 run<1024,8,396,50688,112,32,1,0>(1);run<1024,8,396,50688,112,32,1,2>(1);
 run<1024,8,132,151552,256,32,1,3>(1);run<1024,8,200,100352,192,32,1,3>(1);run<512,8,200,100352,112,32,1,3>(2);
 run<1024,8,400,50176,112,32,1,3>(1,false);runo<1024,400,50176,0,0>();runo<1024,400,50176,1,0>();runo<1024,400,50176,1,1>();runo<1024,400,50176,2,1>();
 return 0;}
