"""The report: all jobs over one input, as tables, pictures and one page that needs nothing else.

making     the order in which it is all done
tables     the jobs, in a few passes over the calls
style      how pictures look
over_time shares    the pictures
page       the page
"""

from __future__ import annotations
