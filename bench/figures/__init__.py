"""What was found, and how commands show it.

Samples are what measurements found, by case and server, one server after the other; a command makes tables of their
medians, puts them into pages between marks, draws pictures (picture), and writes the rest as JSON: command has the
options for all that. summary is what skywalker-bench shows, whose node is a target; machine is words.
"""
