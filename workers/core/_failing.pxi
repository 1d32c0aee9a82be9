"""What becomes of a core when something that it calls raises: nobody sees any more of what it does, until that is told."""


cdef class Failing:
    cdef core it
    cdef Py_ssize_t cell_bytes  # of figures or of the hand, whichever are more
    cdef object error  # what was raised and is not told yet
    cdef i64 *nowhere  # what it writes to instead meanwhile
    cdef i64 *figures
    cdef i64 *hand
    cdef u8 *page

    cdef fail(self, error):
        """Something has raised: nothing more is asked, written to shared memory, or recorded."""
        if self.error is not None:
            return  # which is why the rest makes no sense
        self.error = error
        self.nowhere = <i64 *> calloc(1, self.cell_bytes)
        self.figures, self.hand, self.page = self.it.figures.cells, self.it.hand.cells, self.it.journal.page
        self.it.figures.cells = self.nowhere
        if self.hand != NULL:
            self.it.hand.cells = self.nowhere
        self.it.journal.page = NULL

    cdef tell(self):
        """Raise it, now that C is through with what it was doing."""
        if self.error is None:
            return
        error, self.error = self.error, None
        free(self.nowhere)
        self.it.figures.cells, self.it.hand.cells, self.it.journal.page = self.figures, self.hand, self.page
        raise error
