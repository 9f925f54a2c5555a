"""The tests' own foundations."""

import pytest


@pytest.fixture(scope="module")
def shared() -> str:
    return "made once"


def test_tests_that_share_a_fixture_run_in_one_process(shared: str, request: pytest.FixtureRequest) -> None:
    grouped = getattr(request.config.option, "loadgroup", False)
    assert request.node.nodeid.endswith("@tests/test_suite.py") == grouped, "and a costly fixture is made once"
