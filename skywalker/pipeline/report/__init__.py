"""The report: all jobs over one input, as tables, pictures and one page that needs nothing else.

page       the page, and the order in which it is all done
tables     the jobs, in a few passes over the calls
pictures   the pictures
"""

from __future__ import annotations
