"""The smallest scores of long rows, by groups of columns, are those of a whole ranking."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("triton", reason="Triton is not installed")

from frpcag.graphs.torch.search import GROUP, smallest  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize("n", [GROUP - 1, 5 * GROUP, 70 * GROUP + 3])  # a part of a group, some, more than a program's
@pytest.mark.parametrize("count", [1, 7])
def test_groups_hold_the_smallest(n, count):
    generator = torch.Generator().manual_seed(0)
    offsets, products = (torch.randn(shape, generator=generator).to(DEVICE) for shape in ((n,), (4, n)))
    values, columns = smallest(offsets, products, count, grouped=True)
    expected = torch.topk(offsets - products, count, largest=False)
    assert torch.equal(values, expected.values)
    assert torch.equal(columns, expected.indices)


def test_many_in_one_group_are_all_found():
    offsets = torch.arange(10.0 * GROUP, device=DEVICE)  # the ten smallest lie in the first group
    values, columns = smallest(offsets, torch.zeros((2, len(offsets)), device=DEVICE), 10, grouped=True)
    assert columns.tolist() == [list(range(10))] * 2
    assert torch.equal(values, offsets[:10].expand(2, -1))


def test_infinite_scores_are_still_columns():
    offsets = torch.full((3 * GROUP,), torch.inf, device=DEVICE)
    columns = smallest(offsets, torch.zeros((1, len(offsets)), device=DEVICE), 5, grouped=True)[1]
    assert 0 <= int(columns.min()) <= int(columns.max()) < len(offsets)
