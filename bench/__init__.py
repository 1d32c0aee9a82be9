"""Benchmarks: what skywalker does in a second, and what that costs.

    load        the engine: one selector loop, connections, when calls are made, and processes that share a load
    servers     what is measured: how each is started and spoken to, and what its processes use
    figures     what was found: samples and their medians, tables, pages, pictures; the options of commands

Each other module is a command, run by `python -m bench.NAME`; `skywalker-bench` is bench.command, with bench.idle.
Commands that put a load on servers: peers, clients (with client_programs), fanout, scaling, nodes, tls, journal,
scraping, and console_picture, which only looks. Those that need none of the engine: price, balance, silk, pipeline,
and micro, which runs the tests test_*.py, the micro benchmarks.
"""
