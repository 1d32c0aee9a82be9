"""The fixtures, as a project that uses skywalker has them."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]


def test_a_project_gets_a_node_for_the_session_and_a_client_for_each_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        seen = []

        @pytest.mark.parametrize("n", [1, 2])
        def test_a_value_is_handed_over(skywalker_node, skywalker_client, n):
            with skywalker_node.connect() as other:
                waiting = other.begin("recv", "jobs")
                assert skywalker_client.send("jobs", n, 10.0)
                assert waiting.result() == n
            seen.append((skywalker_node.pid, skywalker_client))

        def test_the_node_was_the_same_and_the_clients_were_not(skywalker_node):
            (node, one), (same_node, other) = seen
            assert node == same_node == skywalker_node.pid
            assert one is not other

        def test_a_client_is_closed_after_its_test():
            import skywalker
            with pytest.raises(skywalker.Closed):
                seen[0][1].ping()
        """
    )
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=4)


def test_a_project_that_uses_none_of_it_pays_nothing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_nothing_was_loaded():
            assert "skywalker.pytest_plugin" in sys.modules
            assert "skywalker.embedding" not in sys.modules
            assert "skywalker.clients.blocking.client" not in sys.modules
        """
    )
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_the_fixtures_are_documented(pytester: pytest.Pytester) -> None:
    pytester.runpytest_inprocess("--fixtures").stdout.fnmatch_lines(
        ["skywalker_node ?session scope?*", "skywalker_client *"]
    )
