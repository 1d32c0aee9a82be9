# Nothing here has a C type: that there is such a file has the module compiled with the others.
