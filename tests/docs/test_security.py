"""Who is trusted with what: each row of the table in SECURITY.md names tests that hold it, and they are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Final

ROOT = Path(__file__).parent.parent.parent

HELD_BY: Final = {
    "a node of the cluster": (
        "tests/workers/nodes/test_proof.py::test_both_prove_themselves_and_go_on_as_nodes",
        "tests/workers/nodes/test_peer_bytes.py::test_who_does_not_say_what_a_node_says_is_refused",
    ),
    "the processes of one node": (
        "tests/workers/process/test_secrets.py::test_a_node_says_none_of_the_secrets_that_it_knows",
    ),
    "a principal": (
        "tests/workers/access/test_access.py::test_what_is_not_is_forbidden_and_said_what_was_missing",
        "tests/workers/access/test_access.py::test_a_forbidden_call_meets_nobody",
    ),
    "a principal with `admin`": (
        "tests/admin/test_gate.py::test_a_path_that_shows_something_is_for_those_with_a_token_that_may",
        "tests/admin/test_endpoints.py::test_what_is_not_there_is_a_404_and_what_would_change_something_a_405",
        "tests/admin/test_endpoints.py::test_nothing_that_is_told_or_logged_or_kept_holds_a_value",
    ),
    "a client with the keys of Silk, or, without keys, one that can reach its port": (
        "tests/silk/test_attacks.py::test_who_makes_up_members_without_end_costs_little_and_drives_nobody_out",
        "tests/cluster/test_strangers.py::test_who_does_not_know_the_secret_owns_nothing_and_gets_nothing",
        "tests/cluster/test_silk.py::test_nodes_with_keys_meet_and_one_without_stays_alone_and_says_so",
    ),
    "Consul, the name server, the author of the list": (
        "tests/cluster/test_strangers.py::test_who_does_not_know_the_secret_owns_nothing_and_gets_nothing",
        "tests/cluster/test_strangers.py::"
        "test_who_only_listens_where_a_node_should_be_hears_no_secret_no_token_and_no_value",
        "tests/discovery/test_roster.py::"
        "test_whoever_names_very_many_addresses_has_us_dial_some_at_a_time_and_no_storm",
    ),
    "a holder of `cluster.secret`, or of the key of a node's certificate": (
        "tests/workers/nodes/test_proof.py::test_both_prove_themselves_and_go_on_as_nodes",
        "tests/cluster/test_strangers.py::test_a_certificate_of_the_same_authority_that_is_no_nodes_is_not_enough",
    ),
    "the network between nodes": (
        "tests/cluster/test_strangers.py::"
        "test_whoever_is_on_the_way_between_two_nodes_hears_no_secret_and_poses_as_neither_later",
        "tests/cluster/test_tls.py::test_large_values_cross_links_whole_and_survive_the_death_of_one_end",
    ),
    "the user that the node runs as, and root": (
        "tests/abuse/test_local_users.py::test_root_drains_a_node_that_is_another_users",
        "tests/workers/setup/test_privileges.py::test_every_process_is_the_users_and_none_has_anything_left_of_root",
    ),
    "another user of the machine": (
        "tests/abuse/test_local_users.py::test_a_listener_that_was_passed_to_a_process_does_not_have_root_end_it",
        "tests/workers/access/test_access.py::test_a_unix_socket_tells_who_is_calling",
    ),
    "a reader of the journal's files": (
        "tests/admin/test_endpoints.py::test_nothing_that_is_told_or_logged_or_kept_holds_a_value",
        "tests/workers/calls/test_journal.py::test_topics_have_their_names",
    ),
    "a user who may write to a journal, a spool or a checkpoint": (
        "tests/journal/test_forged.py::test_a_file_that_says_it_is_endless_ends_where_nothing_is_written",
        "tests/pipeline/tables/test_forged.py::test_blocks_within_blocks_do_not_have_a_start_take_for_ever",
        "tests/pipeline/journals/test_forged.py::test_a_stream_plans_no_tasks_for_a_hole",
    ),
    "a reader of the log": (
        "tests/workers/process/test_secrets.py::test_a_node_says_none_of_the_secrets_that_it_knows",
        "tests/workers/access/test_access.py::test_refusals_are_all_counted_and_logged_once_in_a_while_without_secrets",
    ),
    "a client of the health port": ("tests/workers/agent/test_health.py::test_other_paths_and_methods_are_refused",),
}
"""By the first cell of each row."""


def test_each_row_of_the_table_is_held_by_tests_that_there_are() -> None:
    text = (ROOT / "SECURITY.md").read_text().partition("## Who is trusted with what")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \|", text, re.MULTILINE)
    assert rows[0] == "who"
    assert rows[1:] == [*HELD_BY]
    missing = [name for names in HELD_BY.values() for name in names if not _is_there(name)]
    assert not missing


def _is_there(name: str) -> bool:
    path, _, test = name.partition("::")
    tree = ast.parse((ROOT / path).read_text())
    return any(isinstance(node, ast.FunctionDef) and node.name == test for node in ast.walk(tree))
