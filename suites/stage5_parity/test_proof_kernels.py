"""The proof kernels against their twins on the host, and both against float64: sums, matrix products, a classifier."""

from __future__ import annotations

import numpy as np
import pytest

from burstproof.errors import InputError
from suites.support import proof_cpu
from suites.support.proof_kernels import assert_within_rounding, classifier, exact_probabilities, matrices

pytestmark = pytest.mark.requirement("KL-6", "ST-5")

SHAPES = ((1, 1, 1), (65, 10, 130), (257, 259, 33), (300, 128, 1000), (5, 7, 0), (512, 512, 512))
"""Rows, columns, depth: tiles that are full, cut short on each side, odd sizes that cannot be read in vectors."""


@pytest.mark.not_proof
@pytest.mark.parametrize(("rows", "columns", "depth"), SHAPES)
def test_the_twin_of_the_matrix_product_is_within_its_roundings(rows: int, columns: int, depth: int) -> None:
    a, b = matrices(rows, columns, depth)
    assert_within_rounding(proof_cpu.matrix_product(a, b), a, b)


@pytest.mark.not_proof
def test_the_twin_of_the_classifier_gives_probabilities() -> None:
    network = classifier(50, 20, 30, 7)
    found = proof_cpu.neural_forward(*network)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, exact_probabilities(*network), atol=1e-6)


@pytest.mark.not_proof
def test_the_twin_of_the_sum_rounds_once() -> None:
    a, b = matrices(100, 100, 100)
    np.testing.assert_array_equal(proof_cpu.vector_add(a, b), (a.astype(np.float64) + b).astype(np.float32))


@pytest.mark.gate("gpu")
@pytest.mark.parametrize("shape", [(0,), (1,), (3, 5), (1_000_003,), (1 << 20,)])
def test_vector_add_equals_its_twin(shape: tuple[int, ...]) -> None:
    import cupy

    from burstproof.compile.proof import vector_add
    from burstproof.device.memory import upload

    a, b = np.random.default_rng(5).standard_normal((2, *shape), np.float32)
    np.testing.assert_array_equal(vector_add(cupy.asarray(a), upload(b)).get(), proof_cpu.vector_add(a, b))
    if len(a) > 2:  # an array whose address admits no vectors
        found = vector_add(cupy.asarray(a)[1:], cupy.asarray(b)[1:]).get()
        np.testing.assert_array_equal(found, proof_cpu.vector_add(a, b)[1:])


@pytest.mark.gate("gpu")
@pytest.mark.parametrize("edge", [64, 128])
@pytest.mark.parametrize(("rows", "columns", "depth"), SHAPES)
def test_matrix_product_is_within_its_roundings(rows: int, columns: int, depth: int, edge: int) -> None:
    from burstproof.compile.proof import matrix_product
    from burstproof.device.memory import upload

    a, b = matrices(rows, columns, depth)
    assert_within_rounding(matrix_product(upload(a), upload(b), edge=edge).get(), a, b)


@pytest.mark.gate("gpu")
@pytest.mark.parametrize(
    ("samples", "features", "hidden", "classes"), [(1, 1, 1, 1), (1000, 784, 256, 10), (33, 5, 7, 100)]
)
def test_neural_forward_equals_its_twin(samples: int, features: int, hidden: int, classes: int) -> None:
    from burstproof.compile.proof import neural_forward
    from burstproof.device.memory import upload

    network = classifier(samples, features, hidden, classes)
    found = neural_forward(*map(upload, network)).get()
    np.testing.assert_allclose(found, exact_probabilities(*network), atol=2e-6)
    np.testing.assert_allclose(found, proof_cpu.neural_forward(*network), atol=4e-6)


@pytest.mark.gate("gpu")
def test_shapes_that_do_not_fit_are_refused() -> None:
    from burstproof.compile.proof import matrix_product, neural_forward, vector_add
    from burstproof.device.memory import upload

    a, b = (upload(m) for m in matrices(3, 4, 5))
    with pytest.raises(InputError, match="not two matrices that fit"):
        matrix_product(a, a)
    with pytest.raises(InputError, match="the shapes differ"):
        vector_add(a, b)
    with pytest.raises(InputError, match="not a bias per column"):
        neural_forward(a, b, upload(np.zeros(5, np.float32)), b, b)
    with pytest.raises(InputError, match="no such tile"):
        matrix_product(a, b, edge=32)
    with pytest.raises(InputError, match=r"kernel vector_add.*wrong dtype"):
        vector_add(upload(np.zeros(3)), upload(np.zeros(3)))
