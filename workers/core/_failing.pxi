"""What becomes of a core when something that it calls raises: nobody sees any more of what it does in that turn."""


cdef class Failing:
    cdef core it
    cdef Py_ssize_t cell_bytes  # of figures or of the hand, whichever are more
    cdef object error  # what was raised in this turn
    cdef i64 *nowhere  # what it writes to instead, from then on
    cdef i64 *figures
    cdef i64 *hand
    cdef u8 *page
    cdef machine real

    cdef machine of_python(self):
        """Return one that does nothing while there is an error."""
        return self.it.machine

    cdef fail(self, error):
        """Something has raised: nothing more is asked, written to anybody or to shared memory, or recorded."""
        if self.error is not None:
            return  # which is why the rest makes no sense
        self.error = error
        self.nowhere = <i64 *> calloc(1, self.cell_bytes)
        self.figures, self.hand, self.page = self.it.figures.cells, self.it.hand.cells, self.it.journal.page
        self.real = self.it.machine
        self.it.figures.cells = self.nowhere
        if self.hand != NULL:
            self.it.hand.cells = self.nowhere
        self.it.journal.page = NULL
        self.it.machine = self.of_python()

    cdef tell(self):
        """Raise it: who called has been told nothing that is so. It is raised again as the turn ends, come what may."""
        if self.error is not None:
            raise self.error

    cdef end_turn(self):
        """Raise it for the last time."""
        if self.error is None:
            return
        error, self.error = self.error, None
        free(self.nowhere)
        self.it.figures.cells, self.it.hand.cells, self.it.journal.page = self.figures, self.hand, self.page
        self.it.machine = self.real
        raise error
