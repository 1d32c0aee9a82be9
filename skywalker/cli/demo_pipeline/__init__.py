"""`skywalker demo-pipeline`: traffic studied by way of the journal, and words counted by way of topics, with Spark.

Its parts are the command, the traffic, and the word count with its feeder, tally and view.
"""
