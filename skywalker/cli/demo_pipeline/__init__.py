"""`skywalker demo-pipeline`: traffic studied by way of the journal, and words counted by way of topics, with Spark."""
