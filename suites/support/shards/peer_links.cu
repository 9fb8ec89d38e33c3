// Kernels that measure a link between two devices from inside: stores that cross it, and a word that goes to and fro.

typedef unsigned long long word;

// Copy n 16-byte pieces; the target may lie on another device.
extern "C" __global__ void push_pieces(word source, word target, word n) {
    const uint4* from = reinterpret_cast<const uint4*>(source);
    uint4* to = reinterpret_cast<uint4*>(target);
    for (word i = blockIdx.x * (word)blockDim.x + threadIdx.x; i < n; i += (word)gridDim.x * blockDim.x) to[i] = from[i];
}

// One thread on each of two devices. The one that leads stores round r, the other answers with r, r = 1 ... rounds.
// A side that reads `patience` times in vain ends; `done` takes the rounds that it saw.
extern "C" __global__ void bounce(word mine, word theirs, unsigned leads, unsigned rounds, unsigned patience, word done) {
    volatile unsigned* inbox = reinterpret_cast<volatile unsigned*>(mine);
    volatile unsigned* outbox = reinterpret_cast<volatile unsigned*>(theirs);
    unsigned round = 1;
    for (; round <= rounds; ++round) {
        if (leads) *outbox = round;
        unsigned tries = 0;
        while (*inbox != round && tries < patience) ++tries;
        if (tries == patience) break;
        if (!leads) *outbox = round;
    }
    *reinterpret_cast<unsigned*>(done) = round - 1;
}
