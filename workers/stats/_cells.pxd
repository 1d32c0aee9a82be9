from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer


cdef inline long long* cells_in(object memory) except NULL:
    # Who asks keeps the memory: it stays where it is.
    cdef Py_buffer view
    PyObject_GetBuffer(memory, &view, PyBUF_WRITABLE)
    cells = <long long*> view.buf
    PyBuffer_Release(&view)
    return cells
