"""What was found, and how commands show it.

Samples are what measurements found, by case and server; a command makes tables of their medians, puts them into pages
between marks, draws pictures (picture, and one *_plot for each), and writes the rest as JSON: command has the options
for all that. comparison, scaling and fanout are the tables of the commands peers, scaling and fanout; summary is that
of skywalker-bench, whose node is a target; rounds measure servers one after the other; machine and progress are words.
"""
