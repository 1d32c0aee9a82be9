"""`skywalker pipeline`: the traffic studied, and clusters planned."""
