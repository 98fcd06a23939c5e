"""Distances to candidates by the kernel are those of the differences themselves."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("triton", reason="Triton is not installed")

from frpcag.graphs.torch.triton_kernels import candidate_lengths  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize("cut", [None, 0.5])
@pytest.mark.parametrize(("p", "n_candidates"), [(3, 2), (131, 9)])  # less than a block, and more than one
def test_lengths_are_those_of_the_differences(p, n_candidates, cut):
    generator = torch.Generator().manual_seed(0)
    Z = torch.randn((12, p), generator=generator)
    rows, ids = torch.tensor([4, 0, 11]), torch.randint(12, (3, n_candidates), generator=generator)
    ids[1, 0] = 0  # a row itself is no distance away
    differences = Z[ids].double() - Z[rows, None].double()
    expected = differences.norm(dim=2) if cut is None else differences.abs().clamp(max=cut).sum(dim=2)
    found = candidate_lengths(Z[rows].to(DEVICE), Z.to(DEVICE), ids.to(DEVICE), cut).cpu()
    assert found.dtype == torch.float64
    assert found[1, 0] == 0
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=0)


def test_nothing_to_measure_is_no_error():
    none = torch.empty((0, 3), dtype=torch.int64, device=DEVICE)
    assert candidate_lengths(torch.ones((0, 2), device=DEVICE), torch.ones((2, 2), device=DEVICE), none).shape == (0, 3)
