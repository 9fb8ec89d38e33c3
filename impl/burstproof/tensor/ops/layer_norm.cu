// Layer norm along the last axis, forward and backward. Built behind element.cuh and rows.cuh.
//
// scale, shift, mean, inverse deviation and their gradients are kept in the computing type (float, or double).

// (x - mean) / deviation * scale + shift; the variance is taken about the mean, from the row in registers.
extern "C" __global__ void __launch_bounds__(THREADS * ROWS)
layer_norm_forward(stored* result, number* means, number* inverses, const stored* source, const number* scale,
                   const number* shift, number epsilon, index_t rows, int columns) {
    int turn = 0;
    index_t row = first_row();
#if STAGED
    if (row < rows) request_row(0, source, row * columns, columns);
#endif
#if HOIST
    Row gamma, beta;
    load_columns(gamma, scale, columns);
    load_columns(beta, shift, columns);
#endif
    for (; row < rows; row += row_step()) {
        Row x;
#if STAGED
        await_rows();
        take_row(x, 0, columns);
        __syncwarp();
        if (row + row_step() < rows) request_row(0, source, (row + row_step()) * columns, columns);
#else
        load_row(x, source, row * columns, columns, 0);
#endif
        Sums mine = {0, 0};
#pragma unroll
        for (int i = 0; i < ITEMS; ++i)
#pragma unroll
            for (int j = 0; j < VEC; ++j) mine.first += x.values[i][j];
        const number mean = reduce_row(mine, add, turn).first / columns;
        mine = {0, 0};
#pragma unroll
        for (int i = 0; i < ITEMS; ++i)
#pragma unroll
            for (int j = 0; j < VEC; ++j) {
                x.values[i][j] -= mean;
                if (column_of(i) < columns) mine.first += x.values[i][j] * x.values[i][j];
            }
        const number inverse = root_inverse(reduce_row(mine, add, turn).first / columns + epsilon);
#if !HOIST
        Row gamma, beta;
        load_columns(gamma, scale, columns);
        load_columns(beta, shift, columns);
#endif
#pragma unroll
        for (int i = 0; i < ITEMS; ++i)
#pragma unroll
            for (int j = 0; j < VEC; ++j)
                x.values[i][j] = x.values[i][j] * inverse * gamma.values[i][j] + beta.values[i][j];
        store_row(x, result, row * columns, columns);
        if (lane_of_row() == 0) {
            means[row] = mean;
            inverses[row] = inverse;
        }
    }
}

// With g = dy * scale and n = (x - mean) * inverse: dx = inverse * (g - mean(g) - n * mean(g * n)).
// Each group of threads adds dy * n and dy of its rows up in registers and leaves the sums in one row of ``partial_*``,
// which reduce_columns adds up.
extern "C" __global__ void __launch_bounds__(THREADS * ROWS)
layer_norm_backward(stored* result, number* partial_scale, number* partial_shift, const stored* gradient,
                    const stored* source, const number* means, const number* inverses, const number* scale,
                    index_t rows, int columns) {
    int turn = 0;
    Row gamma, to_scale, to_shift;
    load_columns(gamma, scale, columns);
#pragma unroll
    for (int i = 0; i < ITEMS; ++i)
#pragma unroll
        for (int j = 0; j < VEC; ++j) to_scale.values[i][j] = to_shift.values[i][j] = 0;
    index_t row = first_row();
#if STAGED
    number next_mean = 0, next_inverse = 0;
    if (row < rows) {
        request_row(0, gradient, row * columns, columns);
        request_row(1, source, row * columns, columns);
        next_mean = means[row];
        next_inverse = inverses[row];
    }
#endif
    for (; row < rows; row += row_step()) {
        Row x, dy;
#if STAGED
        const number mean = next_mean, inverse = next_inverse;
        await_rows();
        take_row(dy, 0, columns);
        take_row(x, 1, columns);
        __syncwarp();
        const index_t next = row + row_step();
        if (next < rows) {
            request_row(0, gradient, next * columns, columns);
            request_row(1, source, next * columns, columns);
            next_mean = means[next];
            next_inverse = inverses[next];
        }
#else
        load_row(dy, gradient, row * columns, columns, 0);
        load_row(x, source, row * columns, columns, 0);
        const number mean = means[row], inverse = inverses[row];
#endif
        Sums mine = {0, 0};
#pragma unroll
        for (int i = 0; i < ITEMS; ++i)
#pragma unroll
            for (int j = 0; j < VEC; ++j) {
                x.values[i][j] = (x.values[i][j] - mean) * inverse;
                to_scale.values[i][j] += dy.values[i][j] * x.values[i][j];
                to_shift.values[i][j] += dy.values[i][j];
                dy.values[i][j] *= gamma.values[i][j];
                mine.first += dy.values[i][j];
                mine.second += dy.values[i][j] * x.values[i][j];
            }
        const Sums all = reduce_row(mine, add, turn);
        const number mean_g = all.first / columns, mean_gn = all.second / columns;
#pragma unroll
        for (int i = 0; i < ITEMS; ++i)
#pragma unroll
            for (int j = 0; j < VEC; ++j)
                x.values[i][j] = inverse * (dy.values[i][j] - mean_g - x.values[i][j] * mean_gn);
        store_row(x, result, row * columns, columns);
    }
    const index_t group = first_row();
    store_columns(to_scale, partial_scale + group * columns, columns);
    store_columns(to_shift, partial_shift + group * columns, columns);
}
