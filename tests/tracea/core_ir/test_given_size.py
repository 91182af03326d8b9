from __future__ import annotations

import pickle

import pytest

from xyntra_ep.errors import InvariantError
from xyntra_ep.tracea.core_ir.dims import symbol
from xyntra_ep.tracea.core_ir.given_size import GivenSize, decided_by, given_config, parameter_name, parameter_values, parameters

A, B = GivenSize(12, "a"), GivenSize(5, "b")


@pytest.mark.parametrize(
    ("made", "value"),
    [
        (A + B, 17), (3 + A, 15), (A - B, 7), (3 - A, -9), (A * B, 60), (2 * A, 24), (A // B, 2), (60 // B, 12), (A % B, 2),
        (17 % A, 5), (-A, -12), (-(-A // B), 3),
    ],
)  # fmt: skip
def test_arithmetic_is_that_of_integers_and_remembers(made: int, value: int) -> None:
    assert made == value and type(made) is GivenSize


def test_what_decides_is_plain() -> None:
    assert type(A % GivenSize(4, "c")) is int, "0 decides what is left out"
    assert type(A - 11) is int
    assert type(A > B) is bool
    assert len(range(B)) == 5 and hash(A) == hash(12)


def test_equal_computations_have_one_name_whatever_their_order() -> None:
    with parameters():
        assert parameter_name(A * B) == parameter_name(B * A) != parameter_name(A + B)
        assert parameter_name(A - B) != parameter_name(B - A)
        assert parameter_name(GivenSize(768, "k")) != parameter_name(GivenSize(768, "n")), "equal values are not one size"
        assert parameter_values()[parameter_name(A)] == 12


def test_one_name_is_never_two_sizes() -> None:
    with parameters():
        parameter_name(GivenSize(768, "k"))
        with pytest.raises(InvariantError, match="two sizes have one origin: 768 and 3072"):
            parameter_name(GivenSize(3072, "k"))
    with parameters():
        parameter_name(GivenSize(3072, "k"))
    assert not parameter_values()


def test_a_polynomial_of_it_is_a_run_time_size() -> None:
    assert A * symbol("n") == 12 * symbol("n")


def test_configurations() -> None:
    config = given_config({"rows": 7, "pixels": 12, "tiles": 1}, ("rows", "tiles"))
    assert config == {"rows": 7, "pixels": 12, "tiles": 1}
    assert [type(value) for value in config.values()] == [GivenSize, int, int]


def test_what_a_size_decides_is_told_apart() -> None:
    def name(what: str, value: int) -> str:
        made = decided_by(what, value, A)
        assert isinstance(made, GivenSize) and made == value
        return parameter_name(made)

    with parameters():
        assert len({name("chains", 5), name("parts", 2), name("parts", 3)}) == 3
        assert name("parts", 2) == name("parts", 2)
    assert type(decided_by("parts", 5, 768)) is int and type(decided_by("parts", 1, A)) is int


def test_pickled() -> None:
    again = pickle.loads(pickle.dumps(A))
    assert again == 12 and again.origin == "a"
